"""The wheel that a release uploads has all that it needs and runs; the checks of it can fail."""

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from tools import release_check
from tools.release_check import (
    ReleaseError,
    build_wheel,
    check_sdist,
    check_tag,
    check_wheel,
    package_files,
    version,
)

import inferometer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend comes with the extra dev")
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_runs_from_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    check_wheel(wheel)
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)

    def run(*words: object) -> str:
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=True, timeout=300)
        return done.stdout

    assert Path(run("-c", "import inferometer; print(inferometer.__file__)").strip()).is_relative_to(tmp_path)
    assert run("-m", "inferometer", "--version").split()[-1] == version()
    assert "NVIDIA H100 80GB HBM3" in run("-m", "inferometer", "summary", ROOT / "samples" / "decode.json.gz")
    assert "NVIDIA H100 80GB HBM3" in run("-m", "inferometer", "summary", "sample:decode")
    assert "cpu_limited_share" in run("-m", "inferometer", "compare", "sample:normal", "sample:slow")
    assert "RTX 4090" in run("-m", "inferometer", "hardware", "--csv")  # data files are found
    assert "entry_points" in {path.stem for path in tmp_path.rglob("*.dist-info/entry_points.txt")}


def test_a_wheel_without_a_file_of_the_package_is_refused(wheel: Path, tmp_path: Path) -> None:
    kinds = {name.rpartition(".")[2] for name in package_files()}
    assert {"py", "wgsl", "json", "h", "typed"} <= kinds
    for ending in sorted(kinds):
        left_out = next(name for name in package_files() if name.endswith(f".{ending}"))
        with pytest.raises(ReleaseError, match=rf"{re.escape(left_out)} are missing"):
            check_wheel(_without(wheel, left_out, tmp_path / f"no-{ending}.whl"))


def test_a_wheel_with_what_is_not_the_package_s_is_refused(wheel: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.whl"
    more.write_bytes(wheel.read_bytes())
    with ZipFile(more, "a") as archive:
        archive.writestr("tests/test_x.py", "")
    with pytest.raises(ReleaseError, match=r"tests/test_x.py aren't the package's"):
        check_wheel(more)


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("tests/test_x.py", 1, "tests/test_x.py aren't the package's"),
        ("samples/decode.json.gz", 1, None),
        ("samples/serving.json", 1, "samples/serving.json aren't the package's"),
        ("shared/data/x", 1, "shared/data/x aren't the package's"),
        ("src/inferometer/large.json", 2 << 20, "large.json have more than 1,048,576 bytes"),
        ("src/inferometer/x.py", 1, None),
    ],
)
def test_an_sdist_holds_only_the_package(name: str, size: int, words: str | None, tmp_path: Path) -> None:
    path = tmp_path / "inferometer-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        about = tarfile.TarInfo(f"inferometer-1/{name}")
        about.size = size
        archive.addfile(about, io.BytesIO(b"x" * size))
    if words is None:
        check_sdist(path)
        return
    with pytest.raises(ReleaseError, match=words):
        check_sdist(path)


def test_there_is_one_version() -> None:
    assert version() == inferometer.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version())
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_a_tag_is_the_version_and_has_a_changelog() -> None:
    heading = f"## [{version()}] - 2026-01-02\n"
    check_tag(f"v{version()}", heading)
    with pytest.raises(ReleaseError, match=rf"expected the tag v{re.escape(version())}, found v9.9.9"):
        check_tag("v9.9.9", heading)
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md: expected a heading"):
        check_tag(f"v{version()}", "## [Unreleased]\n")


def test_an_interpreter_that_is_not_there_is_skipped_and_none_at_all_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shim = tmp_path / "python3.98"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("build", "check_sdist", "check_wheel"):
        monkeypatch.setattr(release_check, name, lambda path: (path, path))
    assert release_check.main(["python3.98", "python3.99"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"python3.{n}: skipped, it isn't on PATH or doesn't start" for n in (98, 99)]
    assert err == "release-check: no interpreter was tried\n"


def test_the_image_is_built_from_what_the_ignore_file_lets_through() -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    sources = {word for line in copied for word in line.split()}
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert sources == set(allowed)
    assert [name for name in sources if not (ROOT / name).exists()] == []


def test_the_image_is_pinned_and_runs_as_a_user() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1, "what is built runs on the same Python"
    assert re.fullmatch(r"python:3\.12\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", bases[0])
    assert text.index("USER inferometer") < text.index("ENTRYPOINT")


def test_only_the_job_that_publishes_may_ask_for_a_token_and_actions_are_pinned() -> None:
    yaml = pytest.importorskip("yaml", reason="comes with the extra docs")
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    found = yaml.safe_load(text)
    assert found["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in found["jobs"].items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
    used = re.findall(r"uses: (\S+)", text)
    assert len(used) == 5
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each)] == []
    assert "secrets." not in text


def _without(wheel: Path, name: str, target: Path) -> Path:
    with ZipFile(wheel) as old, ZipFile(target, "w") as new:
        for each in old.infolist():
            if each.filename != name:
                new.writestr(each, old.read(each))
    return target
