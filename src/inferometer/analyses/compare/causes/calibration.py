"""How high causes score where nothing is wrong: halves of the normal run against each other, and further normal runs.

A cause is claimed only above the highest of these. Halves in time hold the run's own drift; every second tick against
the rest holds none. Both ways round, since a cause has a direction.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.counters import Entity

Rank = Callable[[Sequence[Entity], Sequence[Entity]], list[Cause]]


class Calibration(msgspec.Struct, frozen=True):
    """`halves`: the best score of each comparison in which nothing is wrong; `rate`: how many reach the claimed one."""

    halves: tuple[float, ...]
    rate: float | None

    @property
    def level(self) -> float:
        """The highest score that arose without a fault; 0 where there was nothing to compare."""
        return max(self.halves, default=0.0)


def calibrate(
    base: Sequence[Entity], more: Sequence[Sequence[Entity]], rank: Rank, claimed: float | None
) -> Calibration:
    """Scores of null comparisons.

    Args:
        base: Series of the normal run.
        more: Those of further normal runs.
        rank: Ranks causes of two lists of series.
        claimed: The score whose rate of false alarms is wanted.
    """
    halves = tuple(max((cause.score for cause in rank(*pair)), default=0.0) for pair in _nulls(base, more))
    rate = sum(score >= claimed for score in halves) / len(halves) if claimed is not None and halves else None
    return Calibration(halves, rate)


def _nulls(
    base: Sequence[Entity], more: Sequence[Sequence[Entity]]
) -> Iterator[tuple[Sequence[Entity], Sequence[Entity]]]:
    parted = [entity for entity in base if len(entity.values) > 1]
    if parted:
        early = [replace(entity, values=entity.values[: len(entity.values) // 2]) for entity in parted]
        late = [replace(entity, values=entity.values[len(entity.values) // 2 :]) for entity in parted]
        even, odd = ([replace(entity, values=entity.values[at::2]) for entity in parted] for at in (0, 1))
        yield from ((early, late), (late, early), (even, odd), (odd, even))
    for other in more:
        yield base, other
        yield other, base
