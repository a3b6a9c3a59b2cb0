"""Ties device work to the host calls that queued it.

The key is (rank, process, correlation id): ids are unique within one process's capture only. Ranks and processes may
be unknown, which counts as a value of its own. A graph launch is one call with many launches. Work without a call was
queued before the profiling window, or its call was not recorded.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.trace.trace import Trace

NO_CALL = -1
FOUND_IDLE_NS = 500_000
"""The first launch of a recording found the device idle if it began within this of its call: in 11 real traces it then
took 2 to 46 μs. In the one that was cut out of a longer one it took 7.8 ms, behind work that is not in the file."""
_SAMPLES = 1_000  # of ids, for the middle one
_OWNER = ["rank", "process"]
CALL_KEY = [*_OWNER, "correlation_id"]
Rows = NDArray[np.int64]


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


def find_calls(launches: pl.DataFrame, calls: pl.DataFrame) -> Rows:
    """The row of each launch's call, -1 where there is none; the same answer as `tie_launches`, for frames at hand.

    Ids and times grow together, nearly, which takes a tenth of the time of the join.

    Args:
        launches: Has `rank`, `process` and `correlation_id`, in any order.
        calls: Has the same and `start_ns`, in any order: of several calls with one key, the first in time is meant.
    """
    found = np.full(launches.height, NO_CALL, dtype=np.int64)
    owners = _by_owner(calls)
    for owner, rows in _by_owner(launches).items():
        if owner in owners:
            own, wanted = (frame["correlation_id"].fill_null(0).to_numpy() for frame in (calls, launches))
            in_time = _in_time(calls["start_ns"].to_numpy(), owners[owner])
            found[rows] = _first(own[in_time], in_time, wanted[rows])
    return found


def when_asked(launches: pl.DataFrame, trace: Trace) -> pl.Series:
    """When the host asked for each launch: when its call began, or on the CPU, which queues nothing, its own start.

    Null where the call is not in the file, or calls were not read.

    Args:
        launches: Has `device` and `start_ns` next to the columns of `CALL_KEY`, in any order.
        trace: Of which these are launches.
    """
    asked = launches.select(pl.when(pl.col("device") == "cpu").then("start_ns")).to_series()
    if "calls" in trace.scope:
        calls = trace.calls.select(*CALL_KEY, "start_ns").collect()
        asked = gather_known(calls.select("start_ns"), find_calls(launches, calls)).to_series().fill_null(asked)
    return asked.alias("asked_ns")


def gather_known(rows: pl.DataFrame, at: Rows) -> pl.DataFrame:
    """The rows at these places, all null where the place is -1."""
    places = pl.Series(at)
    if (at == NO_CALL).any():
        places = places.set(places == NO_CALL, None)
    return rows.select(pl.all().gather(places))


def _by_owner(frame: pl.DataFrame) -> dict[tuple[int | None, ...], Rows]:
    """The rows with an id of each rank and process; most files have one of either."""
    ids = frame["correlation_id"]
    if frame.height and ids.null_count() == 0 and all(is_one(frame[name]) for name in _OWNER):
        return {tuple(frame[name][0] for name in _OWNER): np.arange(frame.height)}
    named = frame.select(*_OWNER, pl.int_range(pl.len(), dtype=pl.Int64).alias("row")).filter(ids.is_not_null())
    return {owner: own["row"].to_numpy() for owner, own in named.partition_by(_OWNER, as_dict=True).items()}


def is_one(values: pl.Series) -> bool:
    """Whether all are equal, null among them."""
    nulls = values.null_count()
    return nulls == values.len() or (nulls == 0 and values.min() == values.max())


def _in_time(start_ns: Rows, rows: Rows) -> Rows:
    """The rows by their starts; equal ones stay in their order."""
    times = start_ns[rows]
    return rows if (times[1:] >= times[:-1]).all() else rows[np.argsort(times, kind="stable")]


def _first(ids: Rows, rows: Rows, wanted: Rows) -> Rows:
    """The first row that has each wanted id; -1 where none has.

    Most ids of a capture are counted up, and a table answers; those far from the middle one are searched for.
    """
    middle = int(np.median(ids[:: 1 + len(ids) // _SAMPLES]))
    low, high = max(int(ids.min()), middle - len(ids)), min(int(ids.max()), middle + len(ids))
    table = np.full(high - low + 2, NO_CALL, dtype=np.int64)  # the last place is that of ids far away
    near, asked = _placed(ids, low, high), _placed(wanted, low, high)
    table[near[::-1]] = rows[::-1]  # what is written last stays
    found = table[asked]
    is_far, is_far_asked = near > high - low, asked > high - low
    if is_far.any() and is_far_asked.any():
        found[is_far_asked] = _searched(ids[is_far], rows[is_far], wanted[is_far_asked])
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
