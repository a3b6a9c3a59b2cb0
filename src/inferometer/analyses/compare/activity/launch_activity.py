"""What a run did, from its launches: sums by function and cycle, gaps and overlaps, and samples for intervals.

A cycle is a step as `inferometer steps` has it (`step_marks`). A launch belongs to the marked step in which its host
call began, and to none where the call is not in the file; to the step in which it began itself where steps are the
device's own; without steps the whole window is cycle 1. A cycle of a lane runs from the end of the work before it to
the end of its own last work, so cycles neither overlap nor leave time out: each launch brings its duration, less what
overlaps with work begun before, and the gap in front of it.

The gap in front of the first launch of a recording runs from the mark that it was queued in, if it found the device
idle; else it isn't known, and not counted. The first of steps that were found lacks its gap, so of three or more it
counts as partial.
"""

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.columns import with_schema
from inferometer.analyses.compare.activity.activity import (
    BLOCKS_SCHEMA,
    CYCLES,
    FUNCTIONS,
    GAPS,
    LANE,
    ORDER,
    Activity,
    class_of,
    main_lanes,
    with_completeness,
    with_costs,
)
from inferometer.analyses.compare.activity.step_marks import Marks, find_marks
from inferometer.analyses.compare.activity.step_places import step_at, steps_of_lane
from inferometer.analyses.comparison_limits import BLOCKS, IN_ORDER
from inferometer.analyses.correlation import FOUND_IDLE_NS, when_asked
from inferometer.analyses.timeline.recorder_pauses import unobserved_times
from inferometer.trace.trace import Trace

_STRETCHES = 8
_ENOUGH_CYCLES = 3
_IN_STEP = pl.Schema({"cycle": pl.Int64(), "phase": pl.String(), "step_start_ns": pl.Int64()})
_UNCALLED = (
    "The file has no host calls of launches, so none can be assigned to a step: the whole recording is compared."
)


class LaunchedRun(msgspec.Struct, frozen=True):
    """The launches of a run, placed in steps.

    `work`: by lane and start, with `lane`, `cycle` (null in no step), `phase`, `gap_ns`, `after` which launch the gap
    is, and `overlap_ns`.
    `left_out`: `lane` and `cycle` of steps that count as partial. `classes`: `function` and `cls`.
    """

    marks: Marks
    work: pl.DataFrame
    lanes: pl.DataFrame
    classes: pl.DataFrame
    left_out: pl.DataFrame

    def activity(self) -> Activity:
        """All of it, in steps or as one window."""
        work = self.work
        inside = work.filter(pl.col("cycle").is_not_null()) if work["cycle"].null_count() else work
        return self._activity(inside, inside.height)

    def of_phase(self, phase: str | None) -> Activity:
        """Its steps of one phase; None is the unknown one."""
        in_step = pl.col("cycle").is_not_null()
        inside = self.work.filter(in_step, pl.col("phase").eq_missing(pl.lit(phase, pl.String)))
        return self._activity(inside, self.work.height - self.work["cycle"].null_count())

    def _activity(self, inside: pl.DataFrame, in_steps: int) -> Activity:
        lanes, classes = self.lanes, self.classes
        shortest = _shortest(inside, classes) if lanes.height > 1 else None
        functions = _functions(inside, lanes, classes, shortest)
        kept = main_lanes(functions)
        main_of = lanes.join(kept, on=LANE, how="semi", nulls_equal=True)
        has_cycles = inside["cycle"].n_unique() > 1
        main = inside.join(main_of.select("lane"), on="lane", how="semi")
        outside = self.work.height - in_steps
        return Activity(
            functions=functions,
            cycles=_cycles(self, inside, main_of, functions),
            basis="launches",
            blocks=pl.DataFrame(schema=BLOCKS_SCHEMA) if has_cycles else _blocks(main, classes, shortest),
            order=_order(inside),
            gaps=_gaps(main, main_of) if has_cycles else pl.DataFrame(schema=GAPS),
            notes=tuple(_notes(self.work.height, outside, lanes.height - kept.height)),
        )


def activity_of_launches(trace: Trace) -> Activity:
    """The activity of a trace that has launches, in the steps that can be known of it alone."""
    return read_launches(trace, find_marks(trace)).activity()


