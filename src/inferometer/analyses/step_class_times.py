"""The device time of each class of kernels in each step of a run.

Times are sums that the source printed by step, else its function times, else launches: a launch belongs to the step in
which its host call began, or where calls are unknown to that in which it began itself. Steps that were found in the
order of kernels have the device's times, and there each launch belongs to the step in which it began.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from inferometer.analyses.correlation import CALL_KEY, find_calls, gather_known
from inferometer.analyses.intervals import busy_sums
from inferometer.analyses.labels import label_names
from inferometer.analyses.nesting import Numbers, find_innermost
from inferometer.analyses.printed_steps import has_printed_steps, printed_of_run
from inferometer.names.engine_labels import class_of_label
from inferometer.trace.trace import Trace

OWNER = ["rank", "process"]
CLASS_STEPS = pl.Schema(
    {
        "step": pl.Int64(),
        **dict.fromkeys(("phase", "class"), pl.String()),
        **dict.fromkeys(("total_ns", "layers", "calls"), pl.Int64()),
    }
)
_SUMMED = "Device times of classes are sums over all streams; the source doesn't record how long the GPU was busy."


def _no_classes() -> pl.DataFrame:
    return pl.DataFrame(schema=CLASS_STEPS).drop("phase")


def _no_busy() -> pl.DataFrame:
    return pl.DataFrame(schema={"step": pl.Int64, "busy_ns": pl.Int64})


@dataclass(frozen=True)
class ClassTimes:
    """`classes`: columns of `CLASS_STEPS` but `phase`. `busy`: `step` and `busy_ns`, where launches tell that.

    `notes`: what to know of both.
    """

    classes: pl.DataFrame = field(default_factory=_no_classes)
    busy: pl.DataFrame = field(default_factory=_no_busy)
    notes: tuple[str, ...] = ()


def find_class_times(trace: Trace, steps: pl.DataFrame, *, on_device: bool = False) -> ClassTimes:
    """Times by step and class of the best source that has any; empty where none has.

    Args:
        trace: Any of `totals`, `function_times`, and `launches` with `calls`, may have been read.
        steps: Of one rank and process: `rank`, `process`, `step`, `start_ns`, `wall_ns`, `gpu_busy_ns`. Not empty.
        on_device: The steps' times are those of the one `device` that they name, and only its launches tell classes.
    """
    if on_device:
        return _from_launches(trace, steps, on_device=True) or ClassTimes()
    sources: tuple[Callable[[Trace, pl.DataFrame], ClassTimes | None], ...] = (
        _from_totals,
        _from_functions,
        _from_launches,
    )
    for source in sources:
        found = source(trace, steps)
        if found is not None and not found.classes.is_empty():
            return found
    return ClassTimes()


def _from_totals(trace: Trace, steps: pl.DataFrame) -> ClassTimes | None:
    if not has_printed_steps(trace):
        return None
    rows = printed_of_run(trace, *steps.select(OWNER).row(0))
    found = rows.select("step", "kernel", "layer", "count", "total_ns").collect()
    classes = {label: class_of_label(label) for label in found["kernel"].unique()}
    sums = found.group_by("step", pl.col("kernel").replace_strict(classes).alias("class"), maintain_order=True).agg(
        pl.col("total_ns").sum(),
        pl.col("layer").drop_nulls().n_unique().cast(pl.Int64).alias("layers"),
        pl.when(pl.col("count").null_count() == 0).then(pl.col("count").sum()).alias("calls"),
    )
    return ClassTimes(sums)


def _from_functions(trace: Trace, steps: pl.DataFrame) -> ClassTimes | None:
    if "function_times" not in trace.scope:
        return None
    rows = trace.function_times.filter(pl.col("device") != "host", *_of_owner(steps))
    found = rows.select("cycle", "function", "dur_ns", "calls").collect()
    labels = label_names(found["function"].unique(), "name")
    sums = found.group_by(
        pl.col("cycle").alias("step"), pl.col("function").replace(labels).alias("class"), maintain_order=True
    ).agg(
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.when(pl.col("calls").null_count() == 0).then(pl.col("calls").sum()).alias("calls"),
    )
    notes = (_SUMMED,) if steps["gpu_busy_ns"].null_count() else ()
    return ClassTimes(sums.with_columns(pl.lit(0, dtype=pl.Int64).alias("layers")), notes=notes)


def _of_owner(steps: pl.DataFrame) -> list[pl.Expr]:
    rank, process = steps.select(OWNER).row(0)
    return [pl.col("rank").eq_missing(rank), pl.col("process").eq_missing(process)]


def _from_launches(trace: Trace, steps: pl.DataFrame, *, on_device: bool = False) -> ClassTimes | None:
    timed = steps.filter(pl.col("start_ns").is_not_null(), pl.col("wall_ns").is_not_null())
    if "launches" not in trace.scope or timed.is_empty():
        return None
    launches = _of_device(trace, timed) if on_device else _called(trace, *timed.select(OWNER).row(0))
    start, wall = (timed[name].to_numpy() for name in ("start_ns", "wall_ns"))
    inside = (_placed if on_device else _innermost)(start, start + wall, _when(launches))
    if (inside < 0).any():
        placed, inside = launches.filter(pl.Series(inside >= 0)), inside[inside >= 0]
    else:
        placed = launches
    began = placed["start_ns"].to_numpy()
    busy = busy_sums(inside, began, began + placed["dur_ns"].to_numpy(), timed.height)
    notes = _about_launches(launches, placed, on_device=on_device)
    by_step = pl.DataFrame({"step": timed["step"].cast(pl.Int64), "busy_ns": busy})
    return ClassTimes(_by_class(timed["step"], inside, placed), by_step, tuple(notes))


def _when(launches: pl.DataFrame) -> Numbers:
    """When each launch was called for, or began where that isn't known."""
    called = launches["called_ns"]
    return (called.fill_null(launches["start_ns"]) if called.null_count() else called).to_numpy()


