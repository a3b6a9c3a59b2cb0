"""What timed calls say: median with its interval, and the ratio of two candidates that took turns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inferometer.bench.results import Mode, Timer, Timing, Verdict, Versus
from inferometer.hardware.measure.timing import STEADY, median_interval, spread_of

NOTICEABLE = 0.02
"""Two kernels are the same when the interval of their ratio lies within this of 1: clocks of one GPU wander as much."""

LEAST = 5
"""Samples before an interval says anything."""

_RESAMPLES, _SEED, _ALPHA = 2_000, 20_260_101, 0.05
_MOST_RESAMPLED = 1_000_000  # values drawn at once

Values = NDArray[np.float64]


def is_steady(times_ns: Sequence[float]) -> bool:
    """Whether the 95 % interval of the median is within 1 % of it, either way."""
    return len(times_ns) >= LEAST and spread_of(times_ns) < STEADY


def summarize_times(
    times_ns: Sequence[float], *, mode: Mode, timer: Timer, checked: int, dropped: int = 0, inputs: str = "usual"
) -> Timing:
    """At least one time of one call."""
    low, high = median_interval(times_ns)
    p10, median, p90 = np.quantile(np.asarray(times_ns), [0.1, 0.5, 0.9])
    return Timing(
        mode=mode,
        timer=timer,
        median_ns=float(median),
        p10_ns=float(p10),
        p90_ns=float(p90),
        low_ns=low,
        high_ns=high,
        samples=len(times_ns),
        steady=is_steady(times_ns),
        checked=checked,
        dropped=dropped,
        inputs=inputs,
    )


def compare_times(base: str, base_ns: Sequence[float], own_ns: Sequence[float], mode: Mode) -> Versus:
    """Of calls in pairs: the i-th of both had the same inputs and stood side by side.

    The interval is a bootstrap of the pairs, so that what both felt alike isn't noise.
    """
    pairs = np.asarray([base_ns, own_ns], dtype=np.float64)
    speedup = float(np.median(pairs[0]) / np.median(pairs[1]))
    if pairs.shape[1] < LEAST:  # too few for an interval: their range
        ratios = pairs[0] / pairs[1]
        low, high = float(ratios.min()), float(ratios.max())
        return Versus(base=base, mode=mode, speedup=speedup, low=low, high=high, verdict="unclear")
    low, high = _interval(pairs)
    return Versus(base=base, mode=mode, speedup=speedup, low=low, high=high, verdict=judge(low, high))


def judge(low: float, high: float) -> Verdict:
    """The verdict that the interval of a speedup allows."""
    if low > 1 + NOTICEABLE:
        return "faster"
    if high < 1 / (1 + NOTICEABLE):
        return "slower"
    if low >= 1 / (1 + NOTICEABLE) and high <= 1 + NOTICEABLE:
        return "same"
    return "unclear"


def _interval(pairs: Values) -> tuple[float, float]:
    """95 % of the ratios of medians, of resampled pairs."""
    draw, n = np.random.default_rng(_SEED), pairs.shape[1]
    step = max(1, _MOST_RESAMPLED // n)
    ratios = []
    for start in range(0, _RESAMPLES, step):
        rows = draw.integers(0, n, (min(step, _RESAMPLES - start), n))
        base, own = (np.median(values[rows], axis=1) for values in pairs)
        ratios.append(base / own)
    low, high = np.quantile(np.concatenate(ratios), [_ALPHA / 2, 1 - _ALPHA / 2])
    return float(low), float(high)
