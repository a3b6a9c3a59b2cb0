"""What the server answers. A client names runs and jobs by numbers of ours, and files of a fixed list.

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

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer import __version__
from inferometer.errors import InferometerError, InputError
from inferometer.reports.page.time_line.markup import time_line_css, time_line_module
from inferometer.reports.serve.runs import Run
from inferometer.reports.serve.state import LINE, State
from inferometer.reports.serve.uploads import TooLarge

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_MODULES = ("api", "app", "dom", "jobs", "line", "list", "live", "run", "sql", "tags", "uploads")
_FILES = {"": "index.html", "app.css": "app.css"} | {f"{name}.js": f"{name}.js" for name in _MODULES}
_KEY = re.compile(r"[0-9a-f]{32}")
_MOST_JSON = 1 << 20
_MOST_ROWS = 10_000
_MOST_LANES = 1_000
_LONGEST_WORDS = 1_000
_STEPS = {"1": 1, "-1": -1}
_OF_FLEETS = ("about", "page", "query")
_LONGEST_NUMBER = 16  # digits; times end at 2^53


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """A job that a page asks for."""

    kind: str
    run: str | None = None
    base: str | None = None
    candidate: str | None = None
    query: str = ""
    most_rows: int = 1_000


def make_routes(state: State, page_token: str) -> "list[Route]":
    """All of them."""
    from starlette.responses import FileResponse, Response, StreamingResponse
    from starlette.routing import Route

    def answer(data: Any, status: int = 200) -> Response:
        return Response(msgspec.json.encode(data), status, media_type="application/json")

    def run_of(id: str | None) -> Run:
        found = state.library.runs.get(id or "")
        if found is None:
            raise _Missing("there is no such run: it was removed or changed its name")
        return found

    async def page_file(request: "Request") -> "Response":
        name = request.path_params.get("name", "")
        if name in _OF_THE_PAGE:
            return Response(_OF_THE_PAGE[name](), media_type=_TYPES[name.rpartition(".")[2]])
        if name not in _FILES:
            return Response(status_code=404)
        return Response(_file(_FILES[name]), media_type=_TYPES[_FILES[name].rpartition(".")[2]])

    async def report(request: "Request") -> "Response":
        key = request.path_params["key"]
        place = state.kept.find(key) / "page.html" if _KEY.fullmatch(key) else None
        if place is None or not place.is_file():
            return Response(status_code=404)
        return FileResponse(place, media_type="text/html")

    async def whole_state(request: "Request") -> "Response":
        return answer(
            {
                "version": __version__,
                "pages": f"/{page_token}/pages/",
                "may_write": state.uploads is not None,
                "is_whole": state.library.is_whole,
                "runs": state.rows(),
                "jobs": [job.as_json(is_whole=False) for job in state.jobs.known.values() if not job.is_over],
            }
        )

    async def events(request: "Request") -> "Response":
        return StreamingResponse(state.hub.listen(), media_type="text/event-stream")

    async def tables(request: "Request") -> "Response":
        return answer(_tables(of_fleets=request.query_params.get("of") == "fleet"))

    async def begin(request: "Request") -> "Response":
        asked = msgspec.json.decode(await _body(request), type=Asked)
        if asked.kind in ("pair_page", "verdict"):
            runs: tuple[Run, ...] = (run_of(asked.base), run_of(asked.candidate))
        elif asked.kind in ("about", "page", "line", "query"):
            runs = (run_of(asked.run),)
        else:
            raise InputError("the job: expected about, page, pair_page, verdict, line or query, found another kind")
        if asked.kind not in _OF_FLEETS and (fleets := [run for run in runs if run.kind == "fleet"]):
            raise InputError(f"{fleets[0].title}: of a fleet, expected {', '.join(_OF_FLEETS)}, found {asked.kind}")
        most_rows = min(max(asked.most_rows, 1), _MOST_ROWS) if asked.kind == "query" else 0
        work = state.work(asked.kind, *runs, query=asked.query, most_rows=most_rows)
        page = state.page_of(*runs) if asked.kind in ("page", "pair_page") else None
        return answer({**state.jobs.start(work).as_json(), "page": page}, 202)

    async def job(request: "Request") -> "Response":
        id = request.path_params["id"]
        found = state.jobs.cancel(id) if request.method == "DELETE" else state.jobs.known.get(id)
        if found is None:
            raise _Missing("there is no such job")
        return answer(found.as_json())

    async def live(request: "Request") -> "Response":
        since = _number(request.query_params.get("since", "-1"))
        return answer(await state.readers.live(run_of(request.path_params["id"]), since))

    def line_of(run: Run) -> Path:
        place = state.kept.find(run.key) / LINE
        if not place.is_dir():
            raise _Missing("the time line isn't laid out: begin a job of the kind line")
        return place

    async def line(request: "Request") -> "Response":
        packed = await state.readers.line(line_of(run_of(request.path_params["id"])))
        return Response(packed, media_type="application/octet-stream")

    async def rows(request: "Request") -> "Response":
        asked = request.query_params
        lanes = [_whole("lanes", lane) for lane in asked.get("lanes", "").split(",")[:_MOST_LANES]]
        window = _whole("start", asked.get("start")), _whole("end", asked.get("end"))
        pixels = _whole("pixels", asked.get("pixels"))
        packed = await state.readers.rows(line_of(run_of(request.path_params["id"])), lanes, window, pixels)
        return Response(packed, media_type="application/octet-stream")

    async def sums(request: "Request") -> "Response":
        asked = request.query_params
        start, end = _whole("start", asked.get("start")), _whole("end", asked.get("end"))
        return answer(await state.readers.sums(line_of(run_of(request.path_params["id"])), start, max(start, end)))

    async def find(request: "Request") -> "Response":
        asked = request.query_params
        at, by = (_whole("at", asked.get("at")), _whole("row", asked.get("row"))), _STEPS.get(asked.get("by", ""), 0)
        words = asked.get("words", "")[:_LONGEST_WORDS].encode("utf-8", "replace").decode()
        packed = await state.readers.found(line_of(run_of(request.path_params["id"])), words, at, by)
        return Response(packed, media_type="application/octet-stream")

    async def upload(request: "Request") -> "Response":
        if state.uploads is None:
            return _refusal(answer, "nothing is kept: start the server with --keep FOLDER", 403)
        length = request.headers.get("content-length", "")
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None
        place = await state.uploads.take(request.query_params.get("name", ""), request.stream(), size)
        state.library.add(state.uploads.folder)
        await asyncio.to_thread(state.library.scan)
        state.hub.tell({"runs": True})
        state.read_ahead()
        kept = next((run.id for run in state.library.runs.values() if run.path == place), None)
        return answer({"name": place.name, "id": kept}, 201)

    async def tag(request: "Request") -> "Response":
        if state.uploads is None:
            return _refusal(answer, "nothing is kept: start the server with --keep FOLDER", 403)
        run = run_of(request.path_params["id"])
        state.uploads.tag(run.id, msgspec.json.decode(await _body(request), type=list[str]))
        state.hub.tell({"runs": True})
        return answer({"tags": state.uploads.tags(run.id)})

    routes: list[tuple[str, Callable[[Request], Awaitable[Response]], str]] = [
        ("/api/state", whole_state, "GET"),
        ("/api/events", events, "GET"),
        ("/api/tables", tables, "GET"),
        ("/api/jobs", begin, "POST"),
        ("/api/jobs/{id}", job, "GET DELETE"),
        ("/api/runs/{id}/live", live, "GET"),
        ("/api/runs/{id}/line", line, "GET"),
        ("/api/runs/{id}/rows", rows, "GET"),
        ("/api/runs/{id}/sums", sums, "GET"),
        ("/api/runs/{id}/found", find, "GET"),
        ("/api/uploads", upload, "POST"),
        ("/api/runs/{id}/tags", tag, "PUT"),
        ("/pages/{key}", report, "GET"),
        ("/", page_file, "GET"),
        ("/{name}", page_file, "GET"),
    ]
    return [Route(path, _told(end, answer), methods=methods.split()) for path, end, methods in routes]


class _Missing(InputError):
    """What was asked for isn't there."""


