"""`inferometer serve` before it serves: options, a port that is taken, a folder that isn't there, a missing extra."""

import importlib.util
import socket
from pathlib import Path

import pytest
from tests.commands.test_command_line import run

NEEDS_THE_EXTRA = pytest.mark.skipif(importlib.util.find_spec("uvicorn") is None, reason="needs the extra serve")
TOKEN = "abcdefghijklmnop"


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else object())
    assert run("serve", capsys=capsys) == (
        *(4, ""),
        f"error: {package} is not installed\n  pip install 'inferometer[serve]'\n",
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("serve", "--host", host, capsys=capsys)

    assert (code, out) == (2, "")
    assert f"--host {host} is reached by other machines: choose a secret with --token." in err


@pytest.mark.parametrize(
    "token", ["short", "a" * 15, "with/slash/and/more", "with space and more", "ümlaut-ümlaut-ümlaut"]
)
def test_a_token_is_long_and_fits_into_an_address(token: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("serve", "--token", token, capsys=capsys)

    assert (code, out) == (2, "")
    assert "--token: expected at least 16 letters, digits, - and _." in err


@NEEDS_THE_EXTRA
def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = run("serve", tmp_path, "--port", port, capsys=capsys)

    assert found == (
        *(3, ""),
        f"error: 127.0.0.1, port {port}: Address already in use\n  Name another --port, or none for a free one.\n",
    )


@NEEDS_THE_EXTRA
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("{0}/absent",), "error: {0}/absent: no such file or folder\n  Name files, stores or folders.\n"),
        (("a\0b",), "error: a\0b: no such file or folder\n"),
        (("/dev/null",), "error: /dev/null: expected a file or a folder, found something else\n"),
        (("sample:nothing",), 'error: unknown sample "nothing"\n'),
        (("{0}", "--keep", "{0}/absent"), "error: {0}/absent: expected a folder to keep files in, found none\n"),
    ],
)
def test_a_path_that_is_none_is_refused(
    words: tuple[str, ...], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("serve", *(word.format(tmp_path) for word in words), capsys=capsys)

    assert (code, out) == (3, "")
    assert err.startswith(error.format(tmp_path).replace("\0", "\\x00"))


@NEEDS_THE_EXTRA
def test_tags_that_somebody_broke_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".inferometer-tags").write_text('{"run": 7}')

    code, _, err = run("serve", tmp_path, "--keep", tmp_path, capsys=capsys)

    assert code == 3
    assert f"error: {tmp_path}/.inferometer-tags: expected a list of tags: Expected `array`, got `int`" in err
