"""Runs the Dockerfile without Docker, its stages in folders by chroot, and then the image's command.

    python tools/docker_check.py --python /opt/python3.12          or: make docker-check PYTHON312=/opt/python3.12

Needs Linux, root, debootstrap and a network. The base image `python:VERSION-slim-DEBIAN` is Debian of that name, made
by debootstrap, with the Python of `--python` in /usr/local, as the image has it: the digest that the Dockerfile pins is
not looked at. Each stage begins as a copy of it; RUN, COPY, ENV, USER and WORKDIR do what Docker says, and any other
instruction is an error. Then the entry point runs as the image's user: its default words, `summary` of a trace that is
mounted read-only, and a report into a mounted folder, as a user whom the image doesn't know.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples" / "decode.json.gz"
_BASE = re.compile(r"(?:docker\.io/library/)?python:(\d+\.\d+)[\d.]*-slim-(\w+)(?:@sha256:[0-9a-f]{64})?")
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIBRARIES = (
    "ca-certificates,netbase,tzdata,libssl3,libffi8,zlib1g,libbz2-1.0,liblzma5,libsqlite3-0,libreadline8,libncursesw6,"
    "libuuid1,libexpat1"
)  # what the base image's Python is linked with
_OF_NETWORK = re.compile(r"(https?|no)_proxy|PIP_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)", re.IGNORECASE)
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_STRANGER = 4242


class DockerfileError(Exception):
    """What this can't run, or what went wrong as it ran."""


@dataclass
class Stage:
    """A folder on its way to an image, with what its instructions have set so far."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "root"
    entry: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def inside(self, place: str) -> Path:
        """Where `place` of the image lies outside of it; a relative one begins at its folder."""
        return self.root / os.path.normpath(os.path.join(self.folder, place)).lstrip("/")  # noqa: PTH118 - of another system


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Name and rest of each, in order, with continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name.upper(), " ".join(rest.split())


def base_of(image: str) -> tuple[str, str]:
    """Version of Python and name of Debian of an image that this can make.

    Raises:
        DockerfileError: It is another one.
    """
    match = _BASE.fullmatch(image)
    if match is None:
        raise DockerfileError(f"FROM {image}: expected python:VERSION-slim-DEBIAN")
    return match[1], match[2]


def build(text: str, base: Path, into: Path, *, context: Path = ROOT) -> Stage:
    """The last stage of a Dockerfile; `base` is a system with Python, `into` a folder for the stages.

    Raises:
        DockerfileError: An instruction isn't known, or fails.
    """
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for name, rest in instructions(text):
        print(f"{name} {rest}", flush=True)
        if name == "FROM":
            image, _, alias = rest.partition(" AS ")
            base_of(image)
            stage = Stage(into / str(len(stages)))
            stages[alias or str(len(stages))] = stage
            stage.root.mkdir(parents=True)
            _call("cp", "-a", f"{base}/.", stage.root)
        elif stage is None:
            raise DockerfileError(f"{name} before FROM")
        else:
            _apply(name, rest, stage, stages, context)
    if stage is None:
        raise DockerfileError("expected FROM, found none")
    return stage


def _apply(name: str, rest: str, stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    if name == "ARG":
        key, _, value = rest.partition("=")
        stage.arguments[key] = value.strip('"')
    elif name == "ENV":
        key, _, value = rest.partition("=")
        stage.environment[key] = re.sub(r"\$\{?(\w+)\}?", lambda match: stage.environment.get(match[1], ""), value)
    elif name == "WORKDIR":
        stage.inside(rest).mkdir(parents=True, exist_ok=True)
        stage.folder = rest
    elif name == "USER":
        stage.user = rest
    elif name == "COPY":
        _copy(rest.split(), stage, stages, context)
    elif name == "RUN":
        inside(stage, ["/bin/sh", "-c", rest], environment=stage.arguments)
    elif name in ("ENTRYPOINT", "CMD"):
        words = tuple(json.loads(rest))
        stage.entry, stage.words = (words, stage.words) if name == "ENTRYPOINT" else (stage.entry, words)
    else:
        raise DockerfileError(f"{name}: an instruction that this doesn't know")


def _copy(words: Sequence[str], stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    """A folder's content, as Docker copies it; into a folder that is there or whose name ends in a slash, files."""
    whence = None
    if words[0].startswith("--from="):
        whence, words = stages[words[0].removeprefix("--from=")], words[1:]
    *names, target = words
    for name in names:
        source = context / name if whence is None else whence.inside(name)
        place = stage.inside(target)
        if source.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            _call("cp", "-a", f"{source}/.", place)
        else:
            place = place / source.name if target.endswith("/") or place.is_dir() else place
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
    if whence is None:
        _call("chown", "-R", "0:0", *{stage.inside(target)})


