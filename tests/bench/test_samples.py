"""What timed calls say: intervals that hold what they should, verdicts that are sure, or unclear."""

import numpy as np
import pytest

from inferometer.bench.samples import LEAST, NOTICEABLE, compare_times, is_steady, judge, summarize_times


def draw(median: float, spread: float, n: int, seed: int) -> list[float]:
    return (median * np.random.default_rng(seed).lognormal(0, spread, n)).tolist()


def test_a_timing_tells_median_percentiles_and_interval() -> None:
    found = summarize_times(list(map(float, range(1, 102))), mode="cold", timer="host", checked=3, dropped=2)
    assert (found.median_ns, found.p10_ns, found.p90_ns) == (51.0, 11.0, 91.0)
    assert found.low_ns < 51 < found.high_ns
    assert (found.samples, found.checked, found.dropped, found.steady) == (101, 3, 2, False)


def test_few_samples_are_never_steady() -> None:
    assert not is_steady([5.0] * (LEAST - 1))
    assert is_steady([5.0] * LEAST)


def test_the_interval_of_the_median_holds_the_true_one_nineteen_times_of_twenty() -> None:
    held = 0
    for seed in range(300):
        found = summarize_times(draw(1000.0, 0.1, 60, seed), mode="cold", timer="host", checked=0)
        held += found.low_ns <= 1000.0 <= found.high_ns
    assert held >= 0.92 * 300


def test_the_interval_of_a_ratio_holds_the_true_one_and_noise_that_both_felt_is_none() -> None:
    held, widths = 0, []
    for seed in range(200):
        felt = np.random.default_rng(seed).lognormal(0, 0.3, 80)
        base, own = (
            felt * np.asarray(draw(median, 0.02, 80, seed + at)) for median, at in ((120.0, 1000), (100.0, 2000))
        )
        found = compare_times("torch", base.tolist(), own.tolist(), "cold")
        held += found.low <= 1.2 <= found.high
        widths.append(found.high - found.low)
    assert held >= 0.9 * 200
    assert np.median(widths) < 0.3  # two unpaired intervals of such samples are as wide as that each


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.05, 1.2, "faster"),
        (0.8, 0.9, "slower"),
        (0.99, 1.01, "same"),
        (0.95, 1.1, "unclear"),
        (1.01, 1.05, "unclear"),
        (1 + NOTICEABLE + 1e-9, 9.0, "faster"),
    ],
)
def test_a_verdict_is_of_the_whole_interval(low: float, high: float, verdict: str) -> None:
    assert judge(low, high) == verdict


def test_two_of_the_same_are_never_called_faster_or_slower() -> None:
    wrong = 0
    for seed in range(200):
        base, own = draw(100.0, 0.05, 100, seed), draw(100.0, 0.05, 100, seed + 5000)
        wrong += compare_times("torch", base, own, "warm").verdict in ("faster", "slower")
    assert wrong <= 2


def test_too_few_pairs_are_unclear() -> None:
    found = compare_times("torch", [4.0, 6.0], [1.0, 2.0], "cold")
    assert (found.verdict, found.speedup, found.low, found.high) == ("unclear", 5.0 / 1.5, 3.0, 4.0)
