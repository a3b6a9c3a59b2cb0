"""Ranks against each other: imbalance of compute, and who kept the others waiting in collectives.

All ranks leave an all-reduce, all-gather, reduce-scatter or all-to-all at about the same time, since each needs every
other's data. So the rank whose kernel was shortest arrived last, and each other rank waited by as much as its own
kernel was longer. That needs durations only and holds whatever the ranks' clocks say.

The k-th launches of one kernel on each rank are taken for the same collective; where the source records which
collective a launch is of, and in which process group, only those of the same. A launch that only waits for the end of
a collective that another began (XLA's `all-reduce-done`) is left out. A trace can't prove that launches belong
together, but it can deny it: they must be as many on each rank, and from one to the next the ranks must leave in step
(`_TOGETHER_NS`). Where they don't (unknown process groups, launches missing), they are not compared, and the table says
why.
"""

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.timeline.collectives import work_collectives
from inferometer.analyses.timeline.work import PLACE, Work
from inferometer.names.communication import done_halves
from inferometer.trace.tables import COLLECTIVES

_TOGETHER_NS = 5_000  # ranks leave a collective within a few μs of each other,
_TOGETHER_SHARE = 0.1  # or, where data flows round a ring for long, within a tenth of its time
_ENOUGH = 3  # fewer can't show that ranks leave in step
_ONE_SIDED = ("send_recv", "broadcast", "reduce")  # a rank may leave before the others arrive
KIND = ["kernel", "collective", "group"]
"""What shows whether launches of several ranks may be of one collective."""
_OF = [*KIND, "k"]


class Ranks(msgspec.Struct, frozen=True):
    """`frame`: one row per place; `collectives`: one row per kernel that communicates, collective and process group.

    Both are empty where there is one place only.
    `imbalance` is the largest compute time over the mean, minus 1; None without compute.
    """

    frame: pl.DataFrame
    collectives: pl.DataFrame
    imbalance: float | None


def compare_ranks(work: Work, devices: pl.DataFrame, recorded: pl.DataFrame | None = None) -> Ranks:
    """Imbalance and stragglers.

    Args:
        work: The launches. In a window, collectives count that every rank has in it, whole.
        devices: One row per place in the order of `work.places`, with `compute_busy_ns`.
        recorded: What the source records of collectives, as `recorded_collectives` gives it.
    """
    known = COLLECTIVES.empty.collect() if recorded is None else recorded
    compared = work if devices.height > 1 else replace(work, launches=work.launches.clear())
    collectives, matched = match_ranks(work_collectives(compared, known), work.window_ns)
    compute = pl.col("compute_busy_ns")
    frame = (
        devices.with_row_index("place")
        .select("place", *PLACE, compute, (compute / compute.mean() - 1).fill_nan(None).alias("against_mean"))
        .join(_waits(matched), on="place", how="left")
        .with_columns((pl.col("last") / pl.col("compared")).alias("last_share"))
        .sort("place")
        .drop("place")
    )
    if devices.height < 2:
        return Ranks(frame.clear(), collectives.clear(), None)
    imbalance = frame["against_mean"].max()
    return Ranks(frame, collectives, imbalance if isinstance(imbalance, float) else None)


