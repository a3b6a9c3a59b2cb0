"""Steps at the beginning that are not as the others: slower, or with kernels that never come again."""

import numpy as np

from inferometer.analyses.steps.found.lanes import Numbers
from inferometer.analyses.steps.found.roles import Flags
from inferometer.analyses.steps.found.segments import Segments

_SLOWER = 2.0  # times the median of its phase: first launches load code, allocate memory and try algorithms
_ONLY_THERE = 0.01  # of a step's launches are of roles that no other step has
_FEWEST_ONLY = 2
_FEWEST = 4  # steps of a phase: of fewer, none is known to be usual


def find_warm_up(segments: Segments, phases: Numbers) -> Flags:
    """Marks steps from the first on, up to the first that is as usual; a step cut by the recording is passed over."""
    dur = segments.end - segments.start
    once = segments.counts.sum(axis=0) == segments.counts
    only = np.where(once, segments.counts, 0).sum(axis=1)
    novel = only >= np.maximum(_FEWEST_ONLY, _ONLY_THERE * segments.counts.sum(axis=1))
    slow = np.zeros(len(dur), dtype=np.bool_)
    known = np.zeros(len(dur), dtype=np.bool_)
    for phase in np.unique(phases):
        of_phase = phases == phase
        models = of_phase & ~segments.is_partial
        if np.count_nonzero(models) >= _FEWEST:
            known |= of_phase
            slow |= of_phase & (dur > _SLOWER * np.median(dur[models]))
    unusual = known & (slow | novel) & ~segments.is_partial
    ends = known & ~unusual & ~segments.is_partial
    before = np.logical_or.accumulate(ends)
    return np.asarray(unusual & ~before)
