"""Steps as a source gives them to a watcher: one at a time, in order of their start."""

from typing import NamedTuple

import numpy as np

from inferometer.watch.expected import Floats


class WatchedStep(NamedTuple):
    """One step, or one interval of metrics: the time that is judged, and the work that it was for.

    `work` has the kinds that the source names, in its order; what isn't known of a step is 0. `phase` and `owner`,
    whose step it is ("rank 3", "process 4711"), are None where the source doesn't know them.
    """

    start_ns: int
    dur_ns: int
    phase: str | None = None
    owner: str | None = None
    work: tuple[float, ...] = ()

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.start_ns + self.dur_ns


def work_of(steps: list[WatchedStep]) -> Floats:
    """Shape (steps, kinds)."""
    return np.array([step.work for step in steps], dtype=np.float64).reshape(len(steps), -1)


def times_of(steps: list[WatchedStep]) -> Floats:
    """Ns. Shape (steps,)."""
    return np.array([step.dur_ns for step in steps], dtype=np.float64)
