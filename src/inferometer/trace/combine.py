"""Several traces, a rank each, as one: rows of all on one clock, ids that stay apart, losses added up.

Rows keep their values but for three things: `rank` is filled in, times are moved to the earliest clock base, and
numbers that a file gives to its own things (call paths, frames, sections) go on where the file before ended. Process
numbers stay, since `rank` tells them apart; so do correlation, external and graph ids, which hold within a process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from inferometer.trace.facts import NumberedBy
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES, TABLES
from inferometer.trace.trace import Trace

_TIMES = ("start_ns", "time_ns")
_NUMBERED = (
    (("call_paths", "path_id"), ("call_paths", "parent_id"), ("calls", "path_id"), ("path_totals", "path_id")),
    (("frames", "frame_id"), ("frames", "parent")),
    (("totals", "section"),),
)
_ABSOLUTE_NS = (10**18, 4 * 10**18)  # 2001 to 2096: no clock that begins with the machine shows such times
_MOST = 2**62  # beyond this, a sum could leave 64 bits


@dataclass(frozen=True)
class TracePart:
    """The trace of one file. `ranks`: the one that all its rows belong to, or several that its rows name already."""

    trace: Trace
    file: str
    ranks: tuple[int, ...]
    numbered_by: NumberedBy = "file"


@dataclass(frozen=True)
class Clock:
    """How a part's times are tied to the others'. `base_ns`: 0 when they are absolute, None where that is unknown."""

    base_ns: int | None
    shift_ns: int = 0
    has_times: bool = True


class OpenTraces:
    """The temporary files of several traces, dropped at once."""

    def __init__(self, *traces: Trace) -> None:
        self._traces = traces

    def cleanup(self) -> None:
        """Close the traces."""
        for trace in self._traces:
            trace.close()


def align_clocks(parts: Sequence[TracePart]) -> list[Clock]:
    """The shift of each part to the earliest known base; 0 where a part's base isn't known."""
    clocks = [_clock(part.trace) for part in parts]
    known = [clock.base_ns for clock in clocks if clock.base_ns is not None]
    first = min(known, default=0)
    if max(known, default=0) - first > _MOST:
        return [Clock(None, 0, clock.has_times) for clock in clocks]
    return [
        clock if clock.base_ns is None else Clock(clock.base_ns, clock.base_ns - first, clock.has_times)
        for clock in clocks
    ]


def scope_of(parts: Sequence[TracePart]) -> frozenset[str]:
    """Tables that were read of every part: of the others, rows would be missing without a sign."""
    return ALL_TABLES.intersection(*(part.trace.scope for part in parts))


def combine_tables(parts: Sequence[TracePart], clocks: Sequence[Clock]) -> dict[str, pl.LazyFrame]:
    """The rows of all parts, one part after the other; with the columns that all of them have."""
    scope = scope_of(parts)
    offsets = _offsets(parts, scope)
    combined = {}
    for table in scope:
        frames = [part.trace.tables.raw(table) for part in parts]  # names kept as categories stay so
        columns = [frame.collect_schema().names() for frame in frames]
        shared = [name for name in TABLES[table].schema if all(name in each for each in columns)]
        combined[table] = pl.concat(
            (
                frame.with_columns(_changes(table, shared, part, clock, offset)).select(shared)
                for frame, part, clock, offset in zip(frames, parts, clocks, offsets, strict=True)
            ),
            how="vertical_relaxed",
        )
    return combined


def combine_losses(parts: Sequence[TracePart]) -> Losses:
    """Counts and events seen, added up; an example says which file it is from."""
    losses = Losses(scope_of(parts))
    for part in parts:
        losses.add(part.trace.losses, part.file)
    return losses


def _clock(trace: Trace) -> Clock:
    base_ns = trace.facts.clock_base_ns
    if base_ns is not None:
        return Clock(base_ns)
    for name, frame in trace.tables.items():
        time = TABLES[name].time
        if time in frame.collect_schema():
            usual = frame.select(pl.col(time or "").median()).collect().item()
            if usual is not None:
                return Clock(0 if _ABSOLUTE_NS[0] < usual < _ABSOLUTE_NS[1] else None)
    return Clock(None, has_times=False)


def _changes(
    table: str, columns: Sequence[str], part: TracePart, clock: Clock, offsets: dict[tuple[str, str], int]
) -> list[pl.Expr]:
    changes = []
    for name in columns:
        add = clock.shift_ns if name in _TIMES else offsets.get((table, name), 0)
        if name == "rank" and len(part.ranks) == 1:
            changes.append(pl.lit(part.ranks[0], dtype=pl.Int64).alias(name))
        elif add:
            changes.append(pl.col(name) + add)
    return changes


def _offsets(parts: Sequence[TracePart], scope: frozenset[str]) -> list[dict[tuple[str, str], int]]:
    """For each part, what to add to the numbers of a column so that they go on after the part before."""
    offsets: list[dict[tuple[str, str], int]] = [{} for _ in parts]
    largest = _largest(parts, scope)
    for family in _NUMBERED:
        sizes = [max((each[column] + 1 for column in family if column in each), default=0) for each in largest]
        *begins, end = accumulate(sizes, initial=0)
        if end > _MOST:  # numbers so large come from a broken file; `rank` still tells them apart
            continue
        for offset, begin in zip(offsets, begins, strict=True):
            offset.update(dict.fromkeys(family, begin))
    return offsets


def _largest(parts: Sequence[TracePart], scope: frozenset[str]) -> list[dict[tuple[str, str], int]]:
    """For each part, the largest number in each column of `_NUMBERED` that has any."""
    asked, queries = list[tuple[int, tuple[str, str]]](), list[pl.LazyFrame]()
    for place, part in enumerate(parts):
        for table, name in (column for family in _NUMBERED for column in family if column[0] in scope):
            frame = part.trace.tables[table]
            if name in frame.collect_schema():
                asked.append((place, (table, name)))
                queries.append(frame.select(pl.col(name).max()))
    found: list[dict[tuple[str, str], int]] = [{} for _ in parts]
    for (place, column), largest in zip(asked, pl.collect_all(queries), strict=True):
        if largest.item() is not None:
            found[place][column] = int(largest.item())
    return found
