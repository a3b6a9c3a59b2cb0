"""What a run did: the time and calls of each function in each cycle. `sources` makes it.

A lane is a device of a process and rank; a step is what one lane does in one cycle. Devices with a tenth of the calls
of their process's busiest are bystanders and have no lane. A cycle is complete with at least nine tenths of the lane's
usual device calls (of host calls where no device was recorded); the bounds are in `comparison_limits`.
"""

from typing import Literal

import msgspec
import polars as pl

from inferometer.analyses.comparison_limits import MAIN_DEVICE, WHOLE_CYCLE
from inferometer.names.communication import find_collective

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
GAPS = pl.Schema(
    {
        "cycle": pl.Int64,
        "process": pl.Int64,
        "rank": pl.Int64,
        "device": pl.String,
        "after": pl.String,
        "before": pl.String,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
    }
)


class Activity(msgspec.Struct, frozen=True):
    """A run as functions and cycles.

    `functions`: one row per function, device, process, rank and cycle. `cls` is `host`, `compute`, `transfer` or
    `collective`; `cost_ns`, of collectives on several lanes, is their time without waiting for other ranks;
    `spread_ns` the deviation of one call where only sums are known.
    `cycles`: one row per cycle and lane (`device` is null where no device was recorded). From launches `idle_ns` and
    `overlap_ns` are known, and the sum of the lane's durations - overlap + idle = `dur_ns`.
    `blocks`: where a window of launches has no cycles, each function's launches in stretches of equal numbers, with
    the classes `idle` and `overlap` for the gaps and overlaps before its launches.
    `order`: a sample of the launches of one lane in order; a strand is one stretch of one stream.
    `gaps`: of launches in cycles, when each lane ran nothing, between which functions; of a lane's first, `after` is
    null. Those of a cycle and lane add up to its `idle_ns`.
    """

    functions: pl.DataFrame
    cycles: pl.DataFrame
    basis: Basis = "none"
    blocks: pl.DataFrame = msgspec.field(default_factory=lambda: pl.DataFrame(schema=BLOCKS_SCHEMA))
    order: pl.DataFrame = msgspec.field(default_factory=lambda: pl.DataFrame(schema=ORDER))
    gaps: pl.DataFrame = msgspec.field(default_factory=lambda: pl.DataFrame(schema=GAPS))
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the run's functions."""
        return self.functions.is_empty()

    @property
    def is_on_cpu(self) -> bool:
        """Whether the CPU is the device of all kernels, as of ops that were recorded without a GPU."""
        return self.functions.filter(pl.col("cls") == COMPUTE)["device"].unique().to_list() == ["cpu"]


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


def main_lanes(functions: pl.DataFrame) -> pl.DataFrame:
    """The lanes of each process: its devices, without bystanders."""
    calls = functions.filter(pl.col("cls") != HOST).group_by(LANE).agg(pl.col("calls").sum())
    return calls.filter(pl.col("calls") >= MAIN_DEVICE * pl.col("calls").max().over(OWNER)).select(LANE).sort(LANE)
