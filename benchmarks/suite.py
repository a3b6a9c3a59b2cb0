"""What one benchmark measures: files, commands, bars, and what to know of it. One module each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.bars import Bar
from benchmarks.cases import Case
from benchmarks.trace_files import TraceFile

SIZES: Final = ("full", "small")  # small: seconds, to try the harness; no bar binds


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark with a page of its own.

    `make_cases` takes a size, the cache folder, and the peers' interpreter (None: leave them out); it makes the files
    that aren't there, and returns the cases in the order of the gate. `libraries` and `peers` are those whose versions
    matter. `beside` names our commands, as in `Point.what`, that a peer's time is set next to on each size.
    """

    name: str
    title: str
    make_cases: Callable[[str, Path, Path | None], tuple[list[Case], list[TraceFile]]]
    bars: Sequence[Bar]
    notes: str
    libraries: Sequence[str]
    peers: Sequence[str]
    beside: Sequence[str] = ()
