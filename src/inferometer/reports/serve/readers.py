"""Processes that stay, to answer quickly: one looks at recordings that go on, one has a time line open.

As `guarded.py` has them: with limits of memory and time, and begun anew after a file ended one.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inferometer.errors import InferometerError, InputError, printable
from inferometer.guarded import Guarded
from inferometer.record.workers.parts import find_parts
from inferometer.reports.serve.runs import Run

_WORK = "inferometer.reports.serve.work"
_SECONDS = 20.0  # of the processor, for an answer


class Readers:
    """Both of them; they start when they are first asked."""

    def __init__(self, memory_bytes: int) -> None:
        self._live = Guarded(f"{_WORK}.live", memory_bytes=memory_bytes, seconds=_SECONDS)
        self._windows = Guarded(f"{_WORK}.windows", memory_bytes=memory_bytes, seconds=_SECONDS)

    def is_one(self, folder: str) -> bool:
        """Whether a format takes a folder as one profile; whatever ended the look, it isn't."""
        try:
            return bool(self._live.call("is_one", folder))
        except (InferometerError, UnicodeEncodeError):
            return False

    async def live(self, run: Run, since: float) -> dict[str, Any]:
        """What came into a recording after `since`. Raises what `work/live.py` does, or `GuardedError`."""
        stores = [*map(str, find_parts(run.path) if run.kind == "parts" else [run.path])]
        if not all(printable(store) == store for store in stores):
            raise InputError(f"{run.title}: a store's name must be text in UTF-8", hint="Rename its folder.")
        found: dict[str, Any] = await asyncio.to_thread(self._live.call, "look", stores, since)
        return found

    async def line(self, folder: Path) -> bytes:
        """The whole time line that a job wrote there, packed as a screen shows it."""
        found: bytes = await asyncio.to_thread(self._windows.call, "first", str(folder))
        return found

    async def rows(self, folder: Path, lanes: Sequence[int], window: tuple[int, int], pixels: int) -> bytes:
        """What there is to see of some lanes in a window of it, packed."""
        found: bytes = await asyncio.to_thread(self._windows.call, "rows", str(folder), [*lanes], *window, pixels)
        return found

    async def sums(self, folder: Path, start_ns: int, end_ns: int) -> list[list[int]]:
        """Lane, category, count and time of what it has in a range."""
        found: list[list[int]] = await asyncio.to_thread(self._windows.call, "sums", str(folder), start_ns, end_ns)
        return found

    async def found(self, folder: Path, words: str, at: tuple[int, int], by: int) -> bytes:
        """The event with these words that is next to a start and row, packed."""
        found: bytes = await asyncio.to_thread(self._windows.call, "found", str(folder), words, *at, by)
        return found

    def close(self) -> None:
        """End them."""
        self._live.close()
        self._windows.close()
