"""The addresses of the server, and what an error becomes; `endpoints.py` has what each of them does.

GET    /                       the app; /NAME.js, /NAME.css: its files
GET    /api/state              runs, jobs that aren't over, what may be done
GET    /api/events             server-sent events: a job as it changes, that runs changed
GET    /api/tables             the documented tables and columns, of runs or `of` fleets
POST   /api/jobs               begin one: kind, run or base and candidate, query
GET    /api/jobs/ID            a job with its whole result; DELETE ends it
GET    /api/runs/ID/live       what came into a recording `since` then
GET    /api/runs/ID/line       the time line that a job laid out, packed (`reports/page/time_line/pack.py`)
GET    /api/runs/ID/rows       a window of it: lanes, start, end, pixels
GET    /api/runs/ID/sums       of each lane and category, what is in a range: start, end
GET    /api/runs/ID/found      the next event with some words, packed: words, at, row, by
POST   /api/uploads?name=NAME  keep a file
PUT    /api/runs/ID/tags       what a run is called, too
GET    /pages/KEY              a report, for its frame (`security.py`)
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from inferometer.errors import InferometerError
from inferometer.reports.serve.answers import Answer, Missing, NoFile, NotKept, as_response, no_file, refusal
from inferometer.reports.serve.endpoints import Endpoints
from inferometer.reports.serve.state import State
from inferometer.reports.serve.uploads import TooLarge

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_STATUS: tuple[tuple[type[InferometerError], int], ...] = (
    (Missing, 404),
    (NotKept, 403),
    (TooLarge, 413),
    (InferometerError, 422),
)
"""HTTP status of errors: the first class that fits."""


def make_routes(state: State, page_token: str) -> "list[Route]":
    """All routes; `page_token` begins the addresses of reports."""
    from starlette.routing import Route

    of = Endpoints(state, page_token)
    routes = (
        ("GET", "/api/state", of.overview),
        ("GET", "/api/events", of.events),
        ("GET", "/api/tables", of.tables),
        ("POST", "/api/jobs", of.begin_job),
        ("GET", "/api/jobs/{id}", of.job),
        ("DELETE", "/api/jobs/{id}", of.cancel_job),
        ("GET", "/api/runs/{id}/live", of.live),
        ("GET", "/api/runs/{id}/line", of.line),
        ("GET", "/api/runs/{id}/rows", of.rows),
        ("GET", "/api/runs/{id}/sums", of.sums),
        ("GET", "/api/runs/{id}/found", of.found),
        ("POST", "/api/uploads", of.upload),
        ("PUT", "/api/runs/{id}/tags", of.tag),
        ("GET", "/pages/{key}", of.report),
        ("GET", "/", of.app_file),
        ("GET", "/{name}", of.app_file),
    )
    return [Route(path, _answering(endpoint), methods=[method]) for method, path, endpoint in routes]


def _answering(
    endpoint: "Callable[[Request], Awaitable[Answer]]",
) -> "Callable[[Request], Awaitable[Response]]":
    """The endpoint with its answer, or the error that it raises, as a response."""

    async def respond(request: "Request") -> "Response":
        try:
            return as_response(await endpoint(request))
        except NoFile:
            return no_file()
        except InferometerError as error:
            status = next(status for kind, status in _STATUS if isinstance(error, kind))
            return refusal(str(error), status)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return refusal(f"the request: {error}", 400)

    return respond
