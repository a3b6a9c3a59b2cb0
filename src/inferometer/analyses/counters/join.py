"""Ties launches of a trace to counted ones, and says what was measured of each row of the table.

Launches of one kernel that are all of one row take the mean of the counted ones. Where several ops launch one kernel,
the n-th launch of the trace is the n-th counted one, in order of their beginnings: only if the trace has as many, or so
many times as many with the same ops in the same order each time. What doesn't join has a reason.
"""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from inferometer.analyses.counters.alike import Kind, number_alike
from inferometer.analyses.counters.metrics import ABOUT, MEANS, SUMS, counted_launches
from inferometer.analyses.counters.stalls import stall_shares
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED: Final = {"kernel_counters": (*ABOUT, "metric", "value")}
_LANE: Final = ("rank", "device")
_COUNTED_LANE: Final = ("rank", "process", "device")
_NUMBERS: Final = ("counted", "used", "launches", "joined", "by_name", "total_ns", "joined_ns")
_SHAPELESS = pl.col("grid").is_null() | pl.col("block").is_null()
_NOT_COUNTED = "the counters have no launch of this kernel with this grid and block"
_AMBIGUOUS = "several ops launch this kernel, and not in an order that repeats as often as it was counted"
_NO_KERNEL = "copies and fills aren't counted"
_NOT_TRACED = "the trace has no launch of this kernel with this grid and block"


@dataclass(frozen=True)
class Counters:
    """What joined and what didn't.

    `counted` launches are in the counters' file, `used` of them joined. Of the trace's `launches`, `joined` have
    counters: `joined_ns` of `total_ns`; `by_name` of them by name alone, since a file has no grid or block of theirs:
    what was counted may be of another size. `unjoined`: `kernel`, `reason`, `launches` and `total_ns` of the others;
    `unused`: `kernel`, `reason` and `launches` of counted ones that joined none.
    """

    source: str
    counted: int
    used: int
    launches: int
    joined: int
    by_name: int
    total_ns: int
    joined_ns: int
    unjoined: pl.DataFrame
    unused: pl.DataFrame

    def as_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return {
            "source": self.source,
            **{name: getattr(self, name) for name in _NUMBERS},
            "unjoined": self.unjoined.to_dicts(),
            "unused": self.unused.to_dicts(),
        }


@dataclass(frozen=True)
class Joined:
    """`account`: what joined. `launches` of the trace have `SUMS`, `counted`, and parts of `MEANS`.

    Of each of `MEANS` that is its product with the weight, and `NAME_of` the weight; `counted` is null where none
    joined. `counted` launches and those of the trace belong together where `alike` and `place` agree. `stalls`: of
    `stall_shares`.
    """

    account: Counters
    launches: pl.DataFrame
    counted: pl.DataFrame
    stalls: pl.DataFrame


def join_counters(placed: pl.DataFrame, trace: Trace) -> Joined:
    """Which launches have counters, and which.

    Args:
        placed: Launches that ran, each with its `row`.
        trace: Of the counters, with `NEEDED`.

    Raises:
        InputError: It holds no counters of kernels, or none of the metrics that are read.
    """
    counted, stalls = _read(trace)
    launches, counted = _numbered(placed, counted)
    launches, counted = _placed(launches, counted)
    means = counted.filter(pl.col("place").is_not_null()).group_by("alike", "place").agg(*_weighted())
    joined = launches.join(means, on=["alike", "place"], how="left", maintain_order="left", nulls_equal=False)
    return Joined(_account(trace.facts.source, joined, counted, means), joined, counted, stalls)


def losses_of_both(losses: Losses, counters: Trace) -> Losses:
    """Those of a trace, and of the counters' file."""
    both = Losses(losses.scope | counters.losses.scope)
    both.add(losses)
    both.add(counters.losses, counters.facts.source)
    return both


