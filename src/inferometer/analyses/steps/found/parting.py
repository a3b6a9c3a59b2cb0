"""One device's launches parted into steps, and how far the result is to be trusted."""

from functools import cached_property

import msgspec
import numpy as np

from inferometer.analyses.steps.found.anchors import Level, find_level
from inferometer.analyses.steps.found.bodies import Bodies, find_bodies
from inferometer.analyses.steps.found.boundaries import Cuts, find_cuts
from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.phases import find_phases
from inferometer.analyses.steps.found.segments import Segments, Shares, find_likeness, find_segments

_LEAST_CONFIDENCE = 0.6  # of a device's whole steps on average: below, every other launch would be in the wrong place
_RIVALS = 0.1  # of the confidence is lost where every boundary had a rival
_FEW = 0.25  # steps' worth of doubt: two steps are trusted 0.89 as much as many


class Parting(msgspec.Struct, frozen=True, dict=True):
    """Steps, by what they were found, and the phase of each (a number of `phases.PHASES`)."""

    bodies: Bodies
    level: Level
    cuts: Cuts
    segments: Segments
    kinds: Numbers
    phases: Numbers

    @cached_property
    def confidence(self) -> Shares:
        """Of each step: the anchor's, less for rivals of its boundaries and for few steps, times how alike it is."""
        whole = int(np.count_nonzero(~self.segments.is_partial))
        clear = 1 - _RIVALS * (1 - self.cuts.clear)
        common = self.level.strength * min(1.0, self.level.fit) * clear * whole / (whole + _FEW)
        return np.asarray(common * find_likeness(self.segments, self.kinds, self.level))

    @property
    def mean(self) -> float:
        """Confidence in the whole steps."""
        return float(np.mean(self.confidence[~self.segments.is_partial]))

    @property
    def anchor(self) -> str:
        """In words."""
        return self.level.describe(self.bodies)


def is_training(lane: DeviceLaunches) -> bool:
    """Whether weights change: then no step prefills or decodes."""
    return bool(lane.roles.optimizer[lane.role].any())


def find_parting(lane: DeviceLaunches) -> Parting | str:
    """The steps, or why there are none."""
    bodies = find_bodies(lane)
    level = find_level(lane, bodies)
    if isinstance(level, str):
        return level
    cuts = find_cuts(lane, bodies, level)
    segments = None if cuts is None else find_segments(lane, bodies, level, cuts)
    if cuts is None or segments is None:
        return f"{level.describe(bodies)}, delimit fewer than two whole steps"
    phases = find_phases(lane, segments, is_training=is_training(lane))
    parting = Parting(bodies, level, cuts, segments, _kinds(lane, segments, phases), phases)
    if parting.mean < _LEAST_CONFIDENCE:
        return f"what lies between {parting.anchor}, is not alike (confidence {parting.mean:.2f})"
    return parting


def _kinds(lane: DeviceLaunches, segments: Segments, phases: Numbers) -> Numbers:
    """Steps to be compared with each other: of one phase, and with a graph whose kernels aren't recorded or without."""
    has_graph = segments.counts[:, lane.roles.graph[segments.roles]].any(axis=1)
    return np.asarray(2 * phases + has_graph)
