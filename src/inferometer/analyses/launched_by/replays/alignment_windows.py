"""Which part of a long reference a sequence of kernels lies in, and the table of scores by which sequences are aligned.

A score is what pairs are worth, less what kernels without a partner cost, linear in their number; the reference's ends
are free. Written as weights over leaving both kernels alone, every step but a pair is worth nothing (`sweep`), so that
a row of the table takes three passes over the reference. A reference of more cells than `CELLS` is first narrowed to
the regions with the most kernels in a surrounding that the replay has, too: the only step that may miss the best.

Layers repeat, so what is rare decides where a replay lies: kernels that it has once or twice are worth more, and rows
of the reference like any of its kernels cost more than others when they are left out.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Cells = NDArray[np.signedinteger]

REPLAY_GAP = 2  # cost of a replayed kernel without a partner
OWN_GAP = 4  # cost of a row inside the part without a partner, like some kernel of the replay: it leaves out a layer
FOREIGN_GAP = 1  # cost of one like none: an eager run has copies that a graph has not
EXACT, SAME_KERNEL, SAME_SHORT = 12, 9, 6  # worth of a pair over two gaps: two of the last don't outweigh an exact one
LANDMARK = 20  # more for a kernel by its name that is rare in the replay: some of them outweigh a few edits in a layer
BEST = EXACT - REPLAY_GAP - OWN_GAP  # score of a replayed kernel in a perfect alignment, but for landmarks
CELLS = 100_000_000  # replay times reference that are scored, about half a second; longer references are narrowed
_RARE = 2  # times that the replay has a landmark at most
_TABLE_BYTES = 80_000_000  # of weights that are kept; further ones are made again when they are needed
_SURROUNDING = 3  # kernels in a row whose short names must be in the replay, too
_WINDOWS = 40  # windows that are looked at when not all are
_WIDEST, _WIDER = 4, 64  # rows a part may have: so many for a replayed kernel, and some


class Coded(msgspec.Struct, frozen=True):
    """A sequence of kernels as numbers: equal ones mean the same name and shape, the same name, the same short name.

    `exact` is negative where the shape is unknown: it may be any, so the same name is enough.
    """

    exact: Numbers
    kernel: Numbers
    short: Numbers

    def __len__(self) -> int:
        return len(self.exact)

    def __getitem__(self, rows: slice | Numbers) -> "Coded":
        return Coded(self.exact[rows], self.kernel[rows], self.short[rows])

    def or_none(self, rows: Numbers) -> "Coded":
        """These rows, where -1 stands for a kernel that is like no other."""
        return Coded(*(np.append(codes, -1)[rows] for codes in (self.exact, self.kernel, self.short)))


class ReferenceWindow(msgspec.Struct, frozen=True):
    """The reference's rows `begin` to `end`, exclusive, which begin and end with a pair, and the score they allow."""

    begin: int
    end: int
    score: int


class Weights:
    """Worth of each kernel of the replay matched with each of the reference's, and more for `landmarks`."""

    def __init__(self, replay: Coded, reference: Coded, *, landmarks: bool = True) -> None:
        self.replay = replay
        self._kept: dict[int, NDArray[np.int32]] = {}
        names, count = np.unique(replay.kernel, return_counts=True)
        self._landmark = np.isin(replay.kernel, names[count <= _RARE]) & landmarks
        _, first, self._kind = np.unique(reference.exact, return_index=True, return_inverse=True)
        self._kinds = reference[first]
        self._room = _TABLE_BYTES // (4 * max(len(reference), 1))

    def rows(self) -> Iterator[NDArray[np.int32]]:
        """Weights of each kernel of the replay, in order."""
        return (self.row(i) for i in range(len(self.replay)))

    def row(self, i: int) -> NDArray[np.int32]:
        """Weights of the replay's kernel `i`. Shape (m,), 0 where the two must not be paired."""
        code = int(self.replay.exact[i])
        if code in self._kept:
            return self._kept[code]
        worth = pair_worth(self.replay[i : i + 1], self._kinds)
        worth[worth >= SAME_KERNEL] += LANDMARK * int(self._landmark[i])
        found = worth.astype(np.int32)[self._kind]
        if len(self._kept) < self._room:
            self._kept[code] = found
        return found


def pair_worth(replay: Coded, reference: Coded) -> Numbers:
    """What it is worth to pair each kernel with the other sequence's at the same index; 0 where it must not be."""
    same_shape = (replay.exact == reference.exact) | (replay.exact < 0) | (reference.exact < 0)
    worth = np.where(replay.kernel == reference.kernel, np.where(same_shape, EXACT, SAME_KERNEL), SAME_SHORT)
    return np.where(replay.short == reference.short, worth, 0)


def gap_costs(replay: Coded, reference: Coded) -> Numbers:
    """What it costs to leave out each of the reference's kernels inside a part."""
    return np.where(np.isin(reference.short, replay.short), OWN_GAP, FOREIGN_GAP)


