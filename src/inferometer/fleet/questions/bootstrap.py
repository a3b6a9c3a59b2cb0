"""Intervals of shares by resampling clusters of traces: traces of one deployment say less than as many of several.

A draw takes as many clusters as there are, with replacement, and each share anew: of sums over these clusters. The
interval is that of the 2.5 % and 97.5 % quantiles. The same fleet has the same draws.

From 10,000 clusters on, draws would take minutes and gigabytes. There the interval is what that of the draws comes to
with many clusters: 1.96 standard errors of a ratio of sums to either side (the infinitesimal jackknife), no further
than from the least to the largest share that a cluster has, which no draw goes beyond.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.comparison_limits import ALPHA, SEED
from inferometer.fleet.opening import Fleet
from inferometer.fleet.tables import TRACE

Values = NDArray[np.float64]
DRAWS: Final = 2_000
_AT_ONCE: Final = 500  # things, which takes 8 MB
_MOST_DRAWN: Final = 10_000  # clusters, whose draws take 160 MB
_ERRORS: Final = 1.959964  # standard errors: the 97.5 % quantile of a normal distribution
LEAST: Final = 2
"""Clusters: of one alone nothing is known of others."""


@dataclass(frozen=True)
class Clusters:
    """`of` has a row for each trace: `trace` and `cluster`, from 0; `count` are there."""

    of: pl.DataFrame
    count: int


def clusters_of(fleet: Fleet, column: str | None) -> Clusters:
    """Traces with one value of a column of `opening.GROUPS` are a cluster, those without it, too; None: each is one."""
    name = TRACE if column is None else column
    numbers = fleet.traces.select(TRACE, pl.col(name).rank("dense").fill_null(0).cast(pl.Int64).alias("cluster"))
    dense = numbers.with_columns((pl.col("cluster").rank("dense") - 1).cast(pl.Int64).alias("cluster"))
    return Clusters(dense, dense["cluster"].n_unique())


def share_intervals(parts: Values, wholes: Values) -> tuple[Values, Values]:
    """The ends of the intervals of each part's share.

    Args:
        parts: What each cluster has of each thing. Shape (clusters, things).
        wholes: What each cluster has in all. Shape (clusters,).

    Returns:
        Two of shape (things,); NaN with fewer than two clusters, or where a draw has nothing at all.
    """
    clusters, things = parts.shape
    if clusters < LEAST or not things:
        return np.full(things, np.nan), np.full(things, np.nan)
    if clusters >= _MOST_DRAWN:
        return _share_errors(parts, wholes)
    counts = np.random.default_rng(SEED).multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS)
    whole = counts @ wholes
    if not whole.all():
        return np.full(things, np.nan), np.full(things, np.nan)
    ends = [ALPHA / 2, 1 - ALPHA / 2]
    some = [slice(start, start + _AT_ONCE) for start in range(0, things, _AT_ONCE)]
    low, high = np.hstack([np.quantile(counts @ parts[:, each] / whole[:, None], ends, axis=0) for each in some])
    return low, high


def _share_errors(parts: Values, wholes: Values) -> tuple[Values, Values]:
    """The same of many clusters, without draws."""
    whole = wholes.sum()
    if not whole:
        return np.full(parts.shape[1], np.nan), np.full(parts.shape[1], np.nan)
    share = parts.sum(axis=0) / whole
    squares = np.einsum("ct,ct->t", parts, parts) - 2 * share * (wholes @ parts) + share**2 * (wholes @ wholes)
    far = _ERRORS * np.sqrt(np.maximum(squares, 0.0)) / whole
    some = wholes > 0
    own = parts[some] / wholes[some, None]
    return np.maximum(share - far, own.min(axis=0)), np.minimum(share + far, own.max(axis=0))


def cluster_sums(rows: pl.DataFrame, column: str, clusters: int) -> Values:
    """Sums of a column by the numbers `cluster`. Shape (clusters,)."""
    sums = np.bincount(rows["cluster"].to_numpy(), weights=rows[column].to_numpy(), minlength=clusters)
    return sums.astype(np.float64)


def pivot(rows: pl.DataFrame, clusters: int, things: int) -> Values:
    """Sums of `value` by the numbers `cluster` and `thing`. Shape (clusters, things)."""
    found = np.zeros((clusters, things))
    np.add.at(found, (rows["cluster"].to_numpy(), rows["thing"].to_numpy()), rows["value"].to_numpy())
    return found
