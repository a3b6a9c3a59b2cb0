"""What warps waited for, and how busy pipes were: shares by reason and by pipe, from metrics of Nsight Compute.

Sources: the Kernel Profiling Guide of Nsight Compute, and the raw page of a run on an H200. A reason's share is its
part of the cycles that all reasons make together, the issuing of instructions (`selected`) among them; where only
samples were taken, its part of the samples. A pipe's share is its busy cycles, else the instructions that it issued,
over the most that it could while the multiprocessors were active.
"""

from typing import Final

import polars as pl

_SOURCES: Final = (
    r"^smsp__average_warps_issue_stalled_([a-z0-9_]+)_per_issue_active\.ratio$",
    r"^smsp__average_warp_latency_issue_stalled_([a-z0-9_]+)\.ratio$",
    r"^smsp__pcsamp_warps_issue_stalled_([a-z0-9_]+)$",
)
"""Cycles, cycles, samples: the first that a launch has."""
_NOT_ISSUED: Final = "_not_issued"  # the same samples once more, where nothing else was issued either
_PIPES: Final = (
    r"^sm__pipe_([a-z0-9_]+)_cycles_active\.avg\.pct_of_peak_sustained_active$",
    r"^sm__inst_executed_pipe_([a-z0-9_]+)\.avg\.pct_of_peak_sustained_active$",
)
_OF_OTHERS: Final = "shared"  # the pipe behind those of matrices and of FP64: its time is theirs
_KEY: Final = ("rank", "launch")


def stall_shares(counters: pl.DataFrame) -> pl.DataFrame:
    """Rows `rank`, `launch`, `reason`, `share`, the largest first in each launch; reasons of no time have none.

    Args:
        counters: The table `kernel_counters`.
    """
    found = _named(counters, _SOURCES, "reason").filter(~pl.col("reason").str.ends_with(_NOT_ISSUED))
    first = found.filter(pl.col("source") == pl.col("source").min().over(_KEY))
    total = pl.col("value").sum().over(_KEY)
    return _largest_first(first.filter(total > 0).with_columns((pl.col("value") / total).alias("share")), "reason")


def pipe_shares(counters: pl.DataFrame) -> pl.DataFrame:
    """Rows `rank`, `launch`, `pipe`, `share`, the largest first in each launch; idle pipes have none."""
    found = _named(counters, _PIPES, "pipe").filter(pl.col("pipe") != _OF_OTHERS)
    first = found.filter(pl.col("source") == pl.col("source").min().over(*_KEY, "pipe"))
    return _largest_first(first.with_columns((pl.col("value") / 100).alias("share")), "pipe")


def as_lists(shares: pl.DataFrame, name: str) -> pl.DataFrame:
    """A row per launch: `NAMEs`, its rows as a list of `NAME` and `share`."""
    return shares.group_by(_KEY, maintain_order=True).agg(pl.struct(name, "share").alias(f"{name}s"))


def _named(counters: pl.DataFrame, sources: tuple[str, ...], name: str) -> pl.DataFrame:
    """Metrics of the sources, with what each is of and the place of its source."""
    parts = [
        counters.lazy()
        .select(*_KEY, "value", pl.col("metric").str.extract(source).alias(name), pl.lit(at).alias("source"))
        .filter(pl.col(name).is_not_null(), pl.col("value") >= 0)
        for at, source in enumerate(sources)
    ]
    return pl.concat(parts).unique([*_KEY, name, "source"], keep="first", maintain_order=True).collect()


def _largest_first(shares: pl.DataFrame, name: str) -> pl.DataFrame:
    return (
        shares.filter(pl.col("share") > 0)
        .sort(*_KEY, "share", name, descending=[False, False, True, False])
        .select(*_KEY, name, "share")
    )
