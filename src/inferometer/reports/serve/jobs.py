"""Jobs: work on recordings, in other processes, with progress and cancel. No hostile file ends the server.

A process that did a short job does the next one, since it takes seconds to start; cancelling a job ends its process.
A job whose result is kept is done at once. Two that ask for the same are one. At most two run at once, of those that
nobody waits for one; the others wait in order.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec

from inferometer.errors import clean
from inferometer.guarded import machine_bytes

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
MEMORY_SHARE = 0.5  # of the machine's, for one job
_LEAST_MEMORY = 2 << 30
_LONGEST_LINE = 64 << 20
_KEPT_JOBS = 200  # that are over, for a page that asks late
_KEPT_ANSWERS = 8  # with all their rows
_LARGEST_KEPT = 16 << 20
_SHORT_S = 5.0  # who worked for longer has taken memory
_START = "import sys; sys.path[:] = sys.argv[2:]; from inferometer.reports.serve.work.main import main; main()"


@dataclass(frozen=True)
class Work:
    """What a job is to do.

    Attributes:
        kind: One of `work/kinds.py`.
        key: Equal for work that does the same.
        title: What people call it.
        of: The keys of the runs that it is about.
        arguments: What the kind is called with.
        result: The file that has the result of the last time, where it is kept; of a page, its being there is enough.
        is_waited_for: Whether a page waits for it; else it is read ahead, for the list.
    """

    kind: str
    key: str
    title: str
    of: tuple[str, ...]
    arguments: Mapping[str, Any]
    result: Path | None = None
    is_waited_for: bool = True


@dataclass
class Job:
    """One job: its work, how far it is, and what came of it."""

    id: str
    work: Work
    state: JobState = "queued"
    doing: str = ""
    share: float | None = None
    result: Any = None
    error: str | None = None
    begun: float = field(default_factory=time.time)
    ended: float | None = None
    task: "asyncio.Task[None] | None" = None

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return self.state in ("done", "failed", "cancelled")

    def as_json(self, *, is_whole: bool = True) -> dict[str, Any]:
        """What a page gets; without the rows of a question where it isn't `is_whole`."""
        return {
            "id": self.id,
            "kind": self.work.kind,
            "key": self.work.key,
            "title": self.work.title,
            "of": self.work.of,
            "state": self.state,
            "doing": self.doing,
            "share": self.share,
            "error": self.error,
            "result": self.result if is_whole or self.work.kind != "query" else None,
            "seconds": (self.ended or time.time()) - self.begun,
        }


class Jobs:
    """All jobs of a server. Its methods are called in the server's loop, and `on_change` after each change of a job.

    Args:
        memory_bytes: Of address space, for one job.
    """

    def __init__(self, *, memory_bytes: int | None = None) -> None:
        self.memory_bytes = memory_bytes or usual_memory_bytes()
        self.known: dict[str, Job] = {}
        self.on_change: Callable[[Job], None] = lambda job: None
        self._numbers = count(1)
        self._places = asyncio.Semaphore(2)
        self._unhurried = asyncio.Semaphore(1)
        self._idle: list[asyncio.subprocess.Process] = []

    def start(self, work: Work) -> Job:
        """The job that does this: one that does it already, one that is done at once, or a new one."""
        for job in self.known.values():
            if job.work.key == work.key and not job.is_over:
                return job
        job = Job(str(next(self._numbers)), work)
        self.known[job.id] = job
        if work.result is not None and work.result.is_file():
            self._end(job, "done", result=_read(work.result))
        else:
            job.task = asyncio.create_task(self._run(job))
            self._changed(job)
        self._forget()
        return job

    def cancel(self, id: str) -> Job | None:
        """End a job and its process."""
        job = self.known.get(id)
        if job is not None and job.task is not None and not job.is_over:
            job.task.cancel()
        return job

    def in_use(self) -> set[str]:
        """The keys of runs that jobs are at work on, or wait to be."""
        return {key for job in self.known.values() if not job.is_over for key in job.work.of}

    async def close(self) -> None:
        """End all."""
        tasks = [job.task for job in self.known.values() if job.task is not None and not job.is_over]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for process in self._idle:
            _kill(process)
            await process.wait()

    async def _run(self, job: Job) -> None:
        try:
            if job.work.is_waited_for:
                async with self._places:
                    await self._work(job)
            else:
                async with self._unhurried, self._places:
                    await self._work(job)
        except asyncio.CancelledError:
            self._end(job, "cancelled")
        except (OSError, ValueError, msgspec.DecodeError) as error:
            self._end(job, "failed", error=f"its process can't be followed: {clean(str(error))}")

    async def _work(self, job: Job) -> None:
        job.state, job.begun = "running", time.time()
        self._changed(job)
        process = await self._process()
        assert process.stdin is not None
        assert process.stdout is not None
        is_whole = False
        try:
            with suppress(ConnectionError):
                process.stdin.write(
                    msgspec.json.encode({"kind": job.work.kind, "arguments": job.work.arguments}) + b"\n"
                )
                await process.stdin.drain()
            while not job.is_over and (line := await process.stdout.readline()):
                self._heard(job, msgspec.json.decode(line))
            is_whole = job.is_over
            if not job.is_over:
                self._end(job, "failed", error=self._fate(await process.wait()))
        finally:
            if is_whole and time.time() - job.begun < _SHORT_S:
                self._idle.append(process)
            else:
                _kill(process)
                await process.wait()

    async def _process(self) -> asyncio.subprocess.Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _START,
            str(self.memory_bytes),
            *(path for path in sys.path if path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for us
        )

    def _heard(self, job: Job, line: dict[str, Any]) -> None:
        if "result" in line:
            self._end(job, "done", result=line["result"])
        elif "error" in line:
            self._end(job, "failed", error=line["error"])
        else:
            job.doing, job.share = line["doing"], line["share"]
            self._changed(job)

    def _fate(self, status: int) -> str:
        ended = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return (
            f"the process that read it ended ({ended}; limit of memory: {self.memory_bytes >> 20:,} MiB)\n"
            "  Check the file, or start the server with more --memory."
        )

    def _end(self, job: Job, state: JobState, *, result: Any = None, error: str | None = None) -> None:
        job.state, job.result, job.error, job.ended = state, result, error, time.time()
        self._changed(job)

    def _changed(self, job: Job) -> None:
        self.on_change(job)

    def _forget(self) -> None:
        over = [job for job in self.known.values() if job.is_over]
        for job in over[:-_KEPT_JOBS]:
            del self.known[job.id]
        for job in [job for job in over if job.work.kind == "query"][:-_KEPT_ANSWERS]:
            job.result = None


def usual_memory_bytes() -> int:
    """`MEMORY_SHARE` of what the machine has, at least 2 GiB; 8 GiB where that isn't known."""
    machine = machine_bytes()
    return 4 * _LEAST_MEMORY if machine is None else max(_LEAST_MEMORY, int(MEMORY_SHARE * machine))


def _read(place: Path) -> Any:
    """The result that a job wrote; of a page only that it is there."""
    if place.suffix != ".json" or place.stat().st_size > _LARGEST_KEPT:
        return {"bytes": place.stat().st_size}
    return msgspec.json.decode(place.read_bytes())


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
