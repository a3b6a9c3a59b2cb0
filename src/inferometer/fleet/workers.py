"""Processes that make digests, each within its memory: one that breaks a limit or dies takes no other with it.

A process that has read many files may hold memory that the next one lacks. So what fails in a used process is tried
once more in a new one: whether a trace can be read never depends on those before it.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Self

from inferometer.fleet.contents import hash_of
from inferometer.fleet.readers import ReadersClosed, Reading
from inferometer.fleet.reasons import setting_aside
from inferometer.fleet.remote import fetched
from inferometer.fleet.sources import Place
from inferometer.guarded import LEAST_BYTES, Guarded, GuardedError, machine_bytes
from inferometer.processes import own_cores

USUAL_MEMORY: Final = 2 << 30
_ONE_THREAD: Final = {  # a process for each core already; and sums of floats must not depend on how threads share them
    **dict.fromkeys(("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


@dataclass(frozen=True)
class WorkerLimits:
    """`memory_bytes` of data, and `seconds` of the processor for one trace. Not `limited`: files of any size."""

    memory_bytes: int
    seconds: float
    limited: bool = True


def usual_workers() -> int:
    """One for each core that we may use."""
    return len(own_cores())


def usual_memory(workers: int) -> int:
    """2 GiB each, or what leaves a quarter of the machine's memory to others."""
    machine = machine_bytes()
    return USUAL_MEMORY if machine is None else max(LEAST_BYTES, min(USUAL_MEMORY, machine * 3 // 4 // workers))


class Workers:
    """So many processes that serve `module`; each starts when it is first needed, and ends with the block."""

    def __init__(self, count: int, limits: WorkerLimits, module: str = "inferometer.fleet.worker") -> None:
        self.count = count
        self._limited, self._is_closed = limits.limited, False
        self._all = [
            Guarded(
                module,
                memory_bytes=limits.memory_bytes,
                seconds=limits.seconds,
                bounded="data",
                environment=_ONE_THREAD,
            )
            for _ in range(count)
        ]
        self._free: SimpleQueue[Guarded] = SimpleQueue()
        for each in self._all:
            self._free.put(each)

    @contextmanager
    def reading(self, place: Place) -> Iterator[Reading]:
        """As `Readers` has it; a file behind a URL is here until the block ends."""
        with ExitStack() as stack:
            with setting_aside(place.name, OSError):
                path = stack.enter_context(fetched(place.name)) if place.is_remote else Path(place.name)
                trace = hash_of(path)
            yield Reading(trace, lambda: self._digest_or_aside(str(path)))

    def _digest_or_aside(self, path: str) -> bytes:
        with setting_aside(path):
            return self.digest(path)

    def digest(self, path: str) -> bytes:
        """The packed digest of the trace at `path`, by the next process that is free. For several threads.

        Raises:
            GuardedError: It broke a limit, or ended the process, a new one, too.
            InputError: It can't be read.
            ReadersClosed: `close` was called meanwhile.
        """
        with self._one() as process:
            was_used = process.is_running
            try:
                return self._ask(process, path)
            except GuardedError:
                if not was_used:
                    raise
                process.close()
                return self._ask(process, path)

    def close(self) -> None:
        """End them all, also those at work."""
        self._is_closed = True
        for each in self._all:
            each.close()

    def _ask(self, process: Guarded, path: str) -> bytes:
        if self._is_closed:
            raise ReadersClosed
        try:
            made: bytes = process.call("make", os.fsencode(path), self._limited)
        except GuardedError:
            if self._is_closed:
                raise ReadersClosed from None
            raise
        return made

    @contextmanager
    def _one(self) -> Iterator[Guarded]:
        process = self._free.get()
        try:
            yield process
        finally:
            self._free.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
