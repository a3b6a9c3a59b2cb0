"""How a rate is measured: batches of calls until warm, then samples until their median stands still.

A sample is a batch of calls, long enough that the clock's resolution and the host's gaps don't count, over its number
of calls. Warm is when two medians in a row agree within 1 %. Sampling ends when the 95 % interval of the median, from
order statistics, is within 1 % of it either way, or when its time is over: then `steady` is False, and the spread says
how far off it may be.

No device is known here: a `Job` runs its own calls and says how long they took.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import median, quantiles

STEADY = 0.01
_MOST_CALLS = 10**7
_LEAST_LATE = 3  # samples, where a single one takes longer than there is time


@dataclass(frozen=True)
class Job:
    """Work that can be repeated.

    Attributes:
        how: What is done, in words for the source of the value.
        amount: Bytes, operations or launches of one call.
        run: Does n calls back to back, waits for them, and returns the ns that they took.
    """

    how: str
    amount: float
    run: Callable[[int], float]


@dataclass(frozen=True)
class Effort:
    """How long a measurement may take; times in ns.

    Attributes:
        batch_ns: Length of a sample.
        product_ns: Length of one matrix product: larger ones come nearer to the peak.
        settle_ns: At most this for the warm-up of one job.
        sample_ns: At most this for the samples of one job.
        least: Samples, at least.
    """

    batch_ns: int
    product_ns: int
    settle_ns: int
    sample_ns: int
    least: int


FULL = Effort(25_000_000, 50_000_000, 600_000_000, 1_000_000_000, 10)
QUICK = Effort(3_000_000, 6_000_000, 30_000_000, 100_000_000, 5)


@dataclass(frozen=True)
class Samples:
    """The ns of one call, a sample each, and how many calls a sample was of; at least two samples."""

    times_ns: tuple[float, ...]
    calls: int

    @property
    def median_ns(self) -> float:
        """What is reported."""
        return median(self.times_ns)

    @property
    def spread(self) -> float:
        """How far off the median may be, as a share of it."""
        return spread_of(self.times_ns)

    @property
    def steady(self) -> bool:
        """Whether that is little."""
        return self.spread < STEADY

    @property
    def p10_ns(self) -> float:
        """Tenth percentile."""
        return quantiles(self.times_ns, n=10, method="inclusive")[0]

    @property
    def p90_ns(self) -> float:
        """Ninetieth percentile."""
        return quantiles(self.times_ns, n=10, method="inclusive")[-1]


def take_samples(job: Job, effort: Effort, clock: Callable[[], int] = time.perf_counter_ns) -> Samples:
    """Warm up, then sample; `clock` only says when the time for it is over."""
    job.run(1)  # what a library does once: handles, tuning, pages
    calls = _batch(job, effort.batch_ns)
    _settle(job, calls, effort, clock)
    times: list[float] = []
    begun = clock()
    while True:
        times.append(job.run(calls) / calls)
        if len(times) >= effort.least and spread_of(times) < STEADY:
            break
        if len(times) >= _LEAST_LATE and clock() - begun >= effort.sample_ns:
            break
    return Samples(tuple(times), calls)


def on_host_clock(op: Callable[[], object]) -> Callable[[int], float]:
    """The `run` of a job whose op has ended when it returns."""

    def run(calls: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(calls):
            op()
        return float(time.perf_counter_ns() - begun)

    return run


def _batch(job: Job, wanted_ns: int) -> int:
    """How many calls last as long as a sample should; of two tries the shorter, as other work may have come between."""
    calls = 1
    while (took := min(job.run(calls), job.run(calls))) < wanted_ns and calls < _MOST_CALLS:
        calls = min(_MOST_CALLS, max(calls + 1, min(10 * calls, ceil(1.05 * calls * wanted_ns / max(took, 1.0)))))
    return calls


def _settle(job: Job, calls: int, effort: Effort, clock: Callable[[], int]) -> None:
    """Run until two medians of a few samples agree, or the time for that is over."""
    begun, before = clock(), 0.0
    while clock() - begun < effort.settle_ns:
        now = median(job.run(calls) for _ in range(3))
        if abs(now - before) <= STEADY * now:
            return
        before = now


def median_interval(times: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, from order statistics: it ends at two of the samples, whatever their shape."""
    ordered, n = sorted(times), len(times)
    lowest = max(0, int((n - 1.96 * sqrt(n)) / 2))
    return ordered[lowest], ordered[n - 1 - lowest]


def spread_of(times: Sequence[float]) -> float:
    """How far off the median may be either way, as a share of it: half of its interval."""
    low, high = median_interval(times)
    return (high - low) / 2 / median(times)
