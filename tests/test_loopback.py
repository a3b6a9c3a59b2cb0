import socket

import pytest

from inferometer.loopback import HEADERS, OWN_FILES_ONLY, Door, is_loopback, new_token

DOOR = Door("t" * 24, 8080)


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (f"/{'t' * 24}/", ""),
        (f"/{'t' * 24}/a/b", "a/b"),
        (f"/{'t' * 24}", None),
        (f"/{'t' * 23}/", None),
        (f"//{'t' * 24}/", None),
        ("/", None),
        ("", None),
        ("/ü\ud800/", None),
    ],
)
def test_an_address_begins_with_the_token(path: str, rest: str | None) -> None:
    assert DOOR.rest_of(path, "127.0.0.1:8080") == rest


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1:8080", True),
        ("localhost:8080", True),
        ("[::1]:8080", True),
        ("127.0.0.1", False),
        ("127.0.0.1:80", False),
        ("evil.example:8080", False),
        ("10.0.0.1:8080", False),
        ("127.0.0.1.evil.example:8080", False),
        (":8080", False),
        ("", False),
        (None, False),
    ],
)
def test_on_loopback_we_are_called_by_three_names(host: str | None, is_ours: bool) -> None:
    assert DOOR.is_ours(host) is is_ours


def test_elsewhere_we_are_called_by_numbers_and_the_machine_s_names_alone() -> None:
    door = Door("t" * 24, 8080, "0.0.0.0")

    for host in ("10.0.0.1:8080", "[2001:db8::1]:8080", f"{socket.gethostname()}:8080", "localhost:8080"):
        assert door.is_ours(host), host
    for host in ("evil.example:8080", "10.0.0.1:81", "10.0.0.1.evil.example:8080"):
        assert not door.is_ours(host), host


def test_a_change_comes_from_our_own_page_or_from_none() -> None:
    assert Door.is_from_us(None, "localhost:8080")
    assert Door.is_from_us("http://localhost:8080", "localhost:8080")
    for origin in ("http://127.0.0.1:8080", "https://localhost:8080", "null", "", "http://evil.example"):
        assert not Door.is_from_us(origin, "localhost:8080"), origin


@pytest.mark.parametrize(
    ("host", "is_it"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")],
)
def test_which_addresses_only_this_machine_reaches(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it


def test_tokens_differ_and_fit_into_an_address() -> None:
    tokens = {new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(len(token) == 32 and token.replace("-", "").replace("_", "").isalnum() for token in tokens)


def test_answers_are_kept_nowhere_and_framed_by_nobody() -> None:
    assert HEADERS["Cache-Control"] == "no-store"
    assert HEADERS["Referrer-Policy"] == "no-referrer"
    assert "unsafe" not in OWN_FILES_ONLY
    assert "frame-ancestors 'none'" in OWN_FILES_ONLY
