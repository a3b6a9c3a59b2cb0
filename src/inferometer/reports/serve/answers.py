"""What an endpoint answers: data, bytes, a file, or a stream of events; `as_response` makes a response of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.errors import InputError

if TYPE_CHECKING:
    from starlette.responses import Response


@dataclass(frozen=True)
class Json:
    """Plain data."""

    data: Any
    status: int = 200


@dataclass(frozen=True)
class Bytes:
    """A whole body; by default what `pack` makes of a time line."""

    body: bytes
    media_type: str = "application/octet-stream"


@dataclass(frozen=True)
class HtmlFile:
    """A page that a job wrote."""

    path: Path


@dataclass(frozen=True)
class Events:
    """Server-sent events, for as long as the client listens."""

    stream: AsyncIterator[bytes]


class NoFile(Exception):
    """There is no such file; the answer has no body."""


class Missing(InputError):
    """What was asked for isn't there."""


class NotKept(InputError):
    """Nothing that comes in is kept."""


Answer = Json | Bytes | HtmlFile | Events


def as_response(answer: Answer) -> "Response":
    """The response of Starlette."""
    from starlette.responses import FileResponse, Response, StreamingResponse

    match answer:
        case Json(data, status):
            return Response(msgspec.json.encode(data), status, media_type="application/json")
        case Bytes(body, media_type):
            return Response(body, media_type=media_type)
        case HtmlFile(path):
            return FileResponse(path, media_type="text/html")
        case Events(stream):
            return StreamingResponse(stream, media_type="text/event-stream")


def no_file() -> "Response":
    """The answer to `NoFile`."""
    from starlette.responses import Response

    return Response(status_code=404)


def refusal(error: str, status: int) -> "Response":
    """The answer to a request that can't be met, with the reason."""
    response = as_response(Json({"error": error}, status))
    response.headers["connection"] = "close"  # a body may be left unread
    return response
