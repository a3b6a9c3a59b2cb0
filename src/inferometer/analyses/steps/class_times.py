"""The device time of each class of kernels in each step of a run.

Times are sums that the source printed by step, else its function times, else launches: a launch belongs to the step in
which its host call began, whenever it ran. One whose call is not in the file, as of what was queued before the
recording, belongs to none. Steps that were found in the order of kernels have the device's times, and there each launch
belongs to the step in which it began.
"""

from collections.abc import Callable

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.batches import batches
from inferometer.analyses.correlation import CALL_KEY, FOUND_IDLE_NS
from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import busy_sums
from inferometer.analyses.labels import label_names
from inferometer.analyses.nesting import Numbers, find_innermost
from inferometer.analyses.steps.printed import has_printed_steps, printed_of_run
from inferometer.analyses.steps.queued_launches import QueuedLaunches
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
_BUSY = ("busy_ns", "from_ns", "lasting_ns", "idle_ns")
_SUMS = dict.fromkeys(("key", "total_ns", "calls"), pl.Int64)
_LONG_AGO = -(1 << 63)
_SUMMED = "Device times of classes are sums over all streams; the source doesn't record how long the GPU was busy."


def _no_classes() -> pl.DataFrame:
    return pl.DataFrame(schema=CLASS_STEPS).drop("phase")


def _no_busy() -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(("step", *_BUSY), pl.Int64))


class ClassTimes(msgspec.Struct, frozen=True):
    """`classes`: columns of `CLASS_STEPS` but `phase`. `notes`: what to know of both.

    `busy`: where launches show them, of each `step` how long its own launches ran (`busy_ns`, null where no launch can
    be assigned to a step), where its window begins and how long it lasts (`from_ns`, `lasting_ns`; see
    `sources.RunSteps`), and in how much of that no launch of the run was running (`idle_ns`). `queued`: those launches,
    where host calls show which step they are of.
    """

    classes: pl.DataFrame = msgspec.field(default_factory=_no_classes)
    busy: pl.DataFrame = msgspec.field(default_factory=_no_busy)
    notes: tuple[str, ...] = ()
    queued: QueuedLaunches | None = None