def read_launches(trace: Trace, marks: Marks) -> LaunchedRun:
    """The launches of a trace in these steps."""
    is_marked = marks.are_recorded
    launches, lanes = _in_lanes(_launches(trace, with_calls=is_marked))
    if is_marked and launches["asked_ns"].null_count() == launches.height:
        marks = replace(marks, steps=marks.steps.clear(), notes=(*marks.notes, _UNCALLED))
    names = launches.group_by("kernel").agg(pl.col("kind").first()).cast({"kernel": pl.String, "kind": pl.String})
    classes = names.select(
        pl.col("kernel").alias("function"),
        pl.Series("cls", [class_of(name, kind) for name, kind in names.iter_rows()], dtype=pl.String),
    )
    placed, left_out = _in_steps(launches, lanes, marks.steps)
    return LaunchedRun(
        marks, _with_gaps(_with_seen_from(placed, lanes, unobserved_times(trace))), lanes, classes, left_out
    )


def _notes(launches: int, outside: int, bystanders: int) -> list[str]:
    notes = [f"{outside:,} of {launches:,} launches are in no step and are left out."] if outside else []
    if bystanders:
        notes.append(f"{bystanders:,} devices did less than a tenth of the work of their process's busiest: left out.")
    return notes


def _launches(trace: Trace, *, with_calls: bool) -> pl.DataFrame:
    """The launches, with `asked_ns`, which shows their step: when the host asked for them, or when they began."""
    columns = ["kind", "kernel", *LANE, "stream", "start_ns", "dur_ns"]
    launches = trace.compact("launches")
    if not with_calls:
        return launches.select(*columns, pl.col("start_ns").alias("asked_ns")).collect()
    queued = launches.select(*columns, "correlation_id").collect()
    return queued.select(*columns, when_asked(queued, trace))


def _in_lanes(launches: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The launches by lane and start, with the number of their `lane`; and the lanes."""
    lanes = launches.select(LANE).unique().sort(LANE).with_row_index("lane")
    if lanes.height == 1:
        numbered = launches.with_columns(pl.lit(0, dtype=pl.UInt32).alias("lane"))
        ordered = numbered.sort("start_ns", maintain_order=True)
    else:
        numbered = launches.join(lanes, on=LANE, how="left", nulls_equal=True)
        ordered = numbered.sort("lane", "start_ns", maintain_order=True)
    return ordered.drop(LANE), lanes.with_columns(pl.col("device").cast(pl.String))


def _in_steps(launches: pl.DataFrame, lanes: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The launches with the `cycle` and `phase` of each, and which steps of which lane are left out."""
    left_out = [pl.DataFrame(schema={"lane": pl.UInt32, "cycle": pl.Int64})]
    if steps.is_empty():
        cycle = pl.lit(1, dtype=pl.Int64).alias("cycle")
        nothing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in _IN_STEP.items() if name != "cycle"]
        return launches.with_columns(cycle, *nothing), left_out[0]
    found = [pl.DataFrame(schema=_IN_STEP)]
    for lane, process, rank, device in lanes.iter_rows():
        own = steps_of_lane(steps, process, rank, device)
        at = step_at(own, launches.filter(pl.col("lane") == lane)["asked_ns"])
        found.append(own.select(*_IN_STEP).select(pl.all().gather(at)))
        number = pl.lit(lane, dtype=pl.UInt32).alias("lane")
        left_out.append(own.filter("left_out").select(number, "cycle"))
    return pl.concat([launches, pl.concat(found)], how="horizontal"), pl.concat(left_out)


def _with_seen_from(launches: pl.DataFrame, lanes: pl.DataFrame, unobserved: pl.DataFrame) -> pl.DataFrame:
    """With `seen_from_ns`: when the last time ended before each launch in which none of its process was seen."""
    if unobserved.is_empty():
        return launches.with_columns(pl.lit(None, dtype=pl.Int64).alias("seen_from_ns"))
    ends = unobserved.select("process", pl.col("to_ns").alias("seen_from_ns")).sort("seen_from_ns")
    whose = launches.with_row_index("row").join(lanes.select("lane", "process"), on="lane").sort("start_ns")
    met = whose.join_asof(ends, left_on="start_ns", right_on="seen_from_ns", by="process", check_sortedness=False)
    return met.sort("row").drop("row", "process")


