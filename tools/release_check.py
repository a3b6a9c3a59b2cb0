"""Builds what a release uploads, looks into it, and installs it into clean environments: `make release-check`.

    python tools/release_check.py                      with every python3.11 to python3.14 on PATH, by pip and, where
                                                       they are there, uv, uvx and pipx
    python tools/release_check.py python3.12 ...       with these alone
    python tools/release_check.py --tag v0.1.0 ...     refuse where the tag isn't the version, or has no changelog

The sdist and the wheel are left in dist/. The wheel is built from the sdist, so the sdist is complete. Dependencies
come from the package index, without constraints, as a user gets them. What isn't there is skipped and named.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

from packaging.metadata import Metadata

from inferometer.samples import SAMPLES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "inferometer"
SAMPLE = ROOT / "samples" / "decode.json.gz"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
_IN_SDIST = re.compile(
    r"src/inferometer/.*"
    r"|samples/((decode|nsys|webgpu)\.\w+\.gz|recorded/cpu_quota/.*)"
    r"|pyproject\.toml|hatch_build\.py|README\.md|LICENSE|CHANGELOG\.md|constraints\.txt|PKG-INFO|\.gitignore"
)
_MOST_BYTES = 1 << 20  # of a file: the largest data of ours has a third of it


class ReleaseError(Exception):
    """What is wrong with what was built."""


def main(words: Sequence[str]) -> int:
    """Build, look, install; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description="Build what a release uploads, and try it in clean environments.")
    parser.add_argument("pythons", nargs="*", help="Interpreters to try: python3.12. Default: all on PATH.")
    parser.add_argument("--tag", help="The tag of the release: v and the version.")
    asked = parser.parse_args(words)
    try:
        if asked.tag:
            check_tag(asked.tag)
        sdist, wheel = build(ROOT / "dist")
        check_sdist(sdist)
        check_wheel(wheel)
        tried = sum(_try_with(python, wheel) for python in asked.pythons or PYTHONS)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"release-check: {error}", file=sys.stderr)
        return 1
    if not tried:
        print("release-check: no interpreter was tried", file=sys.stderr)
    return 0 if tried else 1


