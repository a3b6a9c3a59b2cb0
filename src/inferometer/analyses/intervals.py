"""Unions of intervals: busy time counts what is open at least once, so it never exceeds the wall time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches, first_rows, whole_groups
from inferometer.analyses.numbering import number_groups, order_in_time

Times = NDArray[np.int64]
_LARGEST = 2**62
_MANY = 1_000  # intervals of a group, from which on a pass over its own costs next to nothing


def busy_by(launches: pl.DataFrame, by: Sequence[str], *, name: str = "busy_ns") -> pl.DataFrame:
    """Busy time of each group: the union of its intervals, ns, not their sum.

    Args:
        launches: Has the columns `by`, `start_ns` and `dur_ns`; any order, overlaps allowed.
        by: Columns that make a group; nulls are a group of their own.
        name: Name of the resulting column.

    Returns:
        One row per group, in order: `by` and `name`.
    """
    group, groups = number_groups(launches.select(by))
    start_ns = launches["start_ns"].to_numpy()
    busy = busy_sums(group, start_ns, start_ns + launches["dur_ns"].to_numpy(), groups.height)
    return groups.with_columns(pl.Series(name, busy))


def merge(start_ns: Times, end_ns: Times) -> tuple[Times, Times]:
    """The union as intervals that neither overlap nor touch, in order.

    Args:
        start_ns: Starts in order of time. Shape (n,).
        end_ns: Ends, exclusive. Shape (n,).
    """
    if not len(start_ns):
        return start_ns, end_ns
    begins, ends, latest = [start_ns[:1]], [], int(end_ns[0])
    for part in batches(len(start_ns)):
        starts = start_ns[part]
        open_until = np.maximum(np.maximum.accumulate(end_ns[part]), latest)
        before = np.concatenate(([latest], open_until[:-1]))
        apart = starts > before
        begins.append(starts[apart])
        ends.append(before[apart])
        latest = int(open_until[-1])
    return np.concatenate(begins), np.concatenate([*ends, [latest]])


def busy_sums(group: Times, start_ns: Times, end_ns: Times, groups: int) -> Times:
    """Busy time of each group, as `busy_by`, of arrays: quick where they are in order of group and start already.

    Args:
        group: Numbers from 0. Shape (n,), any order, as the next two.
        start_ns: Starts.
        end_ns: Ends, exclusive.
        groups: How many there are.
    """
    total = np.zeros(groups, dtype=np.int64)
    if not len(group):
        return total
    group, start_ns, end_ns = _in_order(group, start_ns, end_ns)
    first = first_rows(group)
    if len(first) * _MANY <= len(group):
        for begin, end in _stretches(first, len(group)):
            total[group[begin]] = covered_ns(start_ns[begin:end], end_ns[begin:end])
        return total
    for rows in whole_groups(group):
        own, starts, ends = group[rows], start_ns[rows], end_ns[rows]
        begins, open_until = latest_ends(own, ends)
        alone = ends - np.maximum(starts, open_until)
        alone[begins] = (ends - starts)[begins]
        total[own[begins]] = np.add.reduceat(np.maximum(alone, 0), begins)
    return total


def covered_ns(start_ns: Times, end_ns: Times) -> int:
    """How long at least one of these intervals is open; starts in order, ends exclusive. Shape (n,) each."""
    covered, latest = 0, int(start_ns[0]) if len(start_ns) else 0
    for part in batches(len(start_ns)):
        starts, ends = start_ns[part], end_ns[part]
        open_until = np.maximum(np.maximum.accumulate(ends), latest)
        before = np.concatenate(([latest], open_until[:-1]))
        covered += int(np.maximum(ends - np.maximum(starts, before), 0).sum())
        latest = int(open_until[-1])
    return covered


def concurrent_sums(group: Times, start_ns: Times, end_ns: Times, groups: int) -> Times:
    """Time of each group during which at least two of its intervals are open, ns. Arguments as of `busy_sums`.

    An interval meets an earlier one from its own start until the latest end so far: the union of these meetings.
    """
    if not len(group):
        return np.zeros(groups, dtype=np.int64)
    group, start_ns, end_ns = _in_order(group, start_ns, end_ns)
    first, open_until = latest_ends(group, end_ns)
    meets = open_until > start_ns
    meets[first] = False
    met = np.flatnonzero(meets)
    return busy_sums(group[met], start_ns[met], np.minimum(end_ns[met], open_until[met]), groups)


def longest_pauses(group: Times, start_ns: Times, end_ns: Times, groups: int) -> Times:
    """The longest time between two intervals of each group in which none is open, ns. Arguments as of `busy_sums`."""
    longest = np.zeros(groups, dtype=np.int64)
    if len(group):
        group, start_ns, end_ns = _in_order(group, start_ns, end_ns)
        first, open_until = latest_ends(group, end_ns)
        pause = np.maximum(start_ns - open_until, 0)
        pause[first] = 0
        longest[group[first]] = np.maximum.reduceat(pause, first)
    return longest


def _in_order(group: Times, start_ns: Times, end_ns: Times) -> tuple[Times, Times, Times]:
    """The same by group and start; as given where they are so."""
    order = order_in_time(group, start_ns)
    if order is None:
        return group, start_ns, end_ns
    return group if (group == group[0]).all() else group[order], start_ns[order], end_ns[order]


def latest_ends(group: NDArray[np.integer[Any]], end_ns: Times) -> tuple[Times, Times]:
    """Where each group begins, and the latest end before each interval in its group; the first has its own.

    Many groups are moved past all ends of the one before, so that one running maximum serves all; where they are few
    or the numbers would grow too large, groups are taken one by one.

    Args:
        group: Shape (n,), equal ones together.
        end_ns: Shape (n,), in order of start within a group.
    """
    latest = np.empty_like(end_ns)
    if not len(group):
        return np.empty(0, dtype=np.int64), latest
    first = first_rows(group)
    least, most = int(end_ns.min()), int(end_ns.max())
    if len(first) * _MANY > len(group) and (most - least + 1) * len(first) < _LARGEST:
        moved = np.repeat(np.arange(len(first)) * (most - least + 1) - least, np.diff(np.append(first, len(group))))
        latest[1:] = (np.maximum.accumulate(end_ns + moved) - moved)[:-1]
    else:
        for begin, end in _stretches(first, len(group)):
            np.maximum.accumulate(end_ns[begin : end - 1], out=latest[begin + 1 : end])
    latest[first] = end_ns[first]
    return first, latest


def _stretches(first: Times, rows: int) -> list[tuple[int, int]]:
    """Where each group begins and ends."""
    return list(pairwise([*first.tolist(), rows]))
