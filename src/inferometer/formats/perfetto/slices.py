"""Beginnings and ends of slices, paired: on a track, an end closes the slice that was opened last.

Events are sorted by time, those of one time stay in the file's order: so Perfetto's own importer does it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.perfetto.events import BEGIN, END

Numbers = NDArray[np.int64]


class Ends(NamedTuple):
    """For each event whether it is a beginning that ends, and when; `orphans`: ends that close nothing."""

    has_end: NDArray[np.bool_]
    end_ns: Numbers
    orphans: int


def find_ends(track: Numbers, time_ns: Numbers, kind: Numbers) -> Ends:
    """Pair the beginnings and ends of all tracks, in n log n steps. Shape (n,) each."""
    has_end, end_ns = np.zeros(len(kind), np.bool_), np.zeros(len(kind), np.int64)
    found = np.flatnonzero((kind == BEGIN) | (kind == END))
    order = found[np.lexsort((time_ns[found], track[found]))]
    own, steps = track[order], np.where(kind[order] == BEGIN, 1, -1)
    depth = _by_track(np.cumsum(steps), steps, own)
    low = _lowest_so_far(depth, own)
    before = np.concatenate(([0], low[:-1]))
    before[_firsts(own)] = 0
    is_orphan = low < before
    level = np.where(steps > 0, depth, depth + 1) - low
    kept = np.flatnonzero(~is_orphan)
    kept = kept[np.lexsort((level[kept], own[kept]))]
    pairs = np.flatnonzero(
        (steps[kept[:-1]] > 0)
        & (steps[kept[1:]] < 0)
        & (own[kept[:-1]] == own[kept[1:]])
        & (level[kept[:-1]] == level[kept[1:]])
    )
    begins, ends = order[kept[pairs]], order[kept[pairs + 1]]
    has_end[begins] = True
    end_ns[begins] = time_ns[ends]
    return Ends(has_end, end_ns, int(is_orphan.sum()))


def _firsts(own: Numbers) -> NDArray[np.bool_]:
    """Whether each event is the first of its track."""
    return np.concatenate(([True], own[1:] != own[:-1])) if len(own) else np.zeros(0, np.bool_)


def _by_track(sums: Numbers, steps: Numbers, own: Numbers) -> Numbers:
    """Running sums that begin anew with each track."""
    firsts = _firsts(own)
    return sums - (sums - steps)[firsts][np.cumsum(firsts) - 1] if len(sums) else sums


def _lowest_so_far(depth: Numbers, own: Numbers) -> Numbers:
    """The least depth of a track up to each event, at most 0: each track is moved below the one before it."""
    shift = (np.cumsum(_firsts(own)) - 1) * (2 * len(depth) + 2)
    lowest: Numbers = np.minimum.accumulate(np.minimum(depth, 0) - shift) + shift
    return lowest
