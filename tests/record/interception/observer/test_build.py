"""The observer is compiled once for what it depends on; what goes wrong is one line."""

from pathlib import Path

import pytest

from inferometer.record.interception.observer import build as building
from inferometer.record.interception.observer.build import BuildError, build

pytest.importorskip("torch", reason="torch isn't installed")

COMPILER = """#!/bin/sh
[ "$1" = --version ] && echo "compiler {version}" && exit 0
echo called >> {log}
{then}
"""
WRITE = 'while [ "$1" != -o ]; do shift; done; echo library > "$2"'


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "inferometer" / "observer"


def use_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path, then: str, version: int = 1) -> Path:
    """Its log, a line for each compilation."""
    compiler, log = folder / "compiler", folder / "log"
    compiler.write_text(COMPILER.format(version=version, log=log, then=then))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return log


def test_it_is_built_once_for_each_compiler_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = use_compiler(monkeypatch, tmp_path, WRITE)
    library = build()
    assert capsys.readouterr().err.startswith("inferometer: building the observer of PyTorch's ops, once")
    assert build() == library
    assert capsys.readouterr().err == ""
    assert library.read_text() == "library\n"
    use_compiler(monkeypatch, tmp_path, WRITE, version=2)
    assert build() != library
    assert log.read_text().split() == ["called"] * 2
    assert sorted(path.name for path in cache.glob("*/*")) == ["lock", "lock", "observer.so", "observer.so"]


def test_what_a_killed_process_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    use_compiler(monkeypatch, tmp_path, WRITE)
    library = build()
    library.unlink()
    (library.parent / "build-left").mkdir()
    build()
    assert sorted(path.name for path in library.parent.iterdir()) == ["lock", "observer.so"]


def test_a_failing_compiler_is_quoted_by_its_first_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    then = "echo 'In file included from a.h' >&2; echo 'fatal error: Python.h: No such file' >&2; echo more >&2; exit 1"
    use_compiler(monkeypatch, tmp_path, then)
    with pytest.raises(BuildError, match=r"^compiler: fatal error: Python\.h: No such file$"):
        build()


def test_a_compiler_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building, "_PATIENCE_S", 0.05)
    use_compiler(monkeypatch, tmp_path, "sleep 60")
    with pytest.raises(BuildError, match="took more than 0 s"):
        build()


def test_without_a_compiler_or_a_place_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_compiler(monkeypatch, tmp_path, WRITE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="Not a directory"):
        build()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(BuildError, match=r"there is no C\+\+ compiler"):
        build()


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "observer.so").write_text("no library")
    with pytest.raises(BuildError, match=r"observer\.so"):
        building.load(tmp_path / "observer.so")
