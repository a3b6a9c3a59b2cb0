"""Unions of intervals: busy time counts what is open at least once, so it never exceeds the wall time."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.numbering import number_groups, order_in_time

Times = NDArray[np.int64]
_LARGEST = 2**62


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
    open_until = np.maximum.accumulate(end_ns)
    begins = np.flatnonzero(np.concatenate(([True], start_ns[1:] > open_until[:-1])))
    return start_ns[begins], open_until[np.concatenate((begins[1:] - 1, [len(end_ns) - 1]))]


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
    first, open_until = _open_until(group, end_ns)
    alone = end_ns - np.maximum(start_ns, open_until)
    alone[first] = (end_ns - start_ns)[first]
    total[group[first]] = np.add.reduceat(np.maximum(alone, 0), first)
    return total


def concurrent_sums(group: Times, start_ns: Times, end_ns: Times, groups: int) -> Times:
    """Time of each group during which at least two of its intervals are open, ns. Arguments as of `busy_sums`.

    An interval meets an earlier one from its own start until the latest end so far: the union of these meetings.
    """
    if not len(group):
        return np.zeros(groups, dtype=np.int64)
    group, start_ns, end_ns = _in_order(group, start_ns, end_ns)
    first, open_until = _open_until(group, end_ns)
    meets = open_until > start_ns
    meets[first] = False
    met = np.flatnonzero(meets)
    return busy_sums(group[met], start_ns[met], np.minimum(end_ns[met], open_until[met]), groups)


def longest_pauses(group: Times, start_ns: Times, end_ns: Times, groups: int) -> Times:
    """The longest time between two intervals of each group in which none is open, ns. Arguments as of `busy_sums`."""
    longest = np.zeros(groups, dtype=np.int64)
    if len(group):
        group, start_ns, end_ns = _in_order(group, start_ns, end_ns)
        first, open_until = _open_until(group, end_ns)
        pause = np.maximum(start_ns - open_until, 0)
        pause[first] = 0
        longest[group[first]] = np.maximum.reduceat(pause, first)
    return longest


def _in_order(group: Times, start_ns: Times, end_ns: Times) -> tuple[Times, Times, Times]:
    """The same by group and start; as given where they are so."""
    order = order_in_time(group, start_ns)
    return (group, start_ns, end_ns) if order is None else (group[order], start_ns[order], end_ns[order])


def _open_until(group: Times, end_ns: Times) -> tuple[Times, Times]:
    """Where each group begins, and the latest end before each interval in its group; what the first has means nothing.

    Each group is moved past all ends of the one before, so that one running maximum serves all; where the numbers
    would grow too large, groups are taken one by one.
    """
    first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    least, most = int(end_ns.min()), int(end_ns.max())
    latest = np.empty_like(end_ns)
    if (most - least + 1) * len(first) < _LARGEST:
        moved = np.repeat(np.arange(len(first)) * (most - least + 1) - least, np.diff(np.append(first, len(group))))
        latest[1:] = (np.maximum.accumulate(end_ns + moved) - moved)[:-1]
    else:
        for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(group)], strict=True):
            latest[begin + 1 : end] = np.maximum.accumulate(end_ns[begin:end])[:-1]
    latest[first] = end_ns[first]
    return first, latest