def _with_gaps(launches: pl.DataFrame) -> pl.DataFrame:
    """With `gap_ns` in front of each launch and its `overlap_ns` with work begun before, of one lane."""
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    fresh = (end - pl.max_horizontal(start, pl.col("open_until"))).clip(lower_bound=0)
    found_idle = pl.when(start - pl.col("asked_ns") <= FOUND_IDLE_NS).then("step_start_ns")
    before = pl.max_horizontal(pl.coalesce(end.cum_max().shift(1).over("lane"), found_idle), "seen_from_ns")
    return launches.with_columns(before.alias("open_until")).with_columns(
        (start - pl.col("open_until")).clip(lower_bound=0).fill_null(0).alias("gap_ns"),
        (pl.col("dur_ns") - fresh).alias("overlap_ns"),
        pl.col("kernel").shift(1).over("lane").alias("after"),
    )


def _gaps(work: pl.DataFrame, lanes: pl.DataFrame) -> pl.DataFrame:
    """When the lanes ran nothing, and between which functions."""
    gaps = work.filter(pl.col("gap_ns") > 0).select(
        "cycle", "lane", "after", pl.col("kernel").alias("before"),
        (pl.col("start_ns") - pl.col("gap_ns")).alias("start_ns"), pl.col("start_ns").alias("end_ns"),
    )  # fmt: skip
    return with_schema(gaps.join(lanes, on="lane"), GAPS)


def _functions(
    inside: pl.DataFrame, lanes: pl.DataFrame, classes: pl.DataFrame, shortest: pl.DataFrame | None
) -> pl.DataFrame:
    sums = (
        inside.group_by("cycle", "lane", "kernel")
        .agg(pl.col("dur_ns").sum(), pl.len().cast(pl.Int64).alias("calls"))
        .with_columns(pl.col("kernel").cast(pl.String).alias("function"))
        .join(classes, on="function")
        .join(lanes, on="lane")
        .sort("cycle", "lane", "function")
    )
    by_cycle = with_costs(with_schema(sums, FUNCTIONS))
    if shortest is None:
        return by_cycle
    costs = shortest.group_by("cycle", "lane", "function").agg(pl.col("least_ns").sum())
    keys = ["cycle", *LANE, "function"]
    costs = costs.join(lanes, on="lane").drop("lane")
    joined = by_cycle.join(costs, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.coalesce("least_ns", "cost_ns").alias("cost_ns")).select(list(FUNCTIONS))


def _shortest(inside: pl.DataFrame, classes: pl.DataFrame) -> pl.DataFrame:
    """`least_ns` of each launch of a collective: where all lanes have as many, the k-th cost what the shortest took."""
    collectives = classes.filter(pl.col("cls") == "collective")["function"]
    by = ["lane", "function"]
    calls = (
        inside.filter(pl.col("kernel").is_in(collectives.implode()))
        .select("cycle", "lane", pl.col("kernel").cast(pl.String).alias("function"), "dur_ns")
        .with_columns(pl.int_range(pl.len()).over(by).alias("k"))
    )
    counts = (
        calls.group_by(by).agg(pl.len()).group_by("function").agg(pl.len().alias("lanes"), pl.col("len").n_unique())
    )
    same = counts.filter((pl.col("lanes") > 1) & (pl.col("len") == 1)).select("function")
    least = pl.col("dur_ns").min().over("function", "k").alias("least_ns")
    return _in_blocks(calls.join(same, on="function", how="semi").with_columns(least), by)