def version() -> str:
    """The one in `src/inferometer/__init__.py`, from which the build takes it."""
    found = re.search(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise ReleaseError("src/inferometer/__init__.py: expected a line with __version__, found none")
    return found[1]


def check_tag(tag: str, changelog: str | None = None) -> None:
    """Refuse a tag that isn't the version, or a version that the changelog doesn't have.

    Raises:
        ReleaseError: Which of the two.
    """
    if tag != f"v{version()}":
        raise ReleaseError(f"expected the tag v{version()}, found {tag}")
    text = (ROOT / "CHANGELOG.md").read_text("utf-8") if changelog is None else changelog
    if not re.search(rf"^## \[{re.escape(version())}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md: expected a heading ## [{version()}] - with the date, found none")


def build(target: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel made from it, in `target`; older ones there are replaced."""
    for old in [*target.glob("inferometer-*.whl"), *target.glob("inferometer-*.tar.gz")]:
        old.unlink()
    _run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", target, cwd=ROOT)
    (sdist,) = target.glob("inferometer-*.tar.gz")
    return sdist, build_wheel(sdist, target)


def build_wheel(source: Path, target: Path) -> Path:
    """The wheel of a folder or an sdist, with the build backend that is installed, without a network."""
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
    _run(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", target, source)
    (wheel,) = target.glob("inferometer-*.whl")
    return wheel


def check_sdist(path: Path) -> None:
    """Refuse tests, data of others and large files in it.

    Raises:
        ReleaseError: Which files.
    """
    with tarfile.open(path) as archive:
        files = {each.name.partition("/")[2]: each.size for each in archive if each.isfile()}
    _refuse(path, "aren't the package's", [name for name in files if not _IN_SDIST.fullmatch(name)])
    _refuse(path, f"have more than {_MOST_BYTES:,} bytes", [name for name, size in files.items() if size > _MOST_BYTES])


def check_wheel(path: Path) -> None:
    """Refuse one that lacks a file of the package (code, WGSL, JSON, TOML, templates), or whose metadata is invalid.

    Raises:
        ReleaseError: What is missing, or wrong.
    """
    with ZipFile(path) as archive:
        files = {each.filename: each.file_size for each in archive.infolist()}
        about = next(name for name in files if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about)
    folder = about.removesuffix("METADATA")
    wanted = {*package_files(), f"{folder}entry_points.txt", f"{folder}licenses/LICENSE"}
    _refuse(path, "are missing", sorted(wanted - files.keys()))
    _refuse(path, "aren't the package's", [n for n in files if not n.startswith(("inferometer/", folder))])
    _refuse(path, f"have more than {_MOST_BYTES:,} bytes", [name for name, size in files.items() if size > _MOST_BYTES])
    found = Metadata.from_email(metadata, validate=True)  # raises where a field isn't as the specification says
    if str(found.version) != version() or found.description_content_type != "text/markdown" or not found.description:
        raise ReleaseError(
            f"{path.name}: expected version {version()} and a Markdown description, found {found.version}"
        )


def package_files() -> Iterator[str]:
    """What a wheel must have: all files of the package but caches, and its samples, as paths in the wheel.

    The library in C++, too, where it was built here.
    """
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(PACKAGE.parent).as_posix()
    for name in SAMPLES.values():
        place = SAMPLE.parent / name
        for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
            if path.is_file():
                yield f"inferometer/_samples/{path.relative_to(SAMPLE.parent).as_posix()}"


def _refuse(path: Path, why: str, names: list[str]) -> None:
    if names:
        more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
        raise ReleaseError(f"{path.name}: {', '.join(names[:5])}{more} {why}")


def _try_with(python: str, wheel: Path) -> bool:
    """Install the wheel with this interpreter in every way that is there, and run it; whether there was one."""
    where = _interpreter(python)
    if where is None:
        _say(f"{python}: skipped, it isn't on PATH or doesn't start")
        return False
    ways = {"pip": _pip, "uv": _uv, "uvx": _uvx, "pipx": _pipx}
    for name, way in ways.items():
        if name != "pip" and shutil.which(name) is None:
            _say(f"{python}: {name} skipped, it isn't on PATH")
            continue
        with tempfile.TemporaryDirectory(prefix="inferometer-release-") as folder:
            command = way(where, wheel, Path(folder))
            _check_command(command, Path(folder))
        _say(f"{python}: {name} installs it, and it runs")
    return True


def _say(line: str) -> None:
    print(line, flush=True)  # an installation takes minutes


def _interpreter(python: str) -> str | None:
    """Its path; None where it isn't the version that its name says, or doesn't start (a shim of a version manager)."""
    found = shutil.which(python)
    if found is None:
        return None
    asked = subprocess.run([found, "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
                           check=False, capture_output=True, text=True)  # fmt: skip
    wanted = re.search(r"3\.\d+$", python)
    return found if asked.returncode == 0 and (wanted is None or asked.stdout.strip() == wanted[0]) else None


def _pip(python: str, wheel: Path, folder: Path) -> list[str]:
    _run(python, "-m", "venv", folder / "venv")
    _run(_script(folder, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return [_script(folder, "inferometer")]


def _uv(python: str, wheel: Path, folder: Path) -> list[str]:
    _run("uv", "venv", "--quiet", "--no-python-downloads", "--python", python, folder / "venv")
    _run("uv", "pip", "install", "--quiet", "--python", _script(folder, "python"), wheel)
    return [_script(folder, "inferometer")]


def _uvx(python: str, wheel: Path, folder: Path) -> list[str]:
    return ["uvx", "--quiet", "--no-python-downloads", "--python", python, "--from", str(wheel), "inferometer"]


def _pipx(python: str, wheel: Path, folder: Path) -> list[str]:
    return ["pipx", "run", "--python", python, "--spec", str(wheel), "inferometer"]


def _script(folder: Path, name: str) -> str:
    return str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / name)


def _check_command(command: Sequence[str], folder: Path) -> None:
    """Ask for the version and for the summary of a sample, away from the repository."""
    if (said := _run(*command, "--version", cwd=folder)).split()[-1:] != [version()]:
        raise ReleaseError(f"{command[0]}: expected version {version()}, found {said.strip()!r}")
    if "NVIDIA H100 80GB HBM3" not in (said := _run(*command, "summary", SAMPLE, cwd=folder)):
        raise ReleaseError(f"{command[0]}: expected a summary of {SAMPLE.name}, found {said[:200]!r}")


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    """What it prints; what it says on stderr is shown. Modules of the repository aren't seen."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(word) for word in command],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=env,
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
