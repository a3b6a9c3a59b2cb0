"""How launches of one stream overlap that are seen to: with what they overlap, and by how much."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

_NEVER_NS = np.iinfo(np.int64).max
_Ints = NDArray[np.int64]


def keep_crowded(rows: pl.DataFrame, rounding_ns: int) -> pl.DataFrame:
    """Rows that overlap another one of their lane; `rows` by lane and start, as `overlaps` has them."""
    starts, latest, lanes = _times(rows, rounding_ns)
    follows = lanes[1:] == lanes[:-1]
    for part in _parts(lanes):
        latest[part] = np.maximum.accumulate(latest[part])
    joins = np.concatenate([[False], follows & (starts[1:] < latest[:-1])])
    return rows.filter(pl.Series(joins | np.append(joins[1:], False)))


def compare_with_other_calls(crowded: pl.DataFrame, launches: pl.LazyFrame, rounding_ns: int) -> pl.DataFrame:
    """Those that overlap a later one; `overlaps_others`: of another call, `outlasts_two` of these from start to end.

    A launch without a call (0 in some profilers' files) is on its own.
    """
    calls = launches.select(pl.col("process", "correlation_id").gather(crowded["row"])).collect()
    own = pl.when(pl.col("correlation_id") > 0).then(None).otherwise(pl.col("row")).alias("own")
    named = calls.with_columns(crowded["row"], crowded["lane"])
    call = named.select(pl.struct("lane", "process", "correlation_id", own).rle_id()).to_series().to_numpy()
    starts, latest, lanes = _times(crowded, rounding_ns)
    following, after_call = np.arange(len(call)) + 1, np.searchsorted(call, call, side="right")
    return crowded.with_columns(
        overlaps_others=pl.Series(_at(starts, lanes, after_call) < latest),
        outlasts_two=pl.Series(_at(_second_least(latest, lanes), lanes, after_call) < latest - rounding_ns),
    ).filter(pl.Series(_at(starts, lanes, following) < latest))


def _times(rows: pl.DataFrame, rounding_ns: int) -> tuple[_Ints, _Ints, _Ints]:
    """Of each row its start, the end with the rounding taken off, and its lane."""
    starts = rows["start_ns"].to_numpy()
    return starts, starts + rows["dur_ns"].to_numpy() - rounding_ns, rows["lane"].to_numpy()


def _parts(lanes: _Ints) -> Iterator[slice]:
    """The rows of each lane; they stand together."""
    cuts = [0, *(np.flatnonzero(lanes[1:] != lanes[:-1]) + 1).tolist(), len(lanes)]
    return (slice(first, last) for first, last in pairwise(cuts))


def _second_least(times: _Ints, lanes: _Ints) -> _Ints:
    """Of the times from each row to the end of its lane, the second least."""
    second = np.empty_like(times)
    for part in _parts(lanes):
        backward = times[part][::-1]
        least_before = np.append(_NEVER_NS, np.minimum.accumulate(backward)[:-1])
        second[part] = np.minimum.accumulate(np.maximum(backward, least_before))[::-1]
    return second


def _at(values: _Ints, lanes: _Ints, index: _Ints) -> _Ints:
    """The value at each index; never, where that is not in the row's own lane."""
    inside = np.minimum(index, len(values) - 1)
    return np.where((index < len(values)) & (lanes[inside] == lanes), values[inside], _NEVER_NS)
