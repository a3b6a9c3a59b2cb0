"""What a run did: the time and calls of each function in each cycle, from whatever the source recorded.

From `function_times` where there are any, else from launches, else from printed totals, by step where they are. A lane
is a device of a process and rank; a step is what one lane does in one cycle. Devices with a tenth of the calls of their
process's busiest are bystanders and have no lane. A cycle is complete with at least nine tenths of the lane's usual
device calls (of host calls where no device was recorded); the bounds are in `comparison_limits`.
"""

from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from inferometer.analyses.comparison_limits import MAIN_DEVICE, WHOLE_CYCLE
from inferometer.names.communication import find_collective
from inferometer.trace.trace import Trace

Basis = Literal["function_times", "launches", "totals", "none"]
Cls = Literal["host", "compute", "transfer", "collective"]
HOST, COMPUTE = "host", "compute"
OWNER = ["process", "rank"]
LANE = [*OWNER, "device"]
FUNCTIONS = pl.Schema(
    {
        "cycle": pl.Int64,
        "process": pl.Int64,
        "rank": pl.Int64,
        "function": pl.String,
        "cls": pl.String,
        "device": pl.String,
        "dur_ns": pl.Int64,
        "calls": pl.Int64,
        "cost_ns": pl.Int64,
        "spread_ns": pl.Float64,
    }
)
CYCLES = pl.Schema(
    {
        "cycle": pl.Int64,
        "process": pl.Int64,
        "rank": pl.Int64,
        "device": pl.String,
        "start_ns": pl.Int64,
        "dur_ns": pl.Int64,
        "idle_ns": pl.Int64,
        "overlap_ns": pl.Int64,
        "anchor": pl.String,
        "complete": pl.Boolean,
    }
)
BLOCKS_SCHEMA = pl.Schema(
    {
        "function": pl.String,
        "cls": pl.String,
        "block": pl.Int64,
        "dur_ns": pl.Int64,
        "calls": pl.Int64,
        "cost_ns": pl.Int64,
    }
)
ORDER = pl.Schema({"strand": pl.Int64, "function": pl.String})


@dataclass(frozen=True)
class Activity:
    """A run as functions and cycles.

    `functions`: one row a function, device, process, rank and cycle. `cls` is `host`, `compute`, `transfer` or
    `collective`; `cost_ns`, of collectives on several lanes, is their time without waiting for other ranks;
    `spread_ns` the deviation of one call where only sums are known.
    `cycles`: one row a cycle and lane (`device` is null where no device was recorded). From launches `idle_ns` and
    `overlap_ns` are known, and the sum of the lane's durations - overlap + idle = `dur_ns`.
    `blocks`: where a window of launches has no cycles, each function's launches in stretches of equal numbers, with
    the classes `idle` and `overlap` for the gaps and overlaps before its launches.
    `order`: a sample of the launches of one lane in order; a strand is one stretch of one stream.
    """

    functions: pl.DataFrame
    cycles: pl.DataFrame
    basis: Basis = "none"
    blocks: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BLOCKS_SCHEMA))
    order: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ORDER))
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the run's functions."""
        return self.functions.is_empty()

    @property
    def is_on_cpu(self) -> bool:
        """Whether the CPU is the device of all kernels, as of ops that were recorded without a GPU."""
        return self.functions.filter(pl.col("cls") == COMPUTE)["device"].unique().to_list() == ["cpu"]


def activity(trace: Trace, contexts: tuple[int, int] | None = None) -> Activity:
    """What the run did.

    Args:
        trace: Needs any of `function_times`, `launches` (with `steps`, `spans` and `calls` for cycles) and `totals`
            (with `steps` where they were printed by step).
        contexts: Of steps that were printed, those with so many tokens of context, first and last.
    """
    if _has_rows(trace, "function_times"):
        return _from_function_times(trace)
    if _has_rows(trace, "launches"):
        from inferometer.analyses.compare.activity.launch_activity import activity_of_launches

        return activity_of_launches(trace)
    if _has_rows(trace, "totals"):
        from inferometer.analyses.compare.activity.printed_activity import activity_of_steps, is_by_step

        return activity_of_steps(trace, contexts) if is_by_step(trace) else _from_totals(trace)
    return Activity(pl.DataFrame(schema=FUNCTIONS), pl.DataFrame(schema=CYCLES))


def class_of(function: str, source_class: str | None = None) -> Cls:
    """The class of a device's function, by what the source says of it, and by its name."""
    text = (source_class or "").lower()
    if "comm" in text or "collective" in text or find_collective(function):
        return "collective"
    copies = ("memcpy", "memset", "[cuda mem")
    return "transfer" if any(word in text or function.lower().startswith(word) for word in copies) else "compute"


def with_costs(functions: pl.DataFrame) -> pl.DataFrame:
    """`cost_ns` of collectives that several lanes ran in one cycle: the least time per call of any, times the calls.

    A rank that arrives early spins in the kernel until the last is there: only the shortest is the collective's own.
    """
    by = ["cycle", "function"]
    each = pl.when(pl.col("calls") > 0).then(pl.col("dur_ns") / pl.col("calls"))
    least = each.min().over(by) * pl.col("calls")
    cost = pl.min_horizontal(least.round().cast(pl.Int64), pl.col("dur_ns"))
    is_shared = (pl.col("cls") == "collective") & (pl.len().over(by) > 1) & (pl.col("calls").min().over(by) > 0)
    return functions.with_columns(pl.when(is_shared).then(cost).alias("cost_ns"))


