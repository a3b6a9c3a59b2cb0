"""When warm-up ends, how long a sample is, and when there are enough: by a clock that only work moves."""

from itertools import count

import pytest
from tests.hardware.clocks import Clock

from inferometer.errors import Unavailable
from inferometer.hardware.measure.sizes import far_copy_bytes, near_copy_bytes, product_size
from inferometer.hardware.measure.timing import FULL, QUICK, Samples, on_host_clock, take_samples


def test_a_steady_job_needs_the_fewest_samples() -> None:
    clock = Clock()
    samples = take_samples(clock.job(1_000.0), FULL, clock)
    assert samples.times_ns == (1_000.0,) * FULL.least
    assert (samples.median_ns, samples.p10_ns, samples.p90_ns, samples.spread) == (1_000, 1_000, 1_000, 0)
    assert samples.steady


@pytest.mark.parametrize("call_ns", [3.0, 1_000.0, 4e6])
def test_a_sample_is_long_enough_for_its_clock(call_ns: float) -> None:
    clock = Clock()
    samples = take_samples(clock.job(call_ns), FULL, clock)
    assert FULL.batch_ns <= samples.calls * call_ns <= 1.5 * FULL.batch_ns


def test_a_call_longer_than_a_sample_is_one() -> None:
    clock = Clock()
    assert take_samples(clock.job(100e6), FULL, clock).calls == 1


def test_warming_up_is_left_out() -> None:
    """Calls get quicker by 5 % from run to run until the 40th: no sample is of those."""
    clock = Clock()
    samples = take_samples(clock.job(lambda i: 1e6 * max(1.0, 0.95 ** (i - 40))), FULL, clock)
    assert samples.times_ns == (1e6,) * FULL.least


def test_warming_up_ends_when_its_time_is_over() -> None:
    clock = Clock()
    slower = count(1)
    take_samples(clock.job(lambda i: 1e6 * next(slower)), FULL, clock)
    runs_of_samples = FULL.sample_ns / FULL.batch_ns
    assert len(clock.ran) < FULL.settle_ns / FULL.batch_ns + runs_of_samples + 10


def test_a_job_that_never_stands_still_ends_and_says_so() -> None:
    clock = Clock()
    samples = take_samples(clock.job(lambda i: 50e6 if i % 2 else 100e6), FULL, clock)
    assert not samples.steady
    assert samples.spread > 0.2
    assert clock.now_ns < 3 * (FULL.settle_ns + FULL.sample_ns)


def test_a_single_outlier_moves_nothing() -> None:
    clock = Clock()
    samples = take_samples(clock.job(lambda i: 9e6 if i == 12 else 1e6), FULL, clock)
    assert samples.median_ns == 1e6
    assert samples.steady


def test_quick_takes_less() -> None:
    quick, full = Clock(), Clock()
    take_samples(quick.job(lambda i: 1e6 + 1e5 * (i % 3)), QUICK, quick)
    take_samples(full.job(lambda i: 1e6 + 1e5 * (i % 3)), FULL, full)
    assert 5 * quick.now_ns < full.now_ns


def test_percentiles_are_of_the_samples() -> None:
    samples = Samples(tuple(float(ns) for ns in range(1, 102)), 1)
    assert (samples.p10_ns, samples.median_ns, samples.p90_ns) == (11, 51, 91)
    assert samples.spread == pytest.approx(10 / 51)  # ranks 41 and 61 of 101, by the binomial


def test_the_host_s_clock_times_all_calls() -> None:
    done: list[None] = []
    assert on_host_clock(lambda: done.append(None))(7) > 0
    assert len(done) == 7


@pytest.mark.parametrize(("rate", "size"), [(1e9, 512), (1e12, 2816), (1e16, 8192)])
def test_products_are_as_large_as_takes_the_time_wanted(rate: float, size: int) -> None:
    """50 ms at 1 TFLOP/s are 2924 cubed, or the nearest multiple of 256."""
    found = product_size(lambda N: lambda calls: calls * 2e9 * N**3 / rate, FULL.product_ns, (512, 8192))
    assert found == size


def test_copies_are_far_larger_than_the_caches_or_lie_in_them() -> None:
    assert far_copy_bytes(None, None) == 128 << 20
    assert far_copy_bytes(60 << 20, 80 << 30) == 180 << 20
    assert far_copy_bytes(60 << 20, 80 << 30, least=512 << 20) == 512 << 20
    with pytest.raises(Unavailable, match="of free memory"):
        far_copy_bytes(60 << 20, 1 << 30)
    assert near_copy_bytes(60 << 20) == 15 << 20
    with pytest.raises(Unavailable, match="how large the cache is"):
        near_copy_bytes(None)
