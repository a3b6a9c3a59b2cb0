"""Projects named ranges onto the device: which launches each name queued, and what they took there.

Inclusive numbers take a launch for every name around its call, once each, however often the name is nested in itself.
Own numbers take it for the innermost range only, so that over all names, and the launches in none, they add up.
Projected time is, as Nsight Systems has it, from the first start to the last end of what one instance queued, summed
over instances.

Costs O(n log n), and for busy time as many steps as there are pairs of a name and a launch in it.
"""

from collections.abc import Iterator
from typing import Self

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.nesting import Numbers, extremes_within, find_enclosed, find_innermost

NOWHERE = -1
QUEUED = ("launches", "summed_ns", "busy_ns", "projected_ns", "own_launches", "own_summed_ns")
_CHUNK = 1 << 22  # pairs of a name and a launch held at once


class _Work(msgspec.Struct, frozen=True):
    """Launches in the order of their lanes and calls: number of the device, start and end. Shape (m,) each."""

    place: Numbers
    start_ns: Numbers
    end_ns: Numbers

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Self:
        place, start, dur = (frame[name].to_numpy() for name in ("place", "start_ns", "dur_ns"))
        return cls(place, start, start + dur)


def project(ranges: pl.DataFrame, launches: pl.DataFrame) -> tuple[Numbers, pl.DataFrame]:
    """What each name queued.

    Args:
        ranges: `name` (a number), `lane`, `start_ns`, `dur_ns`; any order.
        launches: `lane`, `called_ns`, `place`, `start_ns`, `dur_ns`; sorted by lane and time of the call.

    Returns:
        The name that owns each launch, -1 where it is in no range, shape (m,). And a row for each name that queued
        anything: `name` and the columns `QUEUED`; `busy_ns` is a union on each device, summed over devices.
    """
    name, lane, start, dur = (ranges[column].to_numpy() for column in ("name", "lane", "start_ns", "dur_ns"))
    where = (lane, start, start + dur, launches["lane"].to_numpy(), launches["called_ns"].to_numpy())
    owner = np.concatenate((name, [NOWHERE]))[find_innermost(*where)]
    own = (
        launches.select(pl.Series("name", owner, dtype=pl.Int64), pl.col("dur_ns").alias("own_summed_ns"))
        .group_by("name")
        .agg(pl.len().cast(pl.Int64).alias("own_launches"), pl.col("own_summed_ns").sum())
    )
    first, last = find_enclosed(*where)
    some = last > first
    inclusive = _inclusive(name[some], first[some], last[some], _Work.of(launches))
    queued = inclusive.join(own, on="name", how="left").select("name", *QUEUED)
    return owner, queued.with_columns(pl.col("own_launches", "own_summed_ns").fill_null(0))


def _inclusive(name: Numbers, first: Numbers, last: Numbers, work: _Work) -> pl.DataFrame:
    """Numbers of each name; `first` to `last` are the launches of each of its ranges. None of these is empty."""
    begin = extremes_within(work.start_ns, first, last, largest=False)
    end = extremes_within(work.end_ns, first, last, largest=True)
    projected = pl.DataFrame({"name": name, "projected_ns": end - begin}).group_by("name").agg(pl.all().sum())
    # Ranges of one name may share launches. Names stand one after the other on one axis, so that one union joins them.
    axis = len(work.place) + 1
    joined = Cover.of(name * axis + first, name * axis + last)
    name, first, last = joined.start_ns // axis, joined.start_ns % axis, joined.end_ns % axis
    summed = np.concatenate(([0], np.cumsum(work.end_ns - work.start_ns)))
    totals = (
        pl.DataFrame({"name": name, "launches": last - first, "summed_ns": summed[last] - summed[first]})
        .group_by("name")
        .agg(pl.all().sum())
    )
    busy = pl.concat([pl.DataFrame(schema={"name": pl.Int64, "busy_ns": pl.Int64}), *_busy(name, first, last, work)])
    # Launches that take no time have no busy time.
    return (
        totals.join(projected, on="name").join(busy, on="name", how="left").with_columns(pl.col("busy_ns").fill_null(0))
    )


def _busy(name: Numbers, first: Numbers, last: Numbers, work: _Work) -> Iterator[pl.DataFrame]:
    """Busy time by name, which is sorted; so many names at a time that their launches fit."""
    times, at = np.unique(np.concatenate((work.start_ns, work.end_ns)), return_inverse=True)
    start, end = at[: len(work.place)], at[len(work.place) :]
    places, axis = int(work.place.max(initial=0)) + 1, len(times)
    pairs = np.concatenate(([0], np.cumsum(last - first)))
    begin = 0
    while begin < len(name):
        full = int(np.searchsorted(pairs, pairs[begin] + _CHUNK, side="right")) - 1
        stop = int(np.searchsorted(name, name[max(full, begin + 1) - 1], side="right"))  # a name isn't cut
        some, begin = slice(begin, stop), stop
        count = last[some] - first[some]
        launch = np.arange(int(count.sum())) + np.repeat(first[some] - pairs[some] + pairs[some.start], count)
        group = (np.repeat(name[some], count) * places + work.place[launch]) * axis
        union = Cover.of(group + start[launch], group + end[launch])
        busy_ns = times[union.end_ns % axis] - times[union.start_ns % axis]
        found = pl.DataFrame({"name": union.start_ns // axis // places, "busy_ns": busy_ns})
        yield found.group_by("name").agg(pl.col("busy_ns").sum())
