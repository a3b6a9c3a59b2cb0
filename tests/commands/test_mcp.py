"""`inferometer mcp` before it serves: a missing extra, a root that is none."""

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest
from tests.commands.test_command_line import run


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    really = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else really(name))
    assert run("mcp", capsys=capsys) == (
        *(4, ""),
        "error: mcp is not installed\n  pip install 'inferometer[mcp]'\n",
    )


def test_the_first_version_of_the_sdk_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.30.0")
    assert run("mcp", capsys=capsys) == (
        *(4, ""),
        "error: mcp: expected version 2.3 or newer, found 1.30.0\n  pip install 'inferometer[mcp]'\n",
    )


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp")
    code, out, err = run("mcp", "--root", tmp_path / "absent", capsys=capsys)
    assert (code, out) == (3, "")
    assert err == f"error: {tmp_path / 'absent'}: expected a folder to read from, found none\n  Check --root.\n"
