"""Which kernel of a reference each kernel of a graph's replay is: alignment of two sequences of kernels.

A replay is one call on the host, so nothing tells where its kernels come from. The graph's capture, or an eager run of
the same batch, has the same kernels in nearly the same order: some are missing or added, some were tuned anew (another
tile, the same short name), some ran in another order, and the layers repeat. The best alignment in order
(`alignment_windows.py` has its scores) is found first. Kernels of a stream keep their order, so what other streams ran
is aligned likewise among the kernels that are left, near its place.

Nothing tells equally good places apart: where a replay was cut on both sides within equal layers, whole layers are
missing, or the reference has the step several times, the first is taken. Where a branch of another stream is longer
than what the main one runs between two of them, branches may be paired with the next layer's.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.launched_by.replays.alignment_windows import (
    BEST,
    REPLAY_GAP,
    SAME_KERNEL,
    Coded,
    Numbers,
    Weights,
    find_part,
    gap_costs,
    pair_worth,
    sweep,
)

LONGEST = 6_000  # kernels of a replay that are aligned: the table takes one byte for each pair of rows
MIN_MATCHED = 0.5  # share of the replay's kernels: with fewer, most call sites would be unknown and the rest doubtful
MIN_SCORE = 0.2  # a model's kernels in any other order reach 0.05; whole with other grids and tiles 0.39, by half 0.35
STREAMS = 3  # orders that are looked for: engines run one or two streams besides the main one
NEAR = 8  # rows between a kernel that ran in another order and its place: fewer than a layer has
NEAR_IN_RUN = 64  # the same for several in a row that moved together, or for one that moves alike again and again
_TOGETHER, _OFTEN = 3, 3  # kernels from one to the next in a run; times that a kernel must move alike
_WORTH = 1_000  # of a pair in rows away from its place: a nearer pair never outweighs one more pair
_UP, _LEFT = 1, 2  # a replayed kernel without a partner, one of the reference without


class Symbol(msgspec.Struct, frozen=True):
    """What is compared of a kernel; `short` is a name without tiles and templates. A shape of None is like any."""

    kernel: str
    shape: tuple[int, ...] | None
    short: str


class Alignment(msgspec.Struct, frozen=True):
    """Where a replay lies in a reference, in its rows `begin` to `end`, exclusive.

    `place` has the reference row of each replayed kernel, -1 where it has none; rows rise but for kernels that ran in
    another order. `score` is 1 where all kernels are the same, in name, shape and order, and nothing lies between.
    """

    place: NDArray[np.int64]
    score: float
    matched: int
    begin: int
    end: int


def align(
    replay: Sequence[int], reference: Sequence[int], symbols: Sequence[Symbol], breaks: NDArray[np.int64] | None = None
) -> Alignment | None:
    """The best alignment within one segment, the first of equally good ones; None where none is good enough.

    Kernels of different short names are never paired. The reference's ends are free, the replay's are not: a replay
    that was cut is a part of the graph's sequence.

    Args:
        replay: Numbers into `symbols`, in order of start. Shape (n,).
        reference: The same of the capture or the eager run, in order of calls. Shape (m,).
        symbols: What the numbers stand for; equal ones may have several numbers.
        breaks: Number of each reference row's segment (a capture, a thread), in any order; None for one segment.

    Returns:
        None when the replay has more than `LONGEST` kernels, or fewer than `MIN_MATCHED` of them have partners in
        order, or the score that these reach is below `MIN_SCORE`.

    Raises:
        ValueError: `breaks` has another length than `reference`.
    """
    if breaks is not None and len(breaks) != len(reference):
        raise ValueError(f"{len(breaks)} breaks for {len(reference)} reference rows")
    if len(replay) > LONGEST:
        return None
    coded = _code(symbols)
    left = coded[np.asarray(replay, dtype=np.int64)]
    order, segment = _by_segment(np.zeros(len(reference), dtype=np.int64) if breaks is None else breaks, len(left))
    right = coded[np.asarray(reference, dtype=np.int64)[order]]
    part = find_part(left, right, segment)
    if part is None:
        return None
    first, last = np.searchsorted(segment, segment[part.begin] + np.arange(2)).tolist()
    inside = right[first:last]
    place = _pair_in_order(left, inside, part.begin - first, part.end - first)
    if np.count_nonzero(place >= 0) < MIN_MATCHED * len(left) or _score(place, left, inside) < MIN_SCORE:
        return None
    near = _neighbours(place)
    for _ in range(STREAMS - 1):
        place = _pair_stream(place, near, left, inside)
    paired = place >= 0
    score = _score(place, left, inside)
    place[paired] = order[first + place[paired]]
    begin, end = int(place[paired].min()), int(place.max()) + 1
    return Alignment(place, score, int(np.count_nonzero(paired)), begin, end)


def _code(symbols: Sequence[Symbol]) -> Coded:
    kernel = _number((symbol.short, symbol.kernel) for symbol in symbols)
    shaped = np.array([symbol.shape is not None for symbol in symbols], dtype=np.bool_)
    exact = _number(zip(kernel.tolist(), (symbol.shape for symbol in symbols), strict=True))
    short = _number(symbol.short for symbol in symbols)
    return Coded(np.where(shaped, exact, -2 - kernel), kernel, short)


def _number(keys: Iterable[Hashable]) -> Numbers:
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


def _by_segment(breaks: Numbers, n: int) -> tuple[Numbers, Numbers]:
    """Rows segment by segment in order of their first rows, and the segments' numbers; too short ones are left out."""
    _, first, segment, count = np.unique(breaks, return_index=True, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(first))[segment]
    order = np.argsort(rank, kind="stable")
    order = order[(count[segment] >= MIN_MATCHED * n)[order]]
    return order, rank[order]