def _read(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    table = trace.tables["kernel_counters"].select(NEEDED["kernel_counters"]).collect()
    if not table.height:
        raise InputError(
            f"{trace.facts.source}: expected counters of kernels, found none",
            hint="Nsight Compute writes them: ncu --csv --page raw --import REPORT.ncu-rep > ncu.csv",
        )
    counted, stalls = counted_launches(table), stall_shares(table)
    if stalls.is_empty() and counted.select(pl.all_horizontal(pl.col(*SUMS, *MEANS).is_null().all())).item():
        metrics = ", ".join(table["metric"].unique(maintain_order=True).head(3))
        raise InputError(
            f"{trace.facts.source}: expected bytes of DRAM, FLOPs, the L2 hit rate, occupancy, stalls or the clock of "
            f"kernels, found other metrics ({metrics})",
            hint="Count them: ncu --set full, or --section MemoryWorkloadAnalysis --section Occupancy.",
        )
    return counted, stalls


def _numbered(placed: pl.DataFrame, counted: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both with `alike`, equal for one kernel; of the trace, kernels alone have one."""
    kinds = []
    frames = []
    for frame in (placed.with_columns(pl.col("kernel").cast(pl.String)), counted):
        numbered = frame.with_columns(pl.struct("kernel", "grid", "block").rank("dense").cast(pl.Int64).alias("which"))
        each = numbered.unique("which", keep="first").sort("which").select("which", "kernel", "grid", "block")
        kinds.append(
            [
                Kind(kernel or "", None if grid is None or block is None else (tuple(grid), tuple(block)))
                for _, kernel, grid, block in each.iter_rows()
            ]
        )
        frames.append((numbered, each["which"]))
    found = []
    for (frame, which), numbers in zip(frames, number_alike(*kinds), strict=True):
        names = pl.DataFrame({"which": which, "alike": pl.Series(numbers, dtype=pl.Int64)})
        found.append(frame.join(names, on="which", how="left", maintain_order="left").drop("which"))
    is_kernel = pl.col("kind").cast(pl.String) == "kernel"
    return found[0].with_columns(pl.when(is_kernel).then("alike").alias("alike")), found[1]


def _placed(launches: pl.DataFrame, counted: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both with `place`: what is at one place of one kernel belongs together; null where that can't be said."""
    here = launches.sort("start_ns", maintain_order=True).with_columns(
        pl.int_range(pl.len()).over("alike", *_LANE).alias("at"), pl.len().over("alike", *_LANE).alias("length")
    )
    there = counted.sort("launch").with_columns(
        pl.int_range(pl.len()).over("alike", *_COUNTED_LANE).alias("at"),
        pl.len().over("alike", *_COUNTED_LANE).alias("length"),
    )
    periods = there.group_by("alike").agg(
        pl.when(pl.col("length").n_unique() == 1).then(pl.col("length").first()).alias("period")
    )
    timed = here.join(periods, on="alike", how="left", maintain_order="left").with_columns(
        (pl.col("row").n_unique() == 1).over("alike").alias("is_one"),
        (pl.col("at") % pl.col("period")).alias("turn"),
    )
    repeats = ((pl.col("length") % pl.col("period")) == 0).all().over("alike") & (
        pl.col("row").n_unique().over("alike", "turn") == 1
    ).all().over("alike")
    decided = timed.with_columns(
        pl.when(pl.col("alike").is_null())
        .then(None)
        .when(pl.col("is_one"))
        .then(0)
        .when(repeats)
        .then("turn")
        .cast(pl.Int64)
        .alias("place")
    )
    by_order = decided.group_by("alike").agg(
        pl.col("is_one").first(), pl.col("place").is_not_null().all().alias("is_in")
    )
    known = there.join(by_order, on="alike", how="left", maintain_order="left").with_columns(
        pl.when("is_in").then(pl.when("is_one").then(0).otherwise("at")).cast(pl.Int64).alias("place")
    )
    return decided, known


def _weighted() -> list[pl.Expr]:
    """Means of counts; of shares and rates, what their weighted mean is made of."""
    parts = [pl.col(name).mean() for name in SUMS]
    for name, weight in MEANS.items():
        known = pl.when(pl.col(name).is_not_null()).then(weight)
        parts += [(pl.col(name) * known).mean().alias(name), known.mean().alias(f"{name}_of")]
    return [*parts, pl.len().cast(pl.Int64).alias("counted"), _SHAPELESS.any().alias("is_shapeless")]


def _account(source: str, joined: pl.DataFrame, counted: pl.DataFrame, means: pl.DataFrame) -> Counters:
    left = joined.filter(pl.col("counted").is_null())
    why = (
        pl.when(pl.col("kind").cast(pl.String) != "kernel")
        .then(pl.lit(_NO_KERNEL))
        .when(pl.col("alike").is_null())
        .then(pl.lit(_NOT_COUNTED))
        .otherwise(pl.lit(_AMBIGUOUS))
    )
    unused = counted.filter(pl.col("place").is_null())
    reason = pl.when(pl.col("alike").is_null()).then(pl.lit(_NOT_TRACED)).otherwise(pl.lit(_AMBIGUOUS))
    return Counters(
        source=source,
        counted=counted.height,
        used=int(means["counted"].sum()),
        launches=joined.height,
        joined=joined.height - left.height,
        by_name=joined.filter(pl.col("counted").is_not_null(), _SHAPELESS | pl.col("is_shapeless")).height,
        total_ns=int(joined["dur_ns"].sum()),
        joined_ns=int(joined.filter(pl.col("counted").is_not_null())["dur_ns"].sum()),
        unjoined=left.group_by("kernel", why.alias("reason"))
        .agg(pl.len().cast(pl.Int64).alias("launches"), pl.col("dur_ns").sum().alias("total_ns"))
        .sort("total_ns", "kernel", descending=[True, False]),
        unused=unused.group_by("kernel", reason.alias("reason"))
        .agg(pl.len().cast(pl.Int64).alias("launches"))
        .sort("launches", "kernel", descending=[True, False]),
    )
