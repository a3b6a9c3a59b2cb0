"""HTTP to one server and to nothing else: no proxies, no redirects, answers of bounded size and time.

Only the standard library is used. The API key goes into the `Authorization` header and into no message: where a server
sends it back, it is blotted out.
"""

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.errors import InputError, Unavailable
from inferometer.record.server.deadline import EndingHandler

MOST_BYTES = 8 << 20  # metrics of a large server take some 300 KB
_BLOCK_BYTES = 1 << 16
_SHOWN = 200


class NoAnswer(Unavailable):
    """Nothing came that is an answer in HTTP. `is_gone`: nobody listens, or the connection broke: no timeout."""

    def __init__(self, message: str, *, hint: str | None = None, is_gone: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_gone = is_gone


@dataclass(frozen=True)
class Answer:
    """What a server answered. `about`: method and address, for messages."""

    about: str
    status: int
    body: bytes
    content_type: str
    key: str | None = None

    @property
    def is_ok(self) -> bool:
        """Whether the server did what was asked."""
        return 200 <= self.status < 300

    @property
    def is_page(self) -> bool:
        """Whether it is a page for people, which no engine's interface sends."""
        return "html" in self.content_type or self.body[:100].lstrip().lower().startswith((b"<!doctype", b"<html"))

    @property
    def text(self) -> str:
        """The body as text, without the API key."""
        text = self.body.decode("utf-8", errors="replace")
        return text.replace(self.key, "***") if self.key else text

    def json(self) -> dict[str, Any]:
        """The object that the body holds, an empty one where it holds anything else."""
        try:
            found = msgspec.json.decode(self.body) if self.is_ok else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def describe(self) -> str:
        """Status and the beginning of the text, for messages."""
        text = "a web page" if self.is_page else " ".join(self.text[: 4 * _SHOWN].split())[:_SHOWN]
        return f"{self.status} {text}".rstrip()


class Http:
    """Asks the server at `url`; `api_key` is sent with every question.

    Raises:
        InputError: `url` is no address of a server, or the key can't be sent.
    """

    def __init__(self, url: str, api_key: str | None = None) -> None:
        self.url, self.host, self.port = _checked(url)
        if api_key is not None and (not api_key or not api_key.isascii() or not api_key.isprintable()):
            raise InputError("the API key holds characters that can't be sent", hint="Give it as one line of ASCII.")
        self._key = api_key

    def get(self, path: str, timeout_s: float) -> Answer:
        """GET. Raises `NoAnswer` for what is no answer, `InputError` for one that leads elsewhere or has no end."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: Mapping[str, object] | None, timeout_s: float) -> Answer:
        """POST, with `body` as JSON where there is one. Raises as `get`."""
        return self._ask("POST", path, body, timeout_s)

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float) -> Answer:
        headers = {"Accept": "*/*"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if method == "POST":
            headers["Content-Type"] = "application/json"
        data = msgspec.json.encode(body) if body is not None else b"" if method == "POST" else None
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        about, ends = f"{method} {self.url}{path}", time.monotonic() + timeout_s
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirects, EndingHandler(ends))
            with opener.open(request, timeout=timeout_s) as response:
                return self._answer(about, response.status, response, timeout_s)
        except urllib.error.HTTPError as error:
            with error:
                return self._answer(about, error.code, error, timeout_s)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_answer(about, error, timeout_s) from error

    def _answer(self, about: str, status: int, response: "_Response", timeout_s: float) -> Answer:
        headers = response.headers
        if 300 <= status < 400:
            raise InputError(
                f"{about}: the server sends elsewhere ({(headers.get('Location') or 'nowhere')[:_SHOWN]})",
                hint="Redirects are not followed: give the server's own address.",
            )
        try:
            read = _read(response, about)
        except (OSError, http.client.HTTPException) as error:
            raise _no_answer(about, error, timeout_s) from error
        return Answer(about, status, read, (headers.get("Content-Type") or "").lower(), self._key)


_Response = http.client.HTTPResponse | urllib.error.HTTPError


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect stays the answer that it is."""

    def redirect_request(self, *_: object) -> None:
        """Nothing is asked instead."""


def _checked(url: str) -> tuple[str, str, int]:
    """The address without its end, its host and its port."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(
            f"the server: expected http://HOST:PORT, found an address that can't be read ({error})"
        ) from error
    if parts.username or parts.password:
        raise InputError(
            "the server: its address holds a name or password", hint="Give the key with INFEROMETER_API_KEY."
        )
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or not url.isprintable():
        raise InputError(f"the server: expected http://HOST:PORT, found {url!r}", hint="As in http://127.0.0.1:8000.")
    path = urllib.parse.quote(parts.path.rstrip("/").removesuffix("/v1"), safe="/%")
    return f"{parts.scheme}://{parts.netloc}{path}", host, port or {"http": 80, "https": 443}[parts.scheme]


def _read(body: "_Response", about: str) -> bytes:
    """All of it, up to a size."""
    found = bytearray()
    read_some = getattr(body, "read1", body.read)
    while block := read_some(_BLOCK_BYTES):
        found += block
        if len(found) > MOST_BYTES:
            raise InputError(f"{about}: the answer is longer than {MOST_BYTES >> 20} MiB", hint="Is this an engine?")
    return bytes(found)


def _no_answer(about: str, error: Exception, timeout_s: float) -> NoAnswer:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return NoAnswer(
            f"{about}: no answer within {timeout_s:g} s", hint="Is the server busy, or still loading its model?"
        )
    if isinstance(cause, http.client.RemoteDisconnected | ConnectionError):
        why = "nobody listens there" if isinstance(cause, ConnectionRefusedError) else "the connection broke"
        return NoAnswer(f"{about}: {why}", hint="Is the server running, and is this its port?", is_gone=True)
    if isinstance(cause, http.client.HTTPException | ValueError):
        return NoAnswer(
            f"{about}: what answers there doesn't speak HTTP", hint="Is this the port of the server's HTTP interface?"
        )
    return NoAnswer(f"{about}: {cause}", hint="Check the address.", is_gone=True)
