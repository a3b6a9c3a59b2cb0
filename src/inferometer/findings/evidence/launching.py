"""Where launching kernels one by one takes the device's time: gaps of that rhythm, and kernels too small for it."""

from typing import Final

import numpy as np
import polars as pl

from inferometer.analyses.numbering import is_among
from inferometer.analyses.timeline.work import PLACE
from inferometer.trace.lean import aggregate

TINY_NS: Final = 3_000
"""Kernels below this are launches more than work (see the rule `launch_bound`)."""

_GAPS = (*PLACE, "gap", "gap_ns", "called_ns", "node")


def sum_launching(gaps: pl.DataFrame, work: pl.DataFrame, is_alone: pl.Series) -> pl.DataFrame:
    """The time of each part at each place: `rank`, `device` and `ns`, a row of each part that a place has.

    Args:
        gaps: Of `LaunchEvidence`, as the next two.
        work: Launches.
        is_alone: Of each of them.
    """
    sums = [_by_place(late_gaps(gaps), "gap_ns")]  # one after the other: each is long
    tiny = tiny_kernels(work, is_alone)
    sums += [_by_place(tiny, "dur_ns"), _by_place(tiny_pauses(gaps, tiny), "gap_ns")]
    return pl.concat(sums)


def late_gaps(gaps: pl.DataFrame) -> pl.DataFrame:
    """Gaps of the kind `launching`: `rank`, `device`, `gap`, `gap_ns`, `called_ns`, `node`."""
    return gaps.lazy().filter(pl.col("kind") == "launching").select(_GAPS).collect()


def tiny_pauses(gaps: pl.DataFrame, tiny: pl.DataFrame) -> pl.DataFrame:
    """Gaps before tiny kernels that were queued in time; columns of `late_gaps`."""
    is_pause = (pl.col("cause") == "launch_gap") & ~pl.col("is_replay").fill_null(value=True)
    pauses = gaps.lazy().filter(is_pause).select(_GAPS).collect()
    return pauses.filter(_called_by(pauses, tiny))


def tiny_kernels(work: pl.DataFrame, is_alone: pl.Series) -> pl.DataFrame:
    """Kernels below `TINY_NS` that calls of their own launched: `rank`, `device`, `called_ns`, `dur_ns`, `node`."""
    rows = work.select(*PLACE, "called_ns", "dur_ns", "node")
    return rows.filter(is_alone & rows.select(pl.col("dur_ns") < TINY_NS).to_series())


def _by_place(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    return aggregate(rows, PLACE, pl.col(column).sum().alias("ns"))


def _called_by(gaps: pl.DataFrame, kernels: pl.DataFrame) -> pl.Series:
    """Whether what ended each gap was called for when one of these kernels of its rank was."""
    found = gaps.select(pl.col("called_ns").is_not_null()).to_series().to_numpy(writable=True)
    for rank in gaps.select(pl.col("rank").unique()).to_series():
        own, wanted = (rows.select(is_own=_is_of(rank)).to_series() for rows in (kernels, gaps))
        times = kernels.select("called_ns").to_series().filter(own).to_numpy()
        times = times if (times[1:] >= times[:-1]).all() else np.sort(times)
        asked = gaps.select("called_ns").to_series().filter(wanted).fill_null(0).to_numpy()
        found[wanted.to_numpy()] &= is_among(asked, times)
    return pl.Series(found)


def _is_of(rank: int | None) -> pl.Expr:
    return pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int64))
