"""Which samples of a counter were taken together."""

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.compare.causes.resampling import Values
from inferometer.analyses.comparison_limits import BURST

Times = NDArray[np.int64]


def tick_starts(times: NDArray[np.int64] | Values) -> Times:
    """Where each tick's samples begin: those of cores, or of devices that a source pools, follow each other closely.

    Args:
        times: Of samples in order, in any unit. Shape (n,).

    Returns:
        Positions in order; all of them where samples come at regular times.
    """
    if len(times) < 2:
        return np.arange(len(times))
    gaps = np.diff(times)
    return np.concatenate(([0], np.flatnonzero(gaps > BURST * np.quantile(gaps, 0.95)) + 1))
