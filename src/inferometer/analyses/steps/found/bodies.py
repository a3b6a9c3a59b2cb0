"""The work that repeats inside a step, which counts how long a step is: in layers, not in kernels.

A model's layers each attend once, whether they prefill or decode and whatever the batch, so a step has a fixed number
of attentions. Where no attention is known, its matrix products count, else every launch. Where whole graphs were
recorded as one launch each, their layers aren't recorded: the work between two choices of tokens is then one body.
"""

from typing import Literal

import msgspec
import numpy as np

from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.roles import Flags

Unit = Literal["attention", "gemm", "graph", "launch"]
_FEWEST = 2  # of one kind that could repeat at all


class Bodies(msgspec.Struct, frozen=True):
    """`places`: the launches that count, in order. `before`: how many of them come before each launch. Shape (n,).

    A *slot* is where launches have the same number of bodies before them: slot s lies after the s-th.
    """

    unit: Unit
    places: Numbers
    before: Numbers

    @property
    def total(self) -> int:
        """All bodies."""
        return len(self.places)


def find_bodies(lane: DeviceLaunches) -> Bodies:
    """The best unit that the lane has.

    Several attention kernels without a matrix product between them are one attention: that of a mixed step runs
    one kernel for its prompts and another for its decoding sequences.
    """
    roles = lane.roles
    attention, gemm, graph = roles.attention[lane.role], roles.gemm[lane.role], roles.graph[lane.role]
    if np.count_nonzero(graph) >= _FEWEST:
        ends = roles.sampling[lane.role]
        ends = ends if ends.any() else roles.to_host[lane.role]
        return _bodies("graph", _first_behind(ends, attention | gemm | graph), len(lane.role))
    heavy = np.flatnonzero(attention | gemm)
    attends = attention[heavy]
    begins = attends & ~np.concatenate(([False], attends[:-1])) if gemm.any() else attends
    if np.count_nonzero(begins) >= _FEWEST:
        return _bodies("attention", heavy[begins], len(lane.role))
    if np.count_nonzero(gemm) >= _FEWEST:
        return _bodies("gemm", np.flatnonzero(gemm), len(lane.role))
    return _bodies("launch", np.arange(len(lane.role)), len(lane.role))


def _first_behind(ends: Flags, work: Flags) -> Numbers:
    """The first launch of the work after each end, and that of the work before all."""
    places = np.flatnonzero(ends | work)
    is_work = work[places]
    return np.asarray(places[is_work & ~np.concatenate(([False], is_work[:-1]))])


def _bodies(unit: Unit, places: Numbers, launches: int) -> Bodies:
    marks = np.zeros(launches + 1, dtype=np.int64)
    marks[places + 1] = 1
    return Bodies(unit, places, np.cumsum(marks)[:-1])