def find_class_times(trace: Trace, steps: pl.DataFrame, *, on_device: bool = False) -> ClassTimes:
    """Times by step and class of the best source that has any; empty where none has.

    Args:
        trace: Any of `totals`, `function_times`, and `launches` with `calls`, may have been read.
        steps: Of one rank and process: `rank`, `process`, `step`, `start_ns`, `wall_ns`, `gpu_busy_ns`. Not empty.
        on_device: The steps' times are those of the one `device` that they name, and only its launches show classes.
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
        if found is not None:
            return found
    return ClassTimes()


def _from_totals(trace: Trace, steps: pl.DataFrame) -> ClassTimes | None:
    if not has_printed_steps(trace):
        return None
    rows = printed_of_run(trace, *steps.select(OWNER).row(0))
    found = rows.select("step", "kernel", "layer", "count", "total_ns").collect()
    if found.is_empty():
        return None
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
    if found.is_empty():
        return None
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
    timed = steps.filter(pl.col("start_ns").is_not_null(), pl.col("wall_ns").is_not_null()).sort("start_ns")
    if "launches" not in trace.scope or timed.is_empty():
        return None
    queued = None if on_device else QueuedLaunches.read(trace, *timed.select(OWNER).row(0))
    if queued is None:
        launches = _of_device(trace, timed)
    else:
        launches = queued.launches.drop(CALL_KEY).with_columns(queued.asked_ns())
    if launches.is_empty():
        return ClassTimes(notes=tuple(_of_others(trace)))
    start, wall = (timed[name].to_numpy() for name in ("start_ns", "wall_ns"))
    marks = start, start + wall
    if on_device:
        is_known = np.ones(launches.height, dtype=bool)
        inside = _placed(*marks, launches["start_ns"].to_numpy())
    else:
        is_known = launches["asked_ns"].is_not_null().to_numpy()
        inside = np.full(launches.height, -1)
        inside[is_known] = _innermost(*marks, launches["asked_ns"].drop_nulls().to_numpy())
    placed = launches.select("kernel", "dur_ns").filter(pl.Series(inside >= 0))
    by_step = _busy(launches, inside, marks if on_device else _windows(launches, inside, *marks))
    if not is_known.any():
        by_step = by_step.with_columns(pl.lit(None, dtype=pl.Int64).alias("busy_ns"))
    notes = _about_launches(launches.height, int(is_known.sum()), placed.height)
    return ClassTimes(
        _by_class(timed["step"], inside[inside >= 0], placed),
        by_step.with_columns(timed["step"].cast(pl.Int64)),
        tuple(notes),
        queued,
    )


def _busy(launches: pl.DataFrame, inside: Numbers, windows: tuple[Numbers, Numbers]) -> pl.DataFrame:
    """Busy times of steps by `inside`, the step of each launch, and in how much of its window none was running."""
    since, until = windows
    began = launches["start_ns"].to_numpy()
    ended = began + launches["dur_ns"].to_numpy()
    own = inside >= 0
    running = Cover.of(began, ended).within(since, until)
    if not own.all():
        inside, began, ended = inside[own], began[own], ended[own]
    busy = busy_sums(inside, began, ended, len(since))
    columns = (busy, since, until - since, until - since - running)
    return pl.DataFrame(dict(zip(_BUSY, columns, strict=True)), schema=dict.fromkeys(_BUSY, pl.Int64))


def _windows(launches: pl.DataFrame, inside: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """From when to when each mark's step lasts: until its mark and its work have ended.

    It begins with its mark, or when all that was queued before has ended, where that is later; and not before the
    first launch where that waited for something that is not in the file.
    """
    own = inside >= 0
    ends = launches.select(pl.col("start_ns") + pl.col("dur_ns")).to_series().filter(pl.Series(own))
    until = end.copy()
    np.maximum.at(until, inside[own], ends.to_numpy())
    until = np.maximum.accumulate(until)
    others = _queued(launches).filter(pl.Series(~own)).drop_nulls("queued_ns").sort("queued_ns")
    ended = np.maximum.accumulate((others["start_ns"] + others["dur_ns"]).to_numpy())
    before = np.searchsorted(others["queued_ns"].to_numpy(), start)
    since = np.maximum(start, np.concatenate((start[:1], until[:-1])))
    since[before > 0] = np.maximum(since[before > 0], ended[before[before > 0] - 1])
    first = launches.select(pl.col("start_ns", "asked_ns").sort_by("start_ns").first()).row(0, named=True)
    if first["asked_ns"] is None or first["start_ns"] - first["asked_ns"] > FOUND_IDLE_NS:
        since = np.maximum(since, first["start_ns"])
    return np.minimum(since, until), until


def _queued(launches: pl.DataFrame) -> pl.DataFrame:
    """With `queued_ns`: long ago for what a stream ran before all launches with calls, null for others without."""
    if not launches["asked_ns"].null_count():
        return launches.with_columns(queued_ns="asked_ns")
    first_ns = pl.col("start_ns").filter(pl.col("asked_ns").is_not_null()).min().over("device", "stream")
    before = pl.when(pl.col("start_ns") < first_ns).then(pl.lit(_LONG_AGO, dtype=pl.Int64))
    return launches.with_columns(pl.coalesce("asked_ns", before).alias("queued_ns"))


def _by_class(number: pl.Series, inside: Numbers, placed: pl.DataFrame) -> pl.DataFrame:
    """Sums of each step and class of names; `inside` is the row of each launch's step in `number`."""
    classes, of_name = _classes(placed["kernel"])
    codes, sums = placed["kernel"].to_physical(), [pl.DataFrame(schema=_SUMS)]
    for part in batches(placed.height):
        key = inside[part] * len(classes) + of_name[codes[part].to_numpy()]
        rows = pl.DataFrame({"key": key, "total_ns": placed["dur_ns"][part]}).group_by("key")
        sums.append(rows.agg(pl.col("total_ns").sum(), pl.len().cast(pl.Int64).alias("calls")))
    summed = pl.concat(sums).group_by("key").agg(pl.col("total_ns", "calls").sum())
    steps = number.cast(pl.Int64).gather(summed["key"] // len(classes)).alias("step")
    by_step = (
        summed.with_columns(steps, (pl.col("key") % len(classes)).alias("class"))
        .group_by("step", "class")
        .agg(pl.col("total_ns", "calls").sum())
        .sort("step", "class")
    )
    return by_step.with_columns(classes.gather(by_step["class"]).alias("class"), pl.lit(0, pl.Int64).alias("layers"))


def _classes(kernel: pl.Series) -> tuple[pl.Series, Numbers]:
    """The classes of these names, sorted, and the number of each category's."""
    kernels = kernel.unique()
    names, codes = kernels.cast(pl.String), kernels.to_physical().to_numpy()
    labels = label_names(names, "name")
    classes, numbers = np.unique(np.array([labels[name] for name in names], dtype=np.object_), return_inverse=True)
    table = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    table[codes] = numbers
    return pl.Series(classes.tolist(), dtype=pl.String), table


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
    return launches.select("kernel", "start_ns", "dur_ns").collect()


def _about_launches(launches: int, known: int, placed: int) -> list[str]:
    """What is in no step, and why; `known` is how many launches have a time that could show their step."""
    if not known:
        return [f"No host call of the {launches:,} launches is in the file: which step they are of can't be known."]
    outside, uncalled = launches - placed, launches - known
    if not outside:
        return []
    why = "" if not uncalled else ", since" if uncalled == outside else f", {uncalled:,} of them since"
    why += " their host calls are not in the file" if uncalled else ""
    return [f"{outside:,} of {launches:,} launches are in no step and are left out{why}."]


def _of_others(trace: Trace) -> list[str]:
    count = trace.launches.select(pl.len()).collect().item()
    if count == 1:
        return ["The one launch in the file is not of the process whose steps these are."]
    return [f"None of the {count:,} launches in the file is of the process whose steps these are."] if count else []