def inside(
    stage: Stage,
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
    mounts: Mapping[Path, str] | None = None,
) -> str:
    """What a command prints in the image, in its folder and as its user, with /proc and mounts of its own.

    Raises:
        DockerfileError: It fails.
    """
    mount = [f"mount -t proc proc {shlex.quote(str(stage.root / 'proc'))}"]
    for source, target in (mounts or {}).items():
        place, _, how = target.partition(":")
        at = shlex.quote(str(stage.inside(place)))
        mount += [f"mkdir -p {at}", f"mount --bind {shlex.quote(str(source))} {at}"]
        mount += [f"mount -o remount,bind,ro {at}"] if how == "ro" else []
    there = f"cd {shlex.quote(stage.folder)} && exec {shlex.join(command)}"
    chroot = ["chroot", f"--userspec={user or stage.user}", str(stage.root), "/bin/sh", "-c", there]
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-ec", "; ".join([*mount, f"exec {shlex.join(chroot)}"])],
        env={**_network(), **stage.environment, **(environment or {}), "HOME": "/nonexistent" if user else "/"},
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    if done.returncode:
        raise DockerfileError(f"{shlex.join(command)}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _network() -> dict[str, str]:
    """What a build needs of this machine's environment to reach a package index: Docker hands on the proxies, too."""
    found = {name: value for name, value in os.environ.items() if _OF_NETWORK.fullmatch(name)}
    return {**found, "PIP_CERT": str(_CERTIFICATES)} if _CERTIFICATES.exists() else found


def make_base(python: Path, debian: str, place: Path) -> None:
    """The base image's likeness: Debian, and Python in /usr/local."""
    _call("debootstrap", "--variant=minbase", f"--include={_LIBRARIES}", debian, place)
    _call("cp", "-a", f"{python}/.", place / "usr/local")
    _call("chroot", place, "ldconfig")
    for name in ("resolv.conf", "hosts"):
        shutil.copy2(Path("/etc") / name, place / "etc" / name)
    if _CERTIFICATES.exists():
        shutil.copy2(_CERTIFICATES, place / str(_CERTIFICATES).lstrip("/"))


def check_image(image: Stage, folder: Path) -> None:
    """The image answers: help, a mounted trace, and a report for whoever runs it.

    Raises:
        DockerfileError: It doesn't.
    """
    (folder / "traces").mkdir()
    shutil.copy2(SAMPLE, folder / "traces" / SAMPLE.name)
    _expect("Usage: inferometer", inside(image, [*image.entry, *image.words]))
    shown = inside(image, [*image.entry, "summary", SAMPLE.name], mounts={folder / "traces": f"{image.folder}:ro"})
    _expect("What to look at first", shown)
    (folder / "written").mkdir()
    shutil.copy2(SAMPLE, folder / "written" / SAMPLE.name)
    os.chown(folder / "written", _STRANGER, _STRANGER)
    words = [*image.entry, "report", SAMPLE.name, "-o", "report.html"]
    inside(image, words, user=f"{_STRANGER}:{_STRANGER}", mounts={folder / "written": image.folder})
    _expect("<!doctype html>", (folder / "written" / "report.html").read_text("utf-8")[:100].lower())


def _expect(part: str, text: str) -> None:
    if part not in text:
        raise DockerfileError(f"expected {part!r}, found:\n{text}")


def _call(*command: object) -> None:
    done = subprocess.run(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise DockerfileError(f"{command[0]}: ended with {done.returncode}\n{done.stdout}")


def main(words: Sequence[str]) -> int:
    """Make the base, build, run; 1 where something is wrong, 4 where something is missing."""
    parser = argparse.ArgumentParser(description="Run the Dockerfile by debootstrap and chroot.")
    parser.add_argument("--python", type=Path, help="Folder of the Python to copy into the base: its sys.base_prefix.")
    parser.add_argument("--base", type=Path, help="A base that is there already, or is to be kept there.")
    asked = parser.parse_args(words)
    text = (ROOT / "Dockerfile").read_text("utf-8")
    version, debian = next(base_of(rest.partition(" AS ")[0]) for name, rest in instructions(text) if name == "FROM")
    missing = [each for each in ("debootstrap", "chroot", "unshare") if shutil.which(each) is None]
    if missing or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print(f"docker-check: needs Linux, root{''.join(f', {each}' for each in missing)}", file=sys.stderr)
        return 4
    kept = asked.base is not None and asked.base.exists()
    if not kept and (asked.python is None or not (asked.python / "bin" / f"python{version}").exists()):
        print(f"docker-check: --python: expected a folder with bin/python{version}", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory() as scratch:
        try:
            base = asked.base or Path(scratch) / "base"
            if not kept:
                make_base(asked.python, debian, base)
            image = build(text, base, Path(scratch) / "stages")
            check_image(image, Path(scratch))
        except DockerfileError as error:
            print(f"docker-check: {error}", file=sys.stderr)
            return 1
    print("docker-check: the image builds, and answers as its user and as a stranger", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