def with_completeness(cycles: pl.DataFrame, functions: pl.DataFrame) -> pl.DataFrame:
    """`cycles` with `complete`: enough calls on the lane's device, and a length."""
    device = functions.filter(pl.col("cls") != HOST).group_by("cycle", *LANE).agg(pl.col("calls").sum())
    host = functions.group_by("cycle", *OWNER).agg(pl.col("calls").sum().alias("all_calls"))
    joined = cycles.join(device, on=["cycle", *LANE], how="left", nulls_equal=True, maintain_order="left").join(
        host, on=["cycle", *OWNER], how="left", nulls_equal=True, maintain_order="left"
    )
    calls = pl.when(pl.col("device").is_null()).then("all_calls").otherwise("calls").fill_null(0)
    usual = calls.replace(0, None).median().over(LANE).fill_null(0)
    whole = (calls > 0) & (calls >= WHOLE_CYCLE * usual) & (pl.col("dur_ns") > 0).fill_null(value=False)
    return joined.with_columns(whole.alias("complete")).select(list(CYCLES))


def filled(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """`frame` with exactly these columns and types; those that it lacks are null."""
    lacking = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in frame.columns]
    return frame.with_columns(lacking).select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def main_lanes(functions: pl.DataFrame) -> pl.DataFrame:
    """The lanes of each process: its devices, without bystanders."""
    calls = functions.filter(pl.col("cls") != HOST).group_by(LANE).agg(pl.col("calls").sum())
    return calls.filter(pl.col("calls") >= MAIN_DEVICE * pl.col("calls").max().over(OWNER)).select(LANE).sort(LANE)


def _has_rows(trace: Trace, table: str) -> bool:
    return table in trace.scope and bool(trace.tables[table].select(pl.len()).collect().item())


def _from_function_times(trace: Trace) -> Activity:
    rows = trace.function_times.collect()
    notes = () if rows["calls"].null_count() == 0 else ("Calls were not recorded: each row counts as one call.",)
    names = rows.select("function", "class", "device").unique(maintain_order=True)
    classes = [HOST if device == HOST else class_of(function, text) for function, text, device in names.iter_rows()]
    rows = rows.join(
        names.with_columns(pl.Series("cls", classes, dtype=pl.String)),
        on=["function", "class", "device"],
        nulls_equal=True,
        maintain_order="left",
    )
    sums = rows.group_by("cycle", *LANE, "function", "cls", maintain_order=True).agg(
        pl.col("dur_ns").sum(), pl.col("calls").fill_null(1).sum()
    )
    functions = with_costs(filled(sums, FUNCTIONS))
    cycles = rows.group_by("cycle", *OWNER, maintain_order=True).agg(
        pl.col("cycle_dur_ns").max().alias("dur_ns"), pl.col("anchor").drop_nulls().first()
    )
    cycles = cycles.join(_starts(trace), on=["cycle", *OWNER], how="left", nulls_equal=True, maintain_order="left")
    lanes = cycles.join(main_lanes(functions), on=OWNER, how="left", nulls_equal=True)
    ordered = filled(lanes, CYCLES).sort(*LANE, "cycle")
    return Activity(functions, with_completeness(ordered, functions), "function_times", notes=notes)


def _starts(trace: Trace) -> pl.DataFrame:
    """When each cycle began, where the source's steps are these cycles."""
    if "steps" not in trace.scope:
        return pl.DataFrame(schema={name: CYCLES[name] for name in ("cycle", *OWNER, "start_ns")})
    steps = trace.steps.select(pl.col("step").alias("cycle"), *OWNER, "start_ns").collect()
    return steps.unique(["cycle", *OWNER], keep="first", maintain_order=True)


def _from_totals(trace: Trace) -> Activity:
    """The first printed table: others may count the same time. Rows without a time are left out, and reported."""
    rows = trace.totals.collect()
    sections = rows["section"].unique().sort()
    rows = rows.filter(pl.col("section") == sections[0])
    summed = pl.col("total_ns").fill_null((pl.col("mean_ns") * pl.col("count")).round().cast(pl.Int64))
    rows = rows.with_columns(summed.alias("dur_ns"), pl.col("count").fill_null(1).alias("calls"))
    known = rows.filter(pl.col("dur_ns").is_not_null())
    notes = [f"Of {len(sections)} printed tables the first is compared."] if len(sections) > 1 else []
    if known.height < rows.height:
        notes.append(f"{rows.height - known.height} printed rows without a time are left out.")
    spread = pl.when(pl.len() == 1).then(pl.col("stddev_ns").first()).alias("spread_ns")
    sums = known.group_by("rank", "device", pl.col("kernel").alias("function"), maintain_order=True).agg(
        pl.col("dur_ns").sum(), pl.col("calls").sum(), spread
    )
    classes = [class_of(name) for name in sums["function"]]
    functions = filled(sums.with_columns(pl.Series("cls", classes, dtype=pl.String), cycle=1), FUNCTIONS)
    lanes = functions.group_by(LANE, maintain_order=True).agg(pl.col("dur_ns").sum())
    cycles = filled(lanes.with_columns(cycle=1, complete=pl.lit(value=True)), CYCLES)
    return Activity(functions, cycles, "totals", notes=tuple(notes))
