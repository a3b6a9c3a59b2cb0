"""Remarks about tables just read: what can't be right, or what an analysis must know. No row is ever changed."""

import polars as pl

from inferometer.trace.builder import TraceBuilder
from inferometer.trace.lean import one_value
from inferometer.trace.overlaps import LANE, count_overlaps

_DENSE = 4  # numbers up to the last for each id, up to which a table of all is made
_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much


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
    calls = out.frame("calls").filter(pl.col("correlation_id").is_not_null())
    launches = out.frame("launches").filter(pl.col("correlation_id").is_not_null())
    of_calls = _constants(calls, ["rank", "process"])
    shared = 0 if "process" in of_calls else _count_shared(calls)
    out.losses.count("correlation_in_several_processes", shared, category="calls")
    known = pl.col("process").is_not_null()  # where nobody says whose a launch is, a call of any process will do
    orphans = _count_without(launches.filter(known), calls, ["rank", "process"], of_calls)
    orphans += _count_without(launches.filter(~known), calls, ["rank"], of_calls)
    out.losses.count("launch_before_window", orphans, category="launches")


def _count_without(launches: pl.LazyFrame, calls: pl.LazyFrame, keys: list[str], of_calls: dict[str, object]) -> int:
    """Launches whose id no call of the same `keys` has. A key of one value on both sides need not be compared."""
    own = _constants(launches, keys)
    compared = [key for key in keys if not (key in own and key in of_calls and own[key] == of_calls[key])]
    if not compared:
        wanted, known = (rows.select("correlation_id").collect().to_series() for rows in (launches, calls))
        if known.len() and (known.max() - known.min()) < _DENSE * known.len():  # type: ignore[operator]
            return _count_absent(wanted, known)
    found = launches.join(calls, on=[*compared, "correlation_id"], how="anti", nulls_equal=True)
    return int(found.select(pl.len()).collect().item())


def _count_absent(wanted: pl.Series, known: pl.Series) -> int:
    """How many of these ids aren't known; a table of all up to the last is several times quicker than a join."""
    import numpy as np

    low, high = int(known.min()), int(known.max())  # type: ignore[arg-type]
    is_known = np.zeros(high - low + 1, dtype=np.bool_)
    is_known[known.to_numpy() - low] = True
    is_within = wanted.is_between(low, high)
    within = (wanted if is_within.all() else wanted.filter(is_within)).to_numpy()
    return wanted.len() - int(np.count_nonzero(is_known[within - low]))


def _constants(frame: pl.LazyFrame, columns: list[str]) -> dict[str, object]:
    """Those that have one value in all rows, null or not, with it."""
    one, values = (one_value(name).alias(name) for name in columns), pl.col(columns).first().name.suffix(".value")
    found = frame.select(pl.len().alias("rows"), *one, values).collect().row(0, named=True)
    return {column: found[f"{column}.value"] for column in columns if found["rows"] and found[column]}


def _count_shared(calls: pl.LazyFrame) -> int:
    """Ids that calls of several processes have."""
    processes = calls.group_by("correlation_id").agg(pl.col("process").n_unique())
    return int(processes.filter(pl.col("process") > 1).select(pl.len()).collect().item())


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
