"""What the server knows: runs with what jobs found of them, jobs, and the pages that hear of changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from inferometer.errors import printable
from inferometer.reports.serve.jobs import Job, Jobs, Work
from inferometer.reports.serve.kept import Kept, key_of
from inferometer.reports.serve.readers import Readers
from inferometer.reports.serve.runs import Library, Run
from inferometer.reports.serve.uploads import Uploads
from inferometer.reports.serve.work.opened import JobRun, text_of

LINE = "line"
"""The folder of a time line in a kept place."""

_RESULTS = {
    "about": "about.json",
    "page": "page.html",
    "pair_page": "page.html",
    "verdict": "verdict.json",
    "line": f"{LINE}.json",
}
"""The file in a kept place that has the result of a kind of job."""

READ_AHEAD_BYTES = 64 << 20
"""A file of at most this is read before somebody opens it, for the list to say what it is; a store always is."""
_AHEAD = 8  # that wait at once
_NEWEST = 500  # of which the list says what they are unasked
_MOST_EVENTS = 1_000  # that a page may lag behind
_HEARTBEAT_S = 15.0


class Hub:
    """Sends changes to all pages that are open. One that lags too far behind is dropped, and asks anew."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()

    def send(self, event: dict[str, Any]) -> None:
        """Send an event to all pages."""
        text = b"data: " + msgspec.json.encode(event) + b"\n\n"
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(text)

    def close(self) -> None:
        """End all streams."""
        for queue in self._queues:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)

    async def listen(self) -> AsyncIterator[bytes]:
        """Events from now on."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_EVENTS)
        self._queues.add(queue)
        try:
            yield b": here\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _HEARTBEAT_S)
                except TimeoutError:
                    event = b": still\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._queues.discard(queue)


@dataclass
class State:
    """All of it. `is_limited`: whether readers have the limits of the command line."""

    library: Library
    kept: Kept
    jobs: Jobs
    readers: Readers
    hub: Hub
    uploads: Uploads | None = None
    is_limited: bool = True
    abouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def work(self, kind: str, *runs: Run, is_waited_for: bool = True, query: str = "", most_rows: int = 0) -> Work:
        """The work of a kind on a run, or on a base and a candidate."""
        names = ("run",) if len(runs) == 1 else ("base", "candidate")
        arguments: dict[str, Any] = {name: self._job_run(run) for name, run in zip(names, runs, strict=True)}
        of = tuple(run.key for run in runs)
        result = None
        if kind == "query":
            arguments |= {"query": query, "most_rows": most_rows}
        else:
            place = self.kept.place(self.page_of(*runs))
            result = place / _RESULTS[kind]
            if kind != "about":  # which is kept with the run
                arguments["target"] = str(place / LINE if kind == "line" else result)
        return Work(
            kind=kind,
            key=key_of(kind, *of, query, most_rows),
            title=" and ".join(run.title for run in runs),
            of=of,
            arguments=arguments,
            result=result,
            is_waited_for=is_waited_for,
        )

    def page_of(self, *runs: Run) -> str:
        """The name of the kept place that has the page of a run, or of two."""
        return key_of("pair", *(run.key for run in runs)) if len(runs) > 1 else runs[0].key

    def heard(self, job: Job) -> None:
        """A job changed: what it found of a run is remembered, and pages hear of it."""
        if job.work.kind == "about" and job.is_over:
            key = job.work.of[0]
            if job.state == "done":
                self.abouts[key] = job.result
                self.failures.pop(key, None)
            else:
                self.failures[key] = job.error or "Reading it was cancelled."
            self.hub.send({"runs": True})
        self.hub.send({"job": job.as_json(is_whole=False)})

    def read_ahead(self) -> None:
        """Begin to read what the list has nothing to say of yet, the newest first."""
        waiting = sum(not job.is_over and job.work.kind == "about" for job in self.jobs.known.values())
        newest = sorted(self.library.runs.values(), key=lambda run: run.changed_ns, reverse=True)[:_NEWEST]
        for run in newest:
            if waiting >= _AHEAD:
                return
            if self._wants_reading(run):
                waiting += not self.jobs.start(self.work("about", run, is_waited_for=False)).is_over

    def rows(self) -> list[dict[str, Any]]:
        """The list of runs."""
        return [self._row(run) for run in self.library.runs.values()]

    def _wants_reading(self, run: Run) -> bool:
        if run.is_recording or run.key in self.abouts or run.key in self.failures:
            return False
        return run.kind in ("store", "fleet") or run.bytes <= READ_AHEAD_BYTES

    def _row(self, run: Run) -> dict[str, Any]:
        changed = datetime.fromtimestamp(run.changed_ns / 1e9, UTC).isoformat(timespec="seconds")
        return {
            "id": run.id,
            "key": run.key,
            "name": run.title,
            "place": printable(run.place),
            "kind": run.kind,
            "bytes": run.bytes,
            "changed": changed,
            "is_recording": run.is_recording,
            "about": self.abouts.get(run.key),
            "error": self.failures.get(run.key),
            "tags": [] if self.uploads is None else self.uploads.tags(run.id),
        }

    def _job_run(self, run: Run) -> JobRun:
        place = str(self.kept.place(run.key))
        return JobRun(path=text_of(run.path), kind=run.kind, kept=place, title=run.title, is_limited=self.is_limited)
