"""The library in C++ is built where it can be, and used only where it fits its sources."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.formats.native.library_at_hand import needs_library

from inferometer.formats.native import build as building
from inferometer.formats.native import library as libraries
from inferometer.formats.native.build import BuildError, build, sources_checksum
from inferometer.formats.native.library import VARIABLE, find_library

FAQ = Path(__file__).resolve().parents[3] / "docs/guide/faq.md"


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_an_installation_with_a_compiler_has_the_library_of_these_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_library() is not None, "the sources have changed: install once more (make does)"


@needs_library
def test_the_environment_can_turn_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert find_library() is None
    monkeypatch.setenv(VARIABLE, "1")
    assert find_library() is not None


@needs_library
def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries._installed.cache_clear()
    checksum = sources_checksum() ^ 1
    monkeypatch.setattr(building, "sources_checksum", lambda: checksum)
    assert find_library() is None
    libraries._installed.cache_clear()


@pytest.mark.parametrize("content", [None, b"", b"no library"])
def test_where_there_is_no_library_there_is_no_error(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "decoder.so").write_bytes(content)
    libraries._installed.cache_clear()
    monkeypatch.setattr(libraries, "LIBRARY", tmp_path / "decoder.so")
    assert find_library() is None
    libraries._installed.cache_clear()


def test_formats_says_what_reads_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "decoder.so"
    monkeypatch.setattr(libraries, "LIBRARY", library)

    def told() -> str:
        libraries._installed.cache_clear()
        (line,) = [line for line in run("formats", capsys=capsys)[1].splitlines() if "read here by" in line]
        (fmt,) = [each for each in json.loads(run("formats", "--json", capsys=capsys)[1])["formats"] if each["read_by"]]
        assert (fmt["name"], f"  read here by: {fmt['read_by']}") == ("kineto", line)
        assert f"| `{fmt['read_by'].partition(':')[0]}" in FAQ.read_text("utf-8")
        return str(fmt["read_by"])

    monkeypatch.delenv(VARIABLE, raising=False)
    assert told() == (
        "Python alone, since the library in C++ wasn't built: install from source where a C++ compiler is"
    )
    library.write_bytes(b"no library")
    assert told() == (
        "Python alone, since the library in C++ doesn't load here or is of another version: install again"
    )
    monkeypatch.setenv(VARIABLE, "0")
    assert told() == "Python alone, since INFEROMETER_NATIVE=0"
    if building.is_current(building.LIBRARY):
        monkeypatch.setattr(libraries, "LIBRARY", building.LIBRARY)
        monkeypatch.setenv(VARIABLE, "1")
        assert told() == "the library in C++ (INFEROMETER_NATIVE=0 turns it off)"
    libraries._installed.cache_clear()


def test_a_changed_source_changes_the_checksum(tmp_path: Path) -> None:
    one, other = tmp_path / "native", tmp_path / "some" / "native"
    for folder in (one, other):
        folder.mkdir(parents=True)
        (folder / "a.h").write_text("int a;")
        (folder / "b.cpp").write_text("int b;")
    checksums = [sources_checksum(tmp_path)]
    (one / "c.py").write_text("c = 1")
    assert sources_checksum(tmp_path) == checksums[0]
    for source in (one / "a.h", other / "b.cpp"):
        source.write_text("int c;")
        checksums.append(sources_checksum(tmp_path))
    assert len({*checksums}) == 3


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("#!/bin/sh\necho 'x.h:1: error: no' >&2; exit 1", "c++: x.h:1: error: no"),
        ("#!/bin/sh\nexit 3", "c++: exit code 3"),
        (None, "there is no C++ compiler"),
    ],
)
def test_a_compiler_that_fails_leaves_nothing_and_says_why(
    compiler: str | None, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools, target = tmp_path / "bin", tmp_path / "target"
    tools.mkdir()
    target.mkdir()
    if compiler:
        (tools / "c++").write_text(compiler)
        (tools / "c++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match=message.replace("+", r"\+")):
        build(library=target / "decoder.so")
    assert [*target.iterdir()] == []


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(BuildError, match="Linux and macOS"):
        build(library=tmp_path / "decoder.so")
