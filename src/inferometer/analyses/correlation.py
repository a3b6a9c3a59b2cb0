"""Ties device work to the host calls that queued it.

The key is (rank, process, correlation id): ids are unique within one process's capture only. Ranks and processes may
be unknown, which counts as a value of its own. A graph launch is one call with many launches. Work without a call was
queued before the profiling window, or its call was not recorded.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.trace.lean import collect_lean, gather, has_one
from inferometer.trace.shared_columns import made_once, read_columns
from inferometer.trace.trace import Trace

NO_CALL = -1
CALL = "call"
"""The column of launches with the row of each one's call, UInt32, null where there is none."""
FOUND_IDLE_NS = 500_000
"""The first launch of a recording found the device idle if it began within this of its call: in 11 real traces it then
took 2 to 46 μs. In the one that was cut out of a longer one it took 7.8 ms, behind work that is not in the file."""
_SAMPLES = 1_000  # of ids, for the middle one
_OWNER = ["rank", "process"]
CALL_KEY = [*_OWNER, "correlation_id"]
_TIED_BY = {"launches": CALL_KEY, "calls": [*CALL_KEY, "start_ns"]}
Rows = NDArray[np.int64]
Calls = NDArray[np.int32]


def tie_launches(launches: pl.LazyFrame, calls: pl.LazyFrame) -> pl.LazyFrame:
    """`launches` with the row number of each one's call, `call` (null where there is none).

    Args:
        launches: Has `rank`, `process` and `correlation_id`. The order of rows is not kept.
        calls: Has the same, `start_ns`, and `call`, its row number. Of several calls with one key, the first is meant.
    """
    first = (
        calls.filter(pl.col("correlation_id").is_not_null())
        .sort("start_ns", "call")
        .unique(CALL_KEY, keep="first", maintain_order=True)
        .select(*CALL_KEY, "call")
    )
    return launches.join(first, on=CALL_KEY, how="left", nulls_equal=True)


def find_calls(launches: pl.DataFrame, calls: pl.DataFrame) -> Calls:
    """The row of each launch's call, -1 where there is none; the same answer as `tie_launches`, for frames at hand.

    Ids and times grow together, nearly, which takes a tenth of the time of the join.

    Args:
        launches: Has `rank`, `process` and `correlation_id`, in any order.
        calls: Has the same and `start_ns`, in any order: of several calls with one key, the first in time is meant.
    """
    found = np.full(launches.height, NO_CALL, dtype=np.int32)
    owners = _by_owner(calls)
    own, wanted = (frame["correlation_id"].fill_null(0).to_numpy() for frame in (calls, launches))
    for owner, rows in _by_owner(launches).items():
        if owner in owners:
            in_time = _in_time(calls["start_ns"].to_numpy(), owners[owner])
            first = _first(own[in_time], in_time, wanted[rows])
            if isinstance(rows, slice):
                return first
            found[rows] = first
    return found


def calls_of_launches(trace: Trace) -> Calls:
    """`find_calls` of all launches and calls of a trace, in the order of its tables."""

    def find() -> Calls:
        return find_calls(*(read_columns(trace, table, names) for table, names in _TIED_BY.items()))

    return made_once(trace, find_calls, find)


def when_asked(launches: pl.DataFrame, trace: Trace) -> pl.Series:
    """When the host asked for each launch: when its call began, or on the CPU, which queues nothing, its own start.

    Null where the call is not in the file, or calls were not read.

    Args:
        launches: Has `device` and `start_ns` next to the columns of `CALL_KEY`, in any order.
        trace: Of which these are launches.
    """
    if "calls" not in trace.scope:
        return asked_by(launches, None, None)
    calls = collect_lean(trace.calls, [*CALL_KEY, "start_ns"])
    return asked_by(launches, calls, find_calls(launches, calls))