def _cycles(run: LaunchedRun, inside: pl.DataFrame, lanes: pl.DataFrame, functions: pl.DataFrame) -> pl.DataFrame:
    """One row per cycle and lane; partial ones only at the ends, since launches between them are all there.

    A marked step began in the recording, so at most the last is cut. Which found steps are whole is known already, by
    what begins and ends them and not by how many launches they have.
    """
    is_marked = run.marks.are_recorded
    step = pl.col("dur_ns") - pl.col("overlap_ns") + pl.col("gap_ns")
    sums = (
        inside.group_by("cycle", "lane")
        .agg(
            pl.col("start_ns").min(),
            step.sum().alias("dur_ns"),
            pl.col("gap_ns").sum().alias("idle_ns"),
            pl.col("overlap_ns").sum(),
        )
        .join(lanes, on="lane")
        .sort("lane", "start_ns", "cycle")
    )
    checked = with_completeness(with_schema(sums, CYCLES), functions).with_columns(sums["lane"])
    if run.marks.looked_for:
        checked = checked.with_columns(pl.lit(value=True).alias("complete"))
        begins = run.work.group_by("lane").agg(pl.col("cycle").first().alias("begins_in"))
        is_first = (pl.col("cycle") == pl.col("begins_in")) & (pl.len().over("lane") >= _ENOUGH_CYCLES)
        checked = checked.join(begins, on="lane", how="left", maintain_order="left").with_columns(
            (pl.col("complete") & ~is_first.fill_null(value=False)).alias("complete")
        )
    begun = pl.lit(is_marked) | pl.col("complete").cum_max().over("lane")
    goes_on = pl.col("complete").cum_max(reverse=True).over("lane")
    checked = checked.with_columns((begun & goes_on & (pl.col("dur_ns") > 0)).alias("complete"))
    if run.left_out.height:
        partial = run.left_out.with_columns(pl.lit(value=True).alias("left_out"))
        checked = checked.join(partial, on=["lane", "cycle"], how="left", maintain_order="left").with_columns(
            pl.col("complete") & ~pl.col("left_out").fill_null(value=False)
        )
    return checked.select(list(CYCLES))


def _blocks(work: pl.DataFrame, classes: pl.DataFrame, shortest: pl.DataFrame | None) -> pl.DataFrame:
    """Each function's launches of each lane in stretches, summed over lanes; and so its gaps and overlaps."""
    kernels = _in_blocks(work.select("lane", "kernel", "dur_ns"), ["lane", "kernel"]).group_by("kernel", "block")
    frames = [
        kernels.agg(pl.col("dur_ns").sum(), pl.len().cast(pl.Int64).alias("calls"))
        .with_columns(pl.col("kernel").cast(pl.String).alias("function"))
        .join(classes, on="function")
    ]
    if shortest is not None:
        costs = shortest.group_by("function", "block").agg(pl.col("least_ns").sum().alias("cost_ns"))
        frames[0] = frames[0].join(costs, on=["function", "block"], how="left")
    for cls, column in (("idle", "gap_ns"), ("overlap", "overlap_ns")):
        rows = work.filter(pl.col(column) > 0).select("lane", pl.col(column).alias("dur_ns"))
        sums = _in_blocks(rows, ["lane"]).group_by("block").agg(pl.col("dur_ns").sum(), pl.len().alias("calls"))
        frames.append(sums.with_columns(pl.lit(cls).alias("cls"), pl.lit(cls).alias("function")))
    return pl.concat(with_schema(frame, BLOCKS_SCHEMA) for frame in frames).sort("cls", "function", "block")


def _in_blocks(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """With `block`: which of so many stretches of equal numbers the row is in; few rows are one each."""
    at, of = pl.int_range(pl.len()).over(by), pl.len().over(by).cast(pl.Int64)
    return rows.with_columns(pl.when(of <= BLOCKS).then(at).otherwise(at * BLOCKS // of).alias("block"))


def _order(inside: pl.DataFrame) -> pl.DataFrame:
    """Some launches of the busiest lane, in order: a few stretches over the run."""
    if inside.is_empty():
        return pl.DataFrame(schema=ORDER)
    busiest = inside["lane"].value_counts(sort=True)["lane"][0]
    lane = inside.filter(pl.col("lane") == busiest).select("kernel", "stream")
    length = IN_ORDER // _STRETCHES
    begins = (
        [0] if lane.height <= IN_ORDER else [k * (lane.height - length) // (_STRETCHES - 1) for k in range(_STRETCHES)]
    )
    size = lane.height if len(begins) == 1 else length
    parts = [
        lane.slice(begin, size).sort("stream", maintain_order=True).with_columns(pl.lit(number).alias("stretch"))
        for number, begin in enumerate(begins)
    ]
    strand = pl.struct("stretch", "stream").rle_id().cast(pl.Int64).alias("strand")
    return pl.concat(parts).select(strand, pl.col("kernel").cast(pl.String).alias("function"))