def _told(
    end: "Callable[[Request], Awaitable[Response]]", answer: "Callable[..., Response]"
) -> "Callable[[Request], Awaitable[Response]]":
    """With errors of ours as answers."""

    async def told(request: "Request") -> "Response":
        try:
            return await end(request)
        except _Missing as error:
            return _refusal(answer, str(error), 404)
        except TooLarge as error:
            return _refusal(answer, str(error), 413)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _refusal(answer, f"the request: {error}", 400)
        except InferometerError as error:
            return _refusal(answer, str(error), 422)

    return told


def _refusal(answer: "Callable[..., Response]", error: str, status: int) -> "Response":
    found = answer({"error": error}, status)
    found.headers["connection"] = "close"  # a body may be left unread
    return found


async def _body(request: "Request") -> bytes:
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > _MOST_JSON:
            raise TooLarge(f"the request: expected at most {_MOST_JSON:,} bytes, found more")
    return bytes(body)


def _whole(name: str, text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise InputError(f"{name}: expected a whole number, found {(text or 'nothing')[:40]!r}")
    return int(text)


def _number(text: str) -> float:
    try:
        return min(max(float(text), -1.0), 1e15)
    except ValueError:
        raise InputError(f"since: expected seconds, found {text[:40]!r}") from None


@cache
def _file(name: str) -> bytes:
    return (files("inferometer.reports.serve") / "assets" / name).read_bytes()


@cache
def _page_style() -> bytes:
    """The colours and shapes that reports have."""
    return (files("inferometer.reports.page") / "page.css").read_bytes()


_OF_THE_PAGE: Mapping[str, Callable[[], bytes]] = {
    "page.css": _page_style,
    "time_line.css": lambda: time_line_css().encode(),
    "time_line.js": lambda: time_line_module().encode(),
}


@cache
def _tables(*, of_fleets: bool) -> list[dict[str, Any]]:
    from inferometer.fleet.joined import JOINED
    from inferometer.fleet.tables import SOURCES
    from inferometer.trace.tables import TABLES

    tables = {**JOINED, SOURCES.name: SOURCES} if of_fleets else TABLES
    return [
        {
            "name": table.name,
            "row": table.row,
            "columns": [
                {"name": column.name, "type": str(column.dtype), "meaning": column.meaning} for column in table.columns
            ],
        }
        for table in tables.values()
    ]