def match_ranks(launches: pl.DataFrame, window_ns: tuple[int, int] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Each kind of collective and whether it can be compared; and the launches of those that can.

    Args:
        launches: Those that communicate, by `place` and start: `kernel`, `collective`, `group`, `start_ns`, `end_ns`
            and `dur_ns`; other columns stay.
        window_ns: Collectives count that every rank has in it, whole.

    Returns:
        Kinds: `KIND`, `ranks`, `compared`, `waited_ns` and `not_compared`, the reason why not. Launches with `wait_ns`,
        how long each waited for the rank that arrived last, and `last`, whether it did alone.
    """
    repeated = done_halves(launches["kernel"].unique().to_list())
    launches = launches.filter(~pl.col("kernel").is_in(repeated)).with_columns(
        pl.int_range(pl.len()).over(*KIND, "place").alias("k")
    )
    counts = launches.group_by(*KIND, "place").agg(pl.len().cast(pl.Int64).alias("n"))
    kinds = (
        counts.group_by(KIND)
        .agg(pl.len().cast(pl.Int64).alias("ranks"), pl.col("n").min().alias("fewest"), pl.col("n").max().alias("most"))
        .join(_steps(launches), on=KIND, how="left", nulls_equal=True)
        .with_columns(_why_not().alias("not_compared"))
    )
    comparable = kinds.filter(pl.col("not_compared").is_null())
    matched = launches.join(comparable, on=KIND, how="semi", nulls_equal=True)
    if window_ns is not None:
        inside = pl.col("start_ns").min() >= window_ns[0], pl.col("end_ns").max() <= window_ns[1]
        whole = matched.group_by(_OF).agg(pl.all_horizontal(inside).alias("whole")).filter("whole")
        matched = matched.join(whole, on=_OF, how="semi", nulls_equal=True)
    shortest = pl.col("dur_ns").min().over(_OF)
    matched = matched.with_columns(
        (pl.col("dur_ns") - shortest).alias("wait_ns"),
        ((pl.col("dur_ns") == shortest) & ((pl.col("dur_ns") == shortest).sum().over(_OF) == 1)).alias("last"),
    )
    waited = matched.group_by(KIND).agg(
        pl.col("k").n_unique().cast(pl.Int64).alias("compared"), pl.col("wait_ns").sum().alias("waited_ns")
    )
    columns = (*KIND, "ranks", "fewest", "most", "compared", "waited_ns", "step_ns", "not_compared")
    rows = kinds.join(waited, on=KIND, how="left", nulls_equal=True).sort(
        "waited_ns", "most", *KIND, descending=[True, True, False, False, False], nulls_last=True
    )
    return rows.select(columns), matched


def _steps(launches: pl.DataFrame) -> pl.DataFrame:
    """How far ranks are from leaving in step: the median difference of their times from one exit to the next, ns.

    Compared with the first rank's, times between exits need no common clock and no equal speed of clocks.
    """
    step = pl.col("end_ns").diff().over(*KIND, "place")
    steps = launches.with_columns(step.alias("step_ns"))
    is_first = pl.col("place") == pl.col("place").min().over(KIND)
    first = steps.filter(is_first).select(*_OF, first_ns="step_ns")
    others = steps.filter(~is_first).join(first, on=_OF, nulls_equal=True)
    off = (pl.col("step_ns") - pl.col("first_ns")).abs().median().alias("step_ns")
    medians = launches.group_by(KIND).agg(pl.col("dur_ns").median().alias("median_ns"))
    return others.group_by(KIND).agg(off).join(medians, on=KIND, nulls_equal=True)


def _why_not() -> pl.Expr:
    together = pl.max_horizontal(pl.lit(float(_TOGETHER_NS)), _TOGETHER_SHARE * pl.col("median_ns"))
    return (
        pl.when(pl.col("ranks") < 2)
        .then(pl.lit("on one rank only"))
        .when(pl.col("collective").is_in(_ONE_SIDED))
        .then(pl.lit("ranks may leave apart"))
        .when(pl.col("fewest") != pl.col("most"))
        .then(pl.lit("not as many on each rank"))
        .when(pl.col("most") < _ENOUGH)
        .then(pl.lit("too few"))
        .when(pl.col("step_ns") > together)
        .then(pl.lit("ranks don't leave in step"))
    )


def _waits(matched: pl.DataFrame) -> pl.DataFrame:
    """By place: collectives `compared` and their time, how often it was `last`, how long it and others waited."""
    others = pl.when(pl.col("last")).then(pl.col("wait_ns").sum().over(_OF)).otherwise(0)
    return (
        matched.with_columns(others.alias("others_ns"))
        .group_by("place")
        .agg(
            pl.len().cast(pl.Int64).alias("compared"),
            pl.col("dur_ns").sum().alias("compared_ns"),
            pl.col("last").sum().cast(pl.Int64),
            pl.col("wait_ns").sum().alias("waited_ns"),
            pl.col("others_ns").sum().alias("kept_waiting_ns"),
        )
    )