def _chain(gains: Iterable[NDArray[np.int32]], ramp: NDArray[np.int32], n: int) -> Numbers:
    """The column of each of `n` kernels in the best alignment, of equally good ones in that with the earliest."""
    steps = np.zeros((n, len(ramp)), dtype=np.uint8)
    above = ramp.copy()
    for step, row in zip(steps, sweep(gains, ramp), strict=True):
        step[:] = row == above
        step[1:] |= (row[1:] == row[:-1]).view(np.uint8) << 1
        above[:] = row
    column = np.full(n, -1, dtype=np.int64)
    i, j = n - 1, len(ramp) - 1
    while i >= 0 and j > 0:
        step = steps[i, j]
        if step & _UP:
            i -= 1
        elif step & _LEFT:
            j -= 1
        else:
            column[i] = j
            i, j = i - 1, j - 1
    return column


def _pair_in_order(replay: Coded, reference: Coded, begin: int, end: int) -> Numbers:
    columns = np.arange(begin - 1, end)
    columns[0] = -1
    scored = reference.or_none(columns)
    ramp = np.append(0, np.cumsum(gap_costs(replay, scored[1:]))).astype(np.int32)
    column = _chain(Weights(replay, scored).rows(), ramp, len(replay))
    return np.where(column < 0, -1, columns[column])


def _pair_stream(place: Numbers, near: tuple[Numbers, Numbers], replay: Coded, reference: Coded) -> Numbers:
    """Also pairs kernels of one more stream with rows without partners, inside the part: the next step begins there."""
    left = np.flatnonzero(place < 0)
    free = np.setdiff1d(np.arange(place[place >= 0].min(), place.max() + 1), place)
    if not len(left) or not len(free):
        return place
    low, high = (rows[left] for rows in near)
    columns = np.append(-1, free)
    weights = Weights(replay[left], reference.or_none(columns), landmarks=False)

    def gains() -> Iterator[NDArray[np.int32]]:
        for k in range(len(left)):
            away = np.maximum(np.maximum(low[k] - columns, columns - high[k]), 0)
            usable = (weights.row(k) >= SAME_KERNEL) & (away <= NEAR_IN_RUN)
            yield np.where(usable, weights.row(k) * _WORTH - away, 0).astype(np.int32)

    column = _chain(gains(), np.zeros(len(columns), dtype=np.int32), len(left))
    found = np.flatnonzero(column >= 0)
    rows = columns[column[found]]
    away = np.where(rows < low[found], rows - low[found], np.maximum(rows - high[found], 0))
    believed = _believe(left[found], rows, away, replay)
    place = place.copy()
    place[left[found[believed]]] = rows[believed]
    return place


def _believe(kernels: Numbers, rows: Numbers, away: Numbers, replay: Coded) -> NDArray[np.bool_]:
    """Which pairs in another order are near, or moved as the pair next to them did, or as their kernel does often."""
    _, kind, count = np.unique(replay.exact[kernels] * 4 * NEAR_IN_RUN + away, return_inverse=True, return_counts=True)
    together = (np.diff(kernels) <= _TOGETHER) & (np.diff(rows - kernels) == 0)
    in_run = (np.append(together, False) | np.append(False, together))[: len(kernels)]
    believed: NDArray[np.bool_] = (np.abs(away) <= NEAR) | in_run | (count[kind] >= _OFTEN)
    return believed


def _neighbours(place: Numbers) -> tuple[Numbers, Numbers]:
    """The rows between which each kernel is expected: the places of the last one before and the next one after it."""
    paired = np.flatnonzero(place >= 0)
    at = np.arange(len(place))
    before = np.maximum(np.searchsorted(paired, at, side="right") - 1, 0)
    after = np.minimum(np.searchsorted(paired, at), len(paired) - 1)
    return place[paired[before]], place[paired[after]]


def _score(place: Numbers, replay: Coded, reference: Coded) -> float:
    """What the pairs are worth, less the gaps on both sides, over the score of a perfect alignment."""
    paired = np.flatnonzero(place >= 0)
    rows = place[paired]
    worth = pair_worth(replay[paired], reference[rows]).sum()
    cost = len(place) * REPLAY_GAP + gap_costs(replay, reference[np.arange(rows.min(), rows.max() + 1)]).sum()
    return float(worth - cost) / (len(place) * BEST)