def _by_class(number: pl.Series, inside: Numbers, placed: pl.DataFrame) -> pl.DataFrame:
    """Sums of each step and class of names; `inside` is the row of each launch's step in `number`."""
    classes, of_launch = _classes(placed["kernel"])
    sums = (
        pl.DataFrame({"key": inside * len(classes) + of_launch, "total_ns": placed["dur_ns"]})
        .group_by("key")
        .agg(pl.col("total_ns").sum(), pl.len().cast(pl.Int64).alias("calls"))
    )
    steps = number.cast(pl.Int64).gather(sums["key"] // len(classes)).alias("step")
    by_step = (
        sums.with_columns(steps, (pl.col("key") % len(classes)).alias("class"))
        .group_by("step", "class")
        .agg(pl.col("total_ns", "calls").sum())
        .sort("step", "class")
    )
    return by_step.with_columns(classes.gather(by_step["class"]).alias("class"), pl.lit(0, pl.Int64).alias("layers"))


def _classes(kernel: pl.Series) -> tuple[pl.Series, Numbers]:
    """The classes of these names, sorted, and the number of each launch's."""
    kernels = kernel.unique()
    names, codes = kernels.cast(pl.String), kernels.to_physical().to_numpy()
    labels = label_names(names, "name")
    classes, numbers = np.unique(np.array([labels[name] for name in names], dtype=np.object_), return_inverse=True)
    table = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    table[codes] = numbers
    return pl.Series(classes.tolist(), dtype=pl.String), table[kernel.to_physical().to_numpy()]


def _placed(start: Numbers, end: Numbers, times: Numbers) -> Numbers:
    """The step around each time, -1 for none. Steps are sorted and don't overlap, as work on main streams doesn't."""
    last = np.searchsorted(start, times, side="right") - 1
    return np.where((last >= 0) & (times < end[last]), last, -1)


def _innermost(start: Numbers, end: Numbers, times: Numbers) -> Numbers:
    """The same of marks, which may overlap."""
    one_lane = (np.zeros(len(start), dtype=np.int64), np.zeros(len(times), dtype=np.int64))
    return find_innermost(one_lane[0], start, end, one_lane[1], times)


def _of_device(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """The launches of the process and device that the steps name, whenever they were called."""
    launches = trace.compact("launches").filter(
        _of_owner(steps), pl.col("device").eq_missing(pl.lit(steps["device"][0]))
    )
    launches = launches.select("kernel", "start_ns", "dur_ns")
    return launches.with_columns(pl.lit(None, dtype=pl.Int64).alias("called_ns")).collect()


def _called(trace: Trace, rank: int | None, process: int | None) -> pl.DataFrame:
    """The launches of a run with `called_ns`; those of an unknown process count where only its rank tells."""
    launches = trace.compact("launches").filter(pl.col("rank").eq_missing(rank))
    if process is not None:
        launches = launches.filter(pl.col("process").is_null() | (pl.col("process") == process))
    launches = launches.select("kernel", *OWNER, "start_ns", "dur_ns", "correlation_id")
    if "calls" not in trace.scope:
        return launches.with_columns(pl.lit(None, dtype=pl.Int64).alias("called_ns")).collect()
    calls = trace.calls.select(*CALL_KEY, "start_ns").collect()
    rows = launches.collect()
    return rows.hstack(gather_known(calls.select(called_ns="start_ns"), find_calls(rows, calls)))


def _about_launches(launches: pl.DataFrame, placed: pl.DataFrame, *, on_device: bool) -> list[str]:
    notes = []
    if outside := launches.height - placed.height:
        notes.append(f"{outside:,} of {launches.height:,} launches are in no step and are left out.")
    if (uncalled := placed["called_ns"].null_count()) and not on_device:
        which = "Launches" if uncalled == placed.height else f"{uncalled:,} of {placed.height:,} launches"
        notes.append(f"{which} have no host call in the file: they belong to the step in which they began.")
    return notes