def asked_by(launches: pl.DataFrame, calls: pl.DataFrame | None, call: Calls | None) -> pl.Series:
    """The same where calls are at hand, and the row there of each launch's, as `find_calls` has it."""
    on_cpu = pl.col("device") == "cpu"
    own = launches.select(pl.when(on_cpu).then("start_ns")) if launches.select(on_cpu.any()).item() else None
    if calls is None or call is None:
        asked = pl.Series([None], dtype=pl.Int64).new_from_index(0, launches.height)
        return (asked if own is None else own.to_series()).alias("asked_ns")
    asked = gather_known(calls.select("start_ns"), call).to_series()
    return (asked if own is None else asked.fill_null(own.to_series())).alias("asked_ns")


def known_rows(at: NDArray[np.integer[Any]]) -> pl.Series:
    """Rows as UInt32, null in place of -1."""
    places = pl.Series(at.astype(np.uint32))
    is_none = at == NO_CALL
    return places.set(pl.Series(is_none), None) if is_none.any() else places


def gather_known(rows: pl.DataFrame, at: NDArray[np.integer[Any]]) -> pl.DataFrame:
    """The rows at these places, all null where the place is -1."""
    return gather(rows, known_rows(at))


def _by_owner(frame: pl.DataFrame) -> dict[tuple[int | None, ...], Rows | slice]:
    """The rows with an id of each rank and process; most files have one of either, whose rows are all."""
    ids = frame["correlation_id"]
    if frame.height and ids.null_count() == 0 and has_one(frame, *_OWNER):
        return {frame.select(_OWNER).row(0): slice(0, frame.height)}
    named = frame.select(*_OWNER, pl.int_range(pl.len(), dtype=pl.Int64).alias("row")).filter(ids.is_not_null())
    return {owner: own["row"].to_numpy() for owner, own in named.partition_by(_OWNER, as_dict=True).items()}


def _in_time(start_ns: Rows, rows: Rows | slice) -> Rows | slice:
    """The rows by their starts; equal ones stay in their order."""
    times = start_ns[rows]
    if (times[1:] >= times[:-1]).all():
        return rows
    order = np.argsort(times, kind="stable")
    return order if isinstance(rows, slice) else rows[order]


def _first(ids: Rows, rows: Rows | slice, wanted: Rows) -> Calls:
    """The first row that has each wanted id; -1 where none has.

    Most ids of a capture are counted up, and a table answers; those far from the middle one are searched for.
    """
    middle = int(np.median(ids[:: 1 + len(ids) // _SAMPLES]))
    low, high = max(int(ids.min()), middle - len(ids)), min(int(ids.max()), middle + len(ids))
    table = np.full(high - low + 2, NO_CALL, dtype=np.int32)  # the last place is that of ids far away
    far, far_asked = [], []
    for part in reversed(batches(len(ids))):
        own = np.arange(part.start, part.stop) if isinstance(rows, slice) else rows[part]
        at = _placed(ids[part], low, high)
        table[at[::-1]] = own[::-1]  # what is written last stays
        far.append(part.start + np.flatnonzero(at > high - low))
    found = np.empty(len(wanted), dtype=np.int32)
    for part in batches(len(wanted)):
        at = _placed(wanted[part], low, high)
        found[part] = table[at]
        far_asked.append(part.start + np.flatnonzero(at > high - low))
    is_far, asked = np.concatenate(far[::-1]), np.concatenate(far_asked)
    if len(asked):
        of = is_far if isinstance(rows, slice) else rows[is_far]
        found[asked] = _searched(ids[is_far], of, wanted[asked]) if len(is_far) else NO_CALL
    return found


def _placed(ids: Rows, low: int, high: int) -> Rows:
    """The place of each id between the two, counted from the lower; that after the upper one of all others."""
    if low <= ids.min() and ids.max() <= high:
        return ids - low
    return np.where((ids >= low) & (ids <= high), ids - low, high - low + 1)


def _searched(ids: Rows, rows: Rows, wanted: Rows) -> Rows:
    order = np.argsort(ids, kind="stable")
    at = np.searchsorted(ids[order], wanted)
    at[at == len(ids)] = 0  # beyond the last: no id is equal to the first
    at = order[at]
    return np.where(ids[at] == wanted, rows[at], NO_CALL)
