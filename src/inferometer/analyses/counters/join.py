"""Ties launches of a trace to counted ones, and says what was measured of each row of the table.

Launches of one kernel that are all of one row take the mean of the counted ones. Where several ops launch one kernel,
the n-th launch of the trace is the n-th counted one, in order of their beginnings: only if the trace has as many, or so
many times as many with the same ops in the same order each time. What doesn't join has a reason.
"""

from typing import Any, Final

import msgspec
import polars as pl

from inferometer.analyses.counters.alike import Kind, number_alike
from inferometer.analyses.counters.metrics import ABOUT, MEANS, SUMS, counted_launches
from inferometer.analyses.counters.stalls import stall_shares
from inferometer.analyses.recording_advice import is_of_rocprof, say_how_counters_are_recorded
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


class JoinAccount(msgspec.Struct, frozen=True):
    """How many launches joined, and why the others didn't.

    Attributes:
        source: The counters' file.
        counted: Launches in it.
        used: Those of them that joined.
        launches: Launches of the trace.
        joined: Those of them that have counters.
        by_name: Those that joined by name alone, since a file lacks their grid or block: the sizes may differ.
        total_ns: Time of all launches of the trace.
        joined_ns: Time of those that have counters.
        unjoined: `kernel`, `reason`, `launches` and `total_ns` of the trace's launches without counters.
        unused: `kernel`, `reason` and `launches` of counted launches that joined none.
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


class Joined(msgspec.Struct, frozen=True):
    """Launches of a trace with what was counted of them.

    Attributes:
        account: How many joined.
        launches: The trace's launches with `alike`, `place`, `is_by_name`, `SUMS` and, for each of `MEANS`, its product
            with the weight under its name and the weight as `NAME_of`. `counted` is how many counted launches these are
            means of, null where none joined.
        counted: Counted launches; they belong to those of the trace with the same `alike` and `place`.
        stalls: As `stall_shares` gives them.
    """

    account: JoinAccount
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
    joined = launches.join(
        means, on=["alike", "place"], how="left", maintain_order="left", nulls_equal=False
    ).with_columns((pl.col("counted").is_not_null() & (_SHAPELESS | pl.col("is_shapeless"))).alias("is_by_name"))
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
            hint=say_how_counters_are_recorded(trace.facts.format),
        )
    counted, stalls = counted_launches(table), stall_shares(table)
    if stalls.is_empty() and counted.select(pl.all_horizontal(pl.col(*SUMS, *MEANS).is_null().all())).item():
        metrics = ", ".join(table["metric"].unique(maintain_order=True).head(3))
        raise InputError(
            f"{trace.facts.source}: expected bytes of DRAM, FLOPs, the L2 hit rate, occupancy, stalls or the clock of "
            f"kernels, found other metrics ({metrics})",
            hint="inferometer counters FILE shows these."
            if is_of_rocprof(trace.facts.format)
            else "Count them: ncu --set full, or --section MemoryWorkloadAnalysis --section Occupancy.",
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
    there = _in_order(counted.sort("launch"), _COUNTED_LANE)
    periods = there.group_by("alike").agg(
        pl.when(pl.col("of_lane").n_unique() == 1).then(pl.col("of_lane").first()).alias("period")
    )
    here = _in_order(launches.sort("start_ns", maintain_order=True), _LANE)
    timed = here.join(periods, on="alike", how="left", maintain_order="left").with_columns(
        (pl.col("row").n_unique() == 1).over("alike").alias("has_one_row"),
        (pl.col("nth") % pl.col("period")).alias("turn"),
    )
    is_whole = ((pl.col("of_lane") % pl.col("period")) == 0).all().over("alike")
    is_same_each_time = (pl.col("row").n_unique().over("alike", "turn") == 1).all().over("alike")
    place = (
        pl.when(pl.col("alike").is_null())
        .then(None)
        .when(pl.col("has_one_row"))
        .then(0)
        .when(is_whole & is_same_each_time)
        .then("turn")
    )
    traced = timed.with_columns(place.cast(pl.Int64).alias("place"))
    kernels = traced.group_by("alike").agg(
        pl.col("has_one_row").first(), pl.col("place").is_not_null().all().alias("is_placed")
    )
    its_place = pl.when("is_placed").then(pl.when("has_one_row").then(0).otherwise("nth")).cast(pl.Int64)
    joined = there.join(kernels, on="alike", how="left", maintain_order="left")
    return traced, joined.with_columns(its_place.alias("place"))


def _in_order(launches: pl.DataFrame, lane: tuple[str, ...]) -> pl.DataFrame:
    """With `nth`, from 0, among the launches of one kernel in one lane, and `of_lane`, how many these are."""
    return launches.with_columns(
        pl.int_range(pl.len()).over("alike", *lane).alias("nth"), pl.len().over("alike", *lane).alias("of_lane")
    )


def _weighted() -> list[pl.Expr]:
    """Means of counts; of shares and rates, what their weighted mean is made of."""
    parts = [pl.col(name).mean() for name in SUMS]
    for name, weight in MEANS.items():
        known = pl.when(pl.col(name).is_not_null()).then(weight)
        parts += [(pl.col(name) * known).mean().alias(name), known.mean().alias(f"{name}_of")]
    return [*parts, pl.len().cast(pl.Int64).alias("counted"), _SHAPELESS.any().alias("is_shapeless")]


def _account(source: str, joined: pl.DataFrame, counted: pl.DataFrame, means: pl.DataFrame) -> JoinAccount:
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
    return JoinAccount(
        source=source,
        counted=counted.height,
        used=int(means["counted"].sum()),
        launches=joined.height,
        joined=joined.height - left.height,
        by_name=int(joined["is_by_name"].sum()),
        total_ns=int(joined["dur_ns"].sum()),
        joined_ns=int(joined.filter(pl.col("counted").is_not_null())["dur_ns"].sum()),
        unjoined=left.group_by("kernel", why.alias("reason"))
        .agg(pl.len().cast(pl.Int64).alias("launches"), pl.col("dur_ns").sum().alias("total_ns"))
        .sort("total_ns", "kernel", descending=[True, False]),
        unused=unused.group_by("kernel", reason.alias("reason"))
        .agg(pl.len().cast(pl.Int64).alias("launches"))
        .sort("launches", "kernel", descending=[True, False]),
    )
