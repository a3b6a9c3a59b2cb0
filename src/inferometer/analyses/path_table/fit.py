"""How well times fit the paths that they stand at: what can't be, and how far runs are apart.

A *contradiction* is what no two runs of one program give: a path without a time above one that has a time (it was
called, so its caller was), or a call that takes longer than its caller in one run and not in another. Where all runs
show the latter it may be so: a mean is over all calls, and a callee that isn't called each time may be dearer than
its caller. The *misfit* is the sum over cells of how far its logarithm is from the others of its row, less what the
run differs by in all rows; one cell counts at most `MOST`, so that one odd path doesn't outweigh all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.path_table.rows import PathRows, Times, logarithms

MOST = float(np.log(30))
DEARER = 1.02  # times its caller's: what is nearer may be rounding
_WORTH = 1.0  # of a contradiction: as much as one cell that is off by a factor of e

Kind = Literal["blank_caller", "dearer_than_caller"]


@dataclass(frozen=True)
class Contradiction:
    """`row` is the path without a time, or the one that takes longer than its caller."""

    kind: Kind
    arm: int
    row: int


@dataclass(frozen=True)
class Fit:
    """How well one placing of the times fits. `spread` is the median distance of a row's runs, in logarithms."""

    contradictions: Sequence[Contradiction]
    misfit: float
    spread: float

    @property
    def total(self) -> float:
        """The less, the better."""
        return self.misfit + _WORTH * len(self.contradictions)


def judge(rows: PathRows, times: Times, lost: tuple[int, int] | None = None) -> Fit:
    """How `times` fit. `lost` is a cell (arm, row) whose time isn't in the table: that it is blank proves nothing."""
    apart = distances(times)
    known = apart[~np.isnan(apart)]
    misfit = float(np.minimum(known, MOST).sum())
    spread = float(np.median(known)) if known.size else 0.0
    return Fit([*_blank_callers(rows, times, lost), *_dearer(rows, times)], misfit, spread)


def distances(times: Times) -> NDArray[np.float64]:
    """By row, how far its runs are apart in all, less what they differ by in most rows; NaN where one has a time."""
    aligned = align(times)
    with np.errstate(invalid="ignore"):
        sums: NDArray[np.float64] = np.nansum(np.abs(aligned - _median(aligned, axis=0)), axis=0)
    return np.where((~np.isnan(aligned)).sum(axis=0) > 1, sums, np.nan)


def align(times: Times, offsets: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Logarithms of the times less each run's offset, its own unless `offsets` says another. Shape (arms, rows)."""
    own = find_offsets(times) if offsets is None else offsets
    aligned: NDArray[np.float64] = logarithms(times) - own[:, None]
    return aligned


def find_offsets(times: Times) -> NDArray[np.float64]:
    """What each run differs by from the others in most rows, in logarithms. Shape (arms,)."""
    logs = logarithms(times)
    return np.nan_to_num(_median(logs - _median(logs, axis=0)[None, :], axis=1))


def _median(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Without NaN; NaN where there is nothing else."""
    ranked = np.sort(values, axis=axis)  # NaN comes last
    count = (~np.isnan(values)).sum(axis=axis)
    low, high = np.maximum(count - 1, 0) // 2, np.maximum(count // 2, 0)
    if not values.size:
        return np.full(count.shape, np.nan)
    high = np.minimum(high, values.shape[axis] - 1)
    pick = [np.take_along_axis(ranked, np.expand_dims(at, axis), axis=axis).squeeze(axis) for at in (low, high)]
    return np.where(count > 0, (pick[0] + pick[1]) / 2, np.nan)


def _blank_callers(rows: PathRows, times: Times, lost: tuple[int, int] | None) -> list[Contradiction]:
    callees = np.flatnonzero(rows.parent_rows >= 0)
    callers = rows.parent_rows[callees]
    found = []
    for arm, column in enumerate(_numbers(times)):
        blank = np.unique(callers[np.isnan(column[callers]) & ~np.isnan(column[callees])]).tolist()
        excused = {lost, *rows.unreadable}
        found += [Contradiction("blank_caller", arm, row) for row in blank if (arm, row) not in excused]
    return found


def _dearer(rows: PathRows, times: Times) -> list[Contradiction]:
    callees = np.flatnonzero(rows.parent_rows >= 0)
    values = _numbers(times)
    own, above = values[:, callees], values[:, rows.parent_rows[callees]]
    dearer = own > DEARER * above  # False where either is NaN
    reported = dearer & (dearer.sum(axis=0) < (~np.isnan(own + above)).sum(axis=0))
    where = np.argwhere(reported.T).tolist()
    return [Contradiction("dearer_than_caller", arm, int(callees[at])) for at, arm in where]


def _numbers(times: Times) -> NDArray[np.float64]:
    """NaN where there is none. Shape (arms, rows)."""
    return np.array([list(column) for column in times], dtype=np.float64)
