"""What a client sent, read with limits: the body of a request, and the numbers and words of its query."""

from typing import TYPE_CHECKING

import msgspec

from inferometer.errors import InputError
from inferometer.reports.serve.uploads import TooLarge

if TYPE_CHECKING:
    from starlette.requests import Request

_MOST_BODY_BYTES = 1 << 20
_MOST_LANES = 1_000
_LONGEST_WORDS = 1_000
_LONGEST_NUMBER = 16  # digits; times end at 2^53
_LATEST_S = 1e15
_STEPS = {"1": 1, "-1": -1}


class JobRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A job that a page asks for."""

    kind: str
    run: str | None = None
    base: str | None = None
    candidate: str | None = None
    query: str = ""
    most_rows: int = 1_000


async def read_body(request: "Request") -> bytes:
    """The body of a request that holds JSON.

    Raises:
        TooLarge: It is larger than 1 MiB.
    """
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > _MOST_BODY_BYTES:
            raise TooLarge(f"the request: expected at most {_MOST_BODY_BYTES:,} bytes, found more")
    return bytes(body)


def whole(request: "Request", name: str) -> int:
    """A whole number of the query.

    Raises:
        InputError: It is none, or isn't there.
    """
    return _whole(name, request.query_params.get(name))


def lanes(request: "Request") -> list[int]:
    """The numbers of lanes, parted by commas; the first 1,000.

    Raises:
        InputError: One of them is none.
    """
    texts = request.query_params.get("lanes", "").split(",")
    return [_whole("lanes", text) for text in texts[:_MOST_LANES]]


def since(request: "Request") -> float:
    """Seconds of a recording's clock; -1 for all of it.

    Raises:
        InputError: It is no number.
    """
    text = request.query_params.get("since", "-1")
    try:
        return min(max(float(text), -1.0), _LATEST_S)
    except ValueError:
        raise InputError(f"since: expected seconds, found {text[:40]!r}") from None


def words(request: "Request") -> str:
    """What is looked for, as text that can be written as UTF-8."""
    text: str = request.query_params.get("words", "")
    return text[:_LONGEST_WORDS].encode("utf-8", "replace").decode()


def direction(request: "Request") -> int:
    """1 for the next, -1 for the one before; 0 for neither."""
    return _STEPS.get(request.query_params.get("by", ""), 0)


def content_length(request: "Request") -> int | None:
    """How many bytes the client says that it sends; None where it doesn't say."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _whole(name: str, text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise InputError(f"{name}: expected a whole number, found {(text or 'nothing')[:40]!r}")
    return int(text)
