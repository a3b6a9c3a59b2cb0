"""Whether steps in a row took longer than the others of a recording, and not by chance: by shuffling blocks of steps.

It knows nothing of the watcher's model: no distribution, no weights. Steps resemble their neighbours, so blocks of
`BLOCK` steps are shuffled, by their medians. The chance is how often as many blocks in a row, anywhere among the
shuffled ones, are as slow as these are: anywhere, since the watcher chose where to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]

BLOCK: Final = 5
SHUFFLES: Final = 9_999
LEAST: Final = 1.05
"""A slowdown that is looked for."""

CHANCE: Final = 0.001


@dataclass(frozen=True)
class Longer:
    """`steps` in a row took `times` as long as the others, by medians; `chance` that some do by chance."""

    steps: int
    times: float
    chance: float

    @property
    def is_real(self) -> bool:
        """Whether they were slower."""
        return self.times >= LEAST and self.chance <= CHANCE

    @property
    def sentence(self) -> str:
        """What an alarm about them was about."""
        what = "slower without the fault" if self.is_real else "a false alarm"
        return (
            f"one more alarm, {what}: {self.steps:,} steps took {self.times:.2f} times as long as the other "
            f"normal ones (by chance: {self.chance:.4f})"
        )


def find_longer(took: Times, before: Times, after: Times) -> Longer:
    """Of steps in a row, next to the other steps of the recording: those before and those after. Shape (steps,)."""
    others = np.concatenate([before, after])
    if not len(others) or not len(took):
        return Longer(len(took), 1.0, 1.0)
    slow = _medians(took)
    blocks, random = np.concatenate([slow, _medians(before), _medians(after)]), np.random.default_rng(0)
    reached = sum(_highest(random.permutation(blocks), len(slow)) >= slow.mean() - 1e-9 for _ in range(SHUFFLES))
    return Longer(len(took), float(np.median(took) / np.median(others)), (int(reached) + 1) / (SHUFFLES + 1))


def _medians(took: Times) -> Times:
    """Logarithms of the medians of blocks, the last of which may be short."""
    return np.array([np.log(np.median(took[at : at + BLOCK])) for at in range(0, len(took), BLOCK)])


def _highest(blocks: Times, length: int) -> float:
    """The largest mean of so many blocks in a row."""
    sums = np.concatenate([[0.0], np.cumsum(blocks)])
    return float((sums[length:] - sums[:-length]).max() / length)
