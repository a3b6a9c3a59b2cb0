"""How sure an A/B is, by simulation: false differences between equal arms, intervals that hold, differences found."""

import numpy as np
import pytest

from inferometer.analyses.ab.statistics import Floats, discoveries, judge, log_ratios, t_interval, t_test

PATHS, LEAVES = 40, 26


def nested_logs(
    draw: np.random.Generator, runs: int, n: int, *, scatter: float = 0.1, rare: float = 0.0, ratio: float = 1.0
) -> Floats:
    """Log ratios of 40 paths of two equal arms, shape (runs, 40, n): leaves, then callers, which are sums of them.

    Each scatters by `scatter`; one in `1 / rare` takes up to thousands of times as long; both arms' level wanders over
    the repetitions, the arms taking turns. The candidate's leaf 3 takes `ratio` times as long.
    """
    leaves = draw.lognormal(0, 1, (1, 1, LEAVES, 1)) * draw.lognormal(0, scatter, (runs, 2, LEAVES, n))
    leaves += (draw.random(leaves.shape) < rare) * draw.pareto(1.0, leaves.shape) * 10
    leaves[:, 1, 3] *= ratio
    walk = np.exp(np.cumsum(draw.normal(0, 0.03, (runs, 2 * n)), axis=1)).reshape(runs, n, 2)
    walk[:, 1::2] = walk[:, 1::2, ::-1]  # A B, B A
    leaves *= walk.transpose(0, 2, 1)[:, :, None, :]
    callers = [leaves[:, :, i : i + 2 + i % 5].sum(axis=2) for i in range(PATHS - LEAVES - 1)]
    times = np.concatenate([leaves, np.stack([*callers, leaves.sum(axis=2)], axis=2)], axis=2)
    logs: Floats = np.log(times[:, 1] / times[:, 0])
    return logs


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("rare", [0.0, 0.05])
def test_equal_arms_differ_in_at_most_one_comparison_of_twenty(n: int, rare: float) -> None:
    runs = 1500
    logs = nested_logs(np.random.default_rng(n), runs, n, rare=rare)
    p = t_test(logs.reshape(-1, n)).reshape(runs, PATHS)
    false = np.mean([discoveries(each).any() for each in p])
    assert false < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / runs)  # of the simulation itself
    if rare:
        assert false < 0.05  # long calls make it careful, not bold


@pytest.mark.parametrize(("n", "least"), [(5, 0.5), (10, 0.99)])
def test_a_fifth_more_in_one_leaf_is_found_and_the_interval_holds_it(n: int, least: float) -> None:
    runs = 1500
    logs = nested_logs(np.random.default_rng(50 + n), runs, n, scatter=0.03, ratio=1.2)
    p = t_test(logs.reshape(-1, n)).reshape(runs, PATHS)
    assert np.mean([discoveries(each)[3] for each in p]) > least
    _, low, high = t_interval(logs[:, 3])
    assert np.mean((low <= np.log(1.2)) & (np.log(1.2) <= high)) >= 0.93


@pytest.mark.parametrize(("n", "holds"), [(5, 0.84), (10, 0.90)])
def test_a_percentile_bootstrap_of_so_few_holds_less_than_it_claims_and_the_t_interval_all(
    n: int, holds: float
) -> None:
    draw = np.random.default_rng(0)
    samples = draw.normal(0, 1, (1000, n))
    means = samples[:, draw.integers(0, n, (400, n))].mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=1)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(holds, abs=0.03)
    _, low, high = t_interval(samples)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=0.02)


def test_the_numbers_are_those_of_scipy_and_gaps_are_left_out() -> None:
    from scipy import stats

    draw = np.random.default_rng(1)
    values = draw.normal(0.3, 1, (4, 7))
    values[1, [0, 6]] = np.nan
    values[2, 1:] = np.nan
    values[3] = np.nan
    for row in (0, 1):
        known = values[row][~np.isnan(values[row])]
        wanted = stats.ttest_1samp(known, 0)
        assert t_test(values)[row] == pytest.approx(wanted.pvalue)
        assert (t_interval(values)[1][row], t_interval(values)[2][row]) == pytest.approx(
            tuple(wanted.confidence_interval())
        )
    assert np.isnan(t_test(values)[2:]).all()
    assert np.isnan(t_interval(values)[1][2:]).all()
    p = draw.uniform(0, 0.2, 30)
    adjusted = stats.false_discovery_control(p)
    assert (discoveries(p) == (adjusted <= 0.05)).all()
    assert (discoveries(np.append(p, np.nan)) == np.append(adjusted <= 0.05, False)).all()


def test_values_without_any_scatter_are_equal_or_differ() -> None:
    assert t_test(np.array([[0.0] * 4, [0.5] * 4])).tolist() == [1.0, 0.0]
    same = log_ratios(np.array([[70, 7, 3]]), np.array([[70, 7, 3]]))
    assert t_test(same).tolist() == [1.0]
    assert not discoveries(t_test(same)).any()
    assert not discoveries(np.array([np.nan, np.nan])).any()


def test_a_pair_without_time_on_a_side_is_none() -> None:
    logs = log_ratios(np.array([[10, 0, 10]]), np.array([[20, 20, 0]]))
    assert logs[0, 0] == pytest.approx(np.log(2))
    assert np.isnan(logs[0, 1:]).all()


@pytest.mark.parametrize(
    ("ratio", "interval", "pairs", "is_discovery", "verdict"),
    [
        (1.2, (1.1, 1.3), 10, True, "slower"),
        (0.8, (0.7, 0.9), 10, True, "faster"),
        (1.2, (1.1, 1.3), 10, False, "unclear"),
        (1.001, (0.981, 1.019), 10, False, "same"),
        (1.001, (0.979, 1.019), 10, False, "unclear"),
        (1.2, (1.1, 1.3), 2, True, "too few"),
        (1.2, None, 1, False, "too few"),
    ],
)
def test_what_a_ratio_comes_to(
    ratio: float, interval: tuple[float, float] | None, pairs: int, is_discovery: bool, verdict: str
) -> None:
    assert judge(ratio, interval, pairs=pairs, is_discovery=is_discovery) == verdict


@pytest.mark.parametrize(
    ("is_possible", "is_discovery", "verdict"),
    [(False, True, "carried over"), (True, True, "unclear"), (False, False, "unclear"), (True, False, "unclear")],
)
def test_a_difference_that_is_not_the_kernels_is_carried_over_or_unclear(
    is_possible: bool, is_discovery: bool, verdict: str
) -> None:
    found = judge(1.2, (1.1, 1.3), pairs=10, is_discovery=is_discovery, is_refuted=True, is_possible=is_possible)
    assert found == verdict
