"""What the server does for each address of `routes.py`. A client names runs and jobs by numbers of ours."""

import asyncio
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer import __version__
from inferometer.errors import InputError
from inferometer.reports.serve import requests
from inferometer.reports.serve.answers import Answer, Bytes, Events, HtmlFile, Json, Missing, NoFile, NotKept
from inferometer.reports.serve.files import find_file
from inferometer.reports.serve.jobs import Job
from inferometer.reports.serve.runs import Run
from inferometer.reports.serve.state import LINE, State
from inferometer.reports.serve.uploads import Uploads

if TYPE_CHECKING:
    from starlette.requests import Request

_KEY = re.compile(r"[0-9a-f]{32}")
_MOST_ROWS = 10_000
_OF_ONE_RUN = ("about", "page", "line", "query")
_OF_TWO_RUNS = ("pair_page", "verdict")
_OF_FLEETS = ("about", "page", "query")


class Endpoints:
    """All of them, over one state. `page_token` begins the addresses of reports.

    Each may raise `InferometerError`, which becomes an answer that says why.
    """

    def __init__(self, state: State, page_token: str) -> None:
        self._state = state
        self._page_token = page_token

    async def app_file(self, request: "Request") -> Answer:
        """A file of the app."""
        found = find_file(request.path_params.get("name", ""))
        if found is None:
            raise NoFile
        return Bytes(*found)

    async def report(self, request: "Request") -> Answer:
        """A page that a job made."""
        key = request.path_params["key"]
        place = self._state.kept.find(key) / "page.html" if _KEY.fullmatch(key) else None
        if place is None or not place.is_file():
            raise NoFile
        return HtmlFile(place)

    async def overview(self, request: "Request") -> Answer:
        """Runs, jobs that aren't over, and what may be done."""
        state = self._state
        return Json(
            {
                "version": __version__,
                "pages": f"/{self._page_token}/pages/",
                "may_write": state.uploads is not None,
                "is_whole": state.library.is_whole,
                "unfollowed": state.library.unfollowed,
                "runs": state.rows(),
                "jobs": [job.as_json(is_whole=False) for job in state.jobs.known.values() if not job.is_over],
            }
        )

    async def events(self, request: "Request") -> Answer:
        """Changes of jobs and runs, as they come."""
        return Events(self._state.hub.listen())

    async def tables(self, request: "Request") -> Answer:
        """The documented tables, for questions in SQL."""
        return Json(_tables(of_fleets=request.query_params.get("of") == "fleet"))

    async def begin_job(self, request: "Request") -> Answer:
        """Begin a job, or join one that does the same."""
        asked = msgspec.json.decode(await requests.read_body(request), type=requests.JobRequest)
        runs = self._runs_of(asked)
        most_rows = min(max(asked.most_rows, 1), _MOST_ROWS) if asked.kind == "query" else 0
        work = self._state.work(asked.kind, *runs, query=asked.query, most_rows=most_rows)
        page = self._state.page_of(*runs) if asked.kind in ("page", "pair_page") else None
        return Json({**self._state.jobs.start(work).as_json(), "page": page}, 202)

    async def job(self, request: "Request") -> Answer:
        """A job with its whole result."""
        return _found_job(self._state.jobs.known.get(request.path_params["id"]))

    async def cancel_job(self, request: "Request") -> Answer:
        """End a job."""
        return _found_job(self._state.jobs.cancel(request.path_params["id"]))

    async def live(self, request: "Request") -> Answer:
        """What came into a recording since then."""
        return Json(await self._state.readers.live(self._run(request), requests.since(request)))

    async def line(self, request: "Request") -> Answer:
        """The whole time line of a run, as a screen shows it."""
        return Bytes(await self._state.readers.line(self._line(request)))

    async def rows(self, request: "Request") -> Answer:
        """A window of the time line."""
        window = requests.whole(request, "start"), requests.whole(request, "end")
        lanes, pixels = requests.lanes(request), requests.whole(request, "pixels")
        return Bytes(await self._state.readers.rows(self._line(request), lanes, window, pixels))

    async def sums(self, request: "Request") -> Answer:
        """Counts and times of a range of the time line."""
        start, end = requests.whole(request, "start"), requests.whole(request, "end")
        return Json(await self._state.readers.sums(self._line(request), start, max(start, end)))

    async def found(self, request: "Request") -> Answer:
        """The next event of the time line with some words."""
        at = requests.whole(request, "at"), requests.whole(request, "row")
        words, by = requests.words(request), requests.direction(request)
        return Bytes(await self._state.readers.found(self._line(request), words, at, by))

    async def upload(self, request: "Request") -> Answer:
        """Keep a file."""
        state, uploads = self._state, self._uploads()
        name, size = request.query_params.get("name", ""), requests.content_length(request)
        place = await uploads.take(name, request.stream(), size)
        state.library.add(uploads.folder)
        await asyncio.to_thread(state.library.scan)
        state.hub.send({"runs": True})
        state.read_ahead()
        kept = next((run.id for run in state.library.runs.values() if run.path == place), None)
        return Json({"name": place.name, "id": kept}, 201)

    async def tag(self, request: "Request") -> Answer:
        """Name a run, besides its own name."""
        uploads, run = self._uploads(), self._run(request)
        uploads.tag(run.id, msgspec.json.decode(await requests.read_body(request), type=list[str]))
        self._state.hub.send({"runs": True})
        return Json({"tags": uploads.tags(run.id)})

    def _runs_of(self, asked: requests.JobRequest) -> tuple[Run, ...]:
        if asked.kind in _OF_TWO_RUNS:
            runs: tuple[Run, ...] = (self._known(asked.base), self._known(asked.candidate))
        elif asked.kind in _OF_ONE_RUN:
            runs = (self._known(asked.run),)
        else:
            raise InputError("the job: expected about, page, pair_page, verdict, line or query, found another kind")
        if asked.kind not in _OF_FLEETS and (fleets := [run for run in runs if run.kind == "fleet"]):
            raise InputError(f"{fleets[0].title}: of a fleet, expected {', '.join(_OF_FLEETS)}, found {asked.kind}")
        return runs

    def _known(self, id: str | None) -> Run:
        found = self._state.library.runs.get(id or "")
        if found is None:
            raise Missing("there is no such run: it was removed or changed its name")
        return found

    def _run(self, request: "Request") -> Run:
        return self._known(request.path_params["id"])

    def _line(self, request: "Request") -> Path:
        """The folder of a run's time line."""
        place = self._state.kept.find(self._run(request).key) / LINE
        if not place.is_dir():
            raise Missing("the time line isn't laid out: begin a job of the kind line")
        return place

    def _uploads(self) -> Uploads:
        if self._state.uploads is None:
            raise NotKept("nothing is kept: start the server with --keep FOLDER")
        return self._state.uploads


def _found_job(job: Job | None) -> Answer:
    if job is None:
        raise Missing("there is no such job")
    return Json(job.as_json())


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
