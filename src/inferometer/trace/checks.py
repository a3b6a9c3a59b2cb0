"""Remarks about tables just read: what can't be right, or what an analysis must know. No row is ever changed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from inferometer.trace.builder import TraceBuilder
from inferometer.trace.lean import LARGE, has_one, having_several
from inferometer.trace.overlaps import LANE, count_overlaps

_PROCESS = ("rank", "process", "correlation_id")
_AT_ONCE = 1 << 18  # ids
_SAMPLES = 1_000  # of ids, for the middle one
_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much


def check_device_work(out: TraceBuilder, *, whole: bool = True) -> None:
    """Count what is odd of launches and of their calls, at the same time where there are many.

    Args:
        out: What was read.
        whole: Launches have all their columns; else their calls alone are looked at.
    """
    checks = [check_launches, check_calls] if whole else [check_calls]
    if out.rows("launches") < LARGE:
        for check in checks:
            check(out)
        return
    for table in ("launches", "calls"):
        out.raw(table)  # puts a table's batches together, which one thread alone may do
    with ThreadPoolExecutor(len(checks)) as pool:
        for done in [pool.submit(check, out) for check in checks]:
            done.result()


def check_launches(out: TraceBuilder) -> None:
    """Count device work of 0 ns, and work that overlaps later work on its stream."""
    if out.rows("launches"):
        launches = out.raw("launches")
        timed = launches.select(*LANE, "start_ns", "dur_ns").collect()
        zero = int((timed["dur_ns"] == 0).sum())
        out.losses.count("zero_duration_launch", zero, category="launches")
        count_overlaps(launches, timed, out.losses)


def check_calls(out: TraceBuilder) -> None:
    """Count device work whose host call is not in the file, and correlation ids that several processes use."""
    if not out.rows("launches") or not out.rows("calls"):
        return
    calls, launches = (_with_id(out, table) for table in ("calls", "launches"))
    shared = 0 if has_one(calls, "process") else _count_shared(calls)
    out.losses.count("correlation_in_several_processes", shared, category="calls")
    known = launches["process"].is_not_null()  # where nobody says whose a launch is, a call of any process will do
    orphans = _count_without(launches if known.all() else launches.filter(known), calls, ["rank", "process"])
    if not known.all():
        orphans += _count_without(launches.filter(~known), calls, ["rank"])
    out.losses.count("launch_before_window", orphans, category="launches")


def _with_id(out: TraceBuilder, table: str) -> pl.DataFrame:
    """Rows that have a correlation id, without a copy where all do."""
    rows = out.raw(table).select(_PROCESS).collect()
    return rows.drop_nulls("correlation_id") if rows["correlation_id"].null_count() else rows


def _count_without(launches: pl.DataFrame, calls: pl.DataFrame, keys: list[str]) -> int:
    """Launches whose id no call of the same `keys` has. A key of one value on both sides need not be compared."""
    if calls.is_empty():
        return launches.height
    if launches.is_empty():
        return 0
    several = {*having_several(launches, keys), *having_several(calls, keys)}
    compared = [key for key in keys if key in several or launches[key][0] != calls[key][0]]
    if not compared:
        return _count_absent(launches["correlation_id"], calls["correlation_id"])
    return launches.join(calls, on=[*compared, "correlation_id"], how="anti", nulls_equal=True).height


def _count_absent(wanted: pl.Series, known: pl.Series) -> int:
    """How many of these ids aren't known.

    Most ids of a capture are counted up: a table of all that are near the middle one is several times quicker than a
    join, which the others have.
    """
    import numpy as np

    middle = int(known.gather_every(1 + known.len() // _SAMPLES).median())  # type: ignore[arg-type]
    least, most = int(known.min()), int(known.max())  # type: ignore[arg-type]
    low, high = max(least, middle - known.len()), min(most, middle + known.len())
    is_known = np.zeros(high - low + 1, dtype=np.bool_)
    far: list[pl.Series] = []
    for near, others in _parted(known, low, high):
        is_known[near.to_numpy() - low] = True
        far.append(others)
    far_known, absent = pl.concat(far).implode(), 0
    for near, others in _parted(wanted, low, high):
        absent += near.len() - int(np.count_nonzero(is_known[near.to_numpy() - low]))
        absent += others.len() - int(others.is_in(far_known).sum())
    return absent


def _parted(ids: pl.Series, low: int, high: int) -> Iterator[tuple[pl.Series, pl.Series]]:
    """Those between the two, both included, and the others: of a part at a time, which stays in the cache."""
    for begin in range(0, ids.len(), _AT_ONCE):
        part = ids.slice(begin, _AT_ONCE)
        is_near = part.is_between(low, high)
        yield (part, part.clear()) if is_near.all() else (part.filter(is_near), part.filter(~is_near))


def _count_shared(calls: pl.DataFrame) -> int:
    """Ids that calls of several processes have."""
    processes = calls.group_by("correlation_id").agg(pl.col("process").n_unique())
    return processes.filter(pl.col("process") > 1).height


def check_spans(out: TraceBuilder) -> None:
    """Count ProfilerStep marks that overlap on one thread."""
    if not out.rows("spans"):
        return
    overlaps = (
        out.frame("spans")
        .filter(pl.col("span").str.starts_with("ProfilerStep") & pl.col("thread").is_not_null())
        .sort("rank", "process", "thread", "start_ns")
        .select(
            (pl.col("start_ns").shift(-1) < pl.col("start_ns") + pl.col("dur_ns") - _ROUNDING_NS)
            .over("rank", "process", "thread")
            .sum()
        )
        .collect()
        .item()
    )
    out.losses.count("overlapping_profiler_steps", overlaps or 0, category="spans")