def find_part(replay: Coded, reference: Coded, segment: Numbers) -> ReferenceWindow | None:
    """Where the best alignment lies, the first of equally good ones; None where no score is above 0.

    Args:
        replay: Shape (n,).
        reference: Shape (m,).
        segment: Number of each reference row's segment, never falling; the part lies within one. Shape (m,).
    """
    if not len(replay) or not len(reference):
        return None
    rows = _likely_rows(replay, reference)
    score, last = _best_end(replay, reference, rows, segment[rows])
    if score <= 0:
        return None
    first = max(last + 1 - _WIDEST * len(replay) - _WIDER, int(np.searchsorted(segment, segment[last])))
    scored = rows[(first <= rows) & (rows <= last)]
    backwards = scored[scored - last == np.arange(1 - len(scored), 1)][::-1]  # those without a break up to the last
    _, begin = _best_end(replay[::-1], reference, backwards, np.zeros(len(backwards), dtype=np.int64))
    return ReferenceWindow(begin, last + 1, score)


def sweep(gains: Iterable[NDArray[np.int32]], ramp: Cells) -> Iterator[Cells]:
    """The table's rows, one for each replayed kernel; each is the same array again, changed.

    A cell is the best score of the replay up to here that ends at this column or before it, plus the costs of all
    kernels up to here on both sides: leaving out a kernel of either side then changes nothing, and a pair adds its
    weight.

    Args:
        gains: Weights of all columns for each replayed kernel; the first column of a segment has none.
        ramp: Costs of the reference's kernels up to each column: the row before the first.
    """
    row = ramp.copy()
    paired = np.empty(len(row) - 1, dtype=row.dtype)
    for gain in gains:
        np.add(row[:-1], gain[1:], out=paired)
        np.maximum(row[1:], paired, out=row[1:])
        np.maximum.accumulate(row, out=row)
        yield row


def _best_end(replay: Coded, reference: Coded, rows: Numbers, segment: Numbers) -> tuple[int, int]:
    """The best score of the replay in these rows of the reference, and the row of its last pair."""
    adjoining = (np.diff(segment) == 0) & (np.abs(np.diff(rows)) == 1)
    begins = np.append(0, np.flatnonzero(~adjoining) + 1)
    columns = np.insert(rows, begins, -1)
    scored = reference.or_none(columns)
    jump = len(replay) * (EXACT + LANDMARK) + 1  # so much better starts a segment: what came before can't win
    costs: Cells = np.cumsum(np.where(columns < 0, jump, gap_costs(replay, scored)))
    ramp = costs.astype(np.int32) if costs[-1] + jump < np.iinfo(np.int32).max else costs
    (row,) = deque(sweep(Weights(replay, scored).rows(), ramp), maxlen=1)
    scores = row - ramp
    best = int(np.argmax(scores))
    return int(scores[best]) - REPLAY_GAP * len(replay), int(columns[best])


def _likely_rows(replay: Coded, reference: Coded) -> Numbers:
    """The reference's rows to be scored: all, or as many as `CELLS` allows around the windows with the most votes."""
    n, m = len(replay), len(reference)
    room = max(CELLS // n, 3 * n)
    if m <= room:
        return np.arange(m)
    votes = np.append(0, np.cumsum(_votes(replay, reference)))
    windows = votes[n:] - votes[:-n]
    likely = np.zeros(m, dtype=np.bool_)
    for _ in range(_WINDOWS):
        best = int(np.argmax(windows))
        if np.count_nonzero(likely) > room - 3 * n or not windows[best]:
            break
        likely[max(best - n, 0) : best + 2 * n] = True  # a step of n kernels is whole in it, wherever it begins
        windows[max(best - n, 0) : best + n] = 0
    return np.flatnonzero(likely)


def _votes(replay: Coded, reference: Coded) -> Numbers:
    """The most that a row can be worth when matched with a kernel of the replay, 0 in other surroundings."""
    any_shape = np.isin(reference.kernel, replay.kernel[replay.exact < 0]) | (reference.exact < 0)
    worth = np.where(np.isin(reference.exact, replay.exact) | any_shape, EXACT, SAME_KERNEL)
    worth = np.where(np.isin(reference.kernel, replay.kernel), worth, SAME_SHORT)
    return np.where(np.isin(_surroundings(reference.short), _surroundings(replay.short)), worth, 0)


def _surroundings(short: Numbers) -> Numbers:
    """A number for each kernel and the next ones; beyond the end stands a kernel like no other."""
    padded = np.append(short, np.full(_SURROUNDING, -1))
    number = np.zeros(len(short), dtype=np.int64)
    for k in range(_SURROUNDING):
        number = number * 1_000_003 + padded[k : len(short) + k]
    return number
