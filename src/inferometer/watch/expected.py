"""What a step should take for its work: monotone in tokens, requests and context, learned from steps like it.

The time of a step is a sum of parts, each a coefficient of at least 0 times a function of the work that only rises: the
work itself, what of it lies above a knot, and whether it lies above a knot. So more work is never expected to take
less, and times may rise in steps, as those of padded batches do. The coefficients are found by non-negative least
squares (`nonnegative.py`) of relative errors, three times, with less weight on steps that lay
far off the last time (Huber's weights), and scaled so that half of the steps took longer than expected.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inferometer.watch.nonnegative import nonnegative_least_squares

Floats = NDArray[np.float64]

BEYOND = 1.25
"""More work than this times the most that was learned from can't be judged: there the sum is only a guess.

Of a kind that comes in few sizes, such as a batch, nothing above the most can: the next larger one may be padded to
another size, and take a jump longer.
"""

_FEW_SIZES = 0.5  # different amounts, as a part of steps
_KNOTS = 8
_ROUNDS = 3
_HUBER = 1.345  # standard deviations at which a step's weight begins to fall: 95 % efficient if errors are normal
_TO_DEVIATION = 1.4826  # the median absolute deviation times this estimates the standard deviation
_LEAST_SPREAD = 1e-4


class Segments(NamedTuple):
    """What one kind of work adds to a step: `offset_ns + slope_ns * work`, of the last segment that begins below.

    `most`: more than this can't be judged.
    """

    begins: list[float]
    offset_ns: list[float]
    slope_ns: list[float]
    most: float


@dataclass(frozen=True)
class Expected:
    """What `learn_expected` found: a time for every step, and what each kind of work adds."""

    every_ns: float
    kinds: tuple[Segments, ...]

    def time_ns(self, work: Sequence[float]) -> float | None:
        """The expected time, ns, at least 1; None of more work than can be judged.

        `work`: of each kind, at least 0.
        """
        expected = self.every_ns
        for amount, kind in zip(work, self.kinds, strict=True):
            if amount > kind.most:
                return None
            at = bisect_left(kind.begins, amount) - 1
            if at >= 0:
                expected += kind.offset_ns[at] + kind.slope_ns[at] * amount
        return max(expected, 1.0)


def learn_expected(time_ns: Floats, work: Floats) -> Expected:
    """Learn from steps.

    Args:
        time_ns: How long each took, above 0. Shape (steps,).
        work: How much of each kind of work it did, at least 0. Shape (steps, kinds); there may be no kinds: then every
            step is expected to take the same.
    """
    knots = tuple(_knots_of(kind) for kind in work.T)
    parts = _parts(work, knots) / time_ns[:, None]
    size = np.maximum(parts.max(axis=0), np.finfo(float).tiny)  # so that all coefficients are of one order
    weight = np.ones(len(time_ns))
    coefficients = np.zeros(parts.shape[1])
    for _ in range(_ROUNDS):
        coefficients = nonnegative_least_squares(parts / size * weight[:, None], weight) / size
        off = parts @ coefficients - 1
        spread = max(_TO_DEVIATION * float(np.median(np.abs(off - np.median(off)))), _LEAST_SPREAD)
        weight = np.sqrt(np.minimum(1, _HUBER * spread / np.maximum(np.abs(off), _LEAST_SPREAD)))
    middle = float(np.median(1 / np.maximum(parts @ coefficients, _LEAST_SPREAD)))
    return _expected(coefficients * middle, knots, work)


def _expected(coefficients: Floats, knots: Sequence[Floats], work: Floats) -> Expected:
    kinds, at = [], 1
    for begins, amounts in zip(knots, work.T, strict=True):
        slopes, steps = (coefficients[at + i * len(begins) : at + (i + 1) * len(begins)] for i in (0, 1))
        at += 2 * len(begins)
        offsets = np.cumsum(steps - slopes * begins)
        few_sizes = len(np.unique(amounts)) <= _FEW_SIZES * len(amounts)
        most = float(amounts.max()) * (1 if few_sizes else BEYOND)
        kinds.append(Segments(begins.tolist(), offsets.tolist(), np.cumsum(slopes).tolist(), most))
    return Expected(float(coefficients[0]), tuple(kinds))


def _knots_of(kind: Floats) -> Floats:
    """Where its parts begin: among different values the quantiles; none where it is always the same."""
    values = np.unique(kind)
    return values[:-1] if len(values) <= _KNOTS else np.quantile(values, np.arange(_KNOTS) / _KNOTS)


def _parts(work: Floats, knots: Sequence[Floats]) -> Floats:
    columns = [np.ones((len(work), 1))]
    for kind, begins in zip(work.T, knots, strict=True):
        above = kind[:, None] - begins[None, :]
        columns += [np.maximum(above, 0), (above > 0).astype(float)] if len(begins) else []
    return np.hstack(columns)
