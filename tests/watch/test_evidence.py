"""Evidence: its mean is 1 while nothing has changed, and it says since when something has."""

import math

import numpy as np
import pytest

from inferometer.watch.evidence import Evidence, Recovery
from inferometer.watch.expected import Floats
from inferometer.watch.surprise import SIZES, Surprise, evidence_of


def test_the_mean_of_evidence_is_one_where_nothing_has_changed() -> None:
    edges = np.concatenate([np.logspace(-12, -3, 2000), np.linspace(1e-3, 1, 20_001)[1:]])
    middles = (edges[1:] + edges[:-1]) / 2
    mean = sum(evidence_of(float(part)) * width for part, width in zip(middles, np.diff(edges), strict=True))
    assert mean == pytest.approx(1 - 1 / -math.log(1e-12), abs=0.02)  # what lies below 1e-12 has that much


def test_parts_of_new_normal_steps_are_no_smaller_than_they_should_be() -> None:
    random = np.random.default_rng(3)
    surprise = Surprise(random.standard_t(3, 2000) * 0.02)
    parts = [surprise.part(each) for each in random.standard_t(3, 20_000) * 0.02]
    for share in (0.5, 0.1, 0.01, 0.001):
        assert np.mean(np.array(parts) <= share) < 1.5 * share
    assert min(parts) > 0


def test_of_each_size_the_mean_of_evidence_is_at_most_one_where_nothing_has_changed() -> None:
    random = np.random.default_rng(3)
    surprise = Surprise(random.normal(0, 0.02, 2000))
    assert min(surprise.weights) > 0.9
    factors = [surprise.log_evidence(one) for one in random.normal(0, 0.02, 40_000).tolist()]
    assert np.all(np.exp(factors).mean(axis=0) <= 1.02)
    assert np.all(np.exp(factors).mean(axis=0) > 0.7)


@pytest.mark.parametrize("alike", [0.3, 0.6, 0.8])
def test_neighbours_that_resemble_each_other_count_less(alike: float) -> None:
    noise = _alike(np.random.default_rng(1).normal(0, 1, 4000), alike)
    surprise = Surprise(noise)
    assert max(surprise.weights) < 1
    factors = np.array([surprise.log_evidence(one) for one in noise.tolist()])
    for length in (4, 16, 64):
        blocks = factors[: len(factors) // length * length].reshape(-1, length, len(SIZES)).sum(axis=1)
        assert np.all(np.exp(blocks).mean(axis=0) <= 1)


def test_neighbours_that_resemble_each_other_below_what_counts_do_not_matter() -> None:
    calm = np.where(np.arange(2000) // 50 % 2, 0.01, -0.01)
    assert Surprise(calm, math.log(1.05)).weights == (1.0,) * len(SIZES)
    assert max(Surprise(calm).weights) < 0.2


def test_a_shift_within_the_spread_tells_more_by_sizes_apart_than_mixed_in_each_step() -> None:
    random = np.random.default_rng(2)
    surprise = Surprise(random.normal(0, 0.1, 4000))
    shifted = random.normal(0.08, 0.1, 8000).tolist()
    apart = np.mean([surprise.log_evidence(one) for one in shifted], axis=0).max()
    assert apart > 1.6 * np.mean([math.log(evidence_of(surprise.part(one))) for one in shifted])


@pytest.mark.parametrize(("number", "part"), [(0, 0.13), (1, 0.22)])
def test_a_step_counts_for_a_slowdown_where_few_normal_steps_are_as_long(number: int, part: float) -> None:
    normal = np.random.default_rng(2).permutation(np.linspace(-0.1, 0.1, 2001))
    surprise = Surprise(normal)
    rarer, commoner = (float(np.quantile(normal, 1 - part + off)) for off in (0.01, -0.01))
    assert surprise.log_evidence(rarer)[number] > 0 > surprise.log_evidence(commoner)[number]


@pytest.mark.parametrize("known", [30, 200])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_slower_steps_are_no_more_often_seen_by_chance_than_was_accepted(alike: float, known: int) -> None:
    random, alarms, steps = np.random.default_rng(11), 0, 0
    for _ in range(20):
        noise = _alike(random.standard_t(4, 1000) * 0.05, alike)
        noise -= np.median(noise[:known])
        surprise, evidence = Surprise(noise[:known], math.log(1.05)), Evidence(len(SIZES))
        for one in noise[known:].tolist():
            evidence.add(*surprise.log_evidence(one))
            steps += 1
            if evidence.log_sum > math.log(2000):
                alarms += 1
                break
    assert alarms <= steps / 2000


def _alike(noise: Floats, alike: float) -> Floats:
    noise = noise.copy()
    for at in range(1, len(noise)):
        noise[at] += alike * noise[at - 1]
    return noise


def test_false_alarms_are_no_more_frequent_than_was_accepted() -> None:
    random, allowed, runs = np.random.default_rng(5), 500, 60
    lengths = []
    for _ in range(runs):
        evidence = Evidence()
        while evidence.log_sum < math.log(allowed):
            evidence.add(math.log(evidence_of(float(random.uniform()) or 1.0)))
        lengths.append(evidence.steps)
    assert np.mean(lengths) > allowed


def test_the_onset_is_where_evidence_turns() -> None:
    evidence = Evidence()
    for factor in [-0.4] * 100 + [0.9] * 12:
        evidence.add(factor)
    onset = evidence.onset()
    assert onset.step == 100
    assert onset.first <= 100 <= onset.last
    assert onset.last - onset.first <= 12


def test_of_two_kinds_the_mean_of_sums_is_held_against_what_is_needed() -> None:
    evidence, first, second = Evidence(2), Evidence(), Evidence()
    for factors in ((0.3, -0.1), (-0.2, 0.4), (1.5, -0.7)):
        evidence.add(*factors)
        first.add(factors[0])
        second.add(factors[1])
    assert math.exp(evidence.log_sum) == pytest.approx((math.exp(first.log_sum) + math.exp(second.log_sum)) / 2)


def test_the_onset_is_that_of_the_kind_that_found_it() -> None:
    evidence = Evidence(2)
    for factors in [(-0.4, -0.1)] * 100 + [(-0.5, 0.9)] * 20:
        evidence.add(*factors)
    assert evidence.onset().step == 100


def test_recovery_is_dated_to_the_last_slow_step() -> None:
    recovery, over = Recovery(math.log(1000)), []
    for step, factor in enumerate([0.9] * 20 + [-0.4] * 30, 1):
        if recovery.add(factor, step):
            over.append((step, recovery.height_at))
    assert over[0] == (38, 20)


def test_outliers_in_clusters_count_less_than_outliers_alone() -> None:
    random = np.random.default_rng(5)
    calm = random.normal(0, 0.02, 2048)
    alone, together = calm.copy(), calm.copy()
    alone[::64] += 1.0
    together[np.concatenate([np.arange(at, at + 8) for at in range(0, 2048, 512)])] += 1.0
    assert Surprise(alone).strong_weight == 1.0
    clusters = Surprise(together)
    assert clusters.strong_weight < 0.5
    products = [
        np.exp(sum(clusters.log_strong_evidence(float(one)) for one in together[at : at + 16]))
        for at in range(0, 2048, 16)
    ]
    assert np.mean(products) <= 1


@pytest.mark.parametrize("known", [30, 200])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_much_slower_steps_are_no_more_often_seen_by_chance_than_was_accepted(alike: float, known: int) -> None:
    random, alarms, steps = np.random.default_rng(11), 0, 0
    for _ in range(20):
        noise = _alike(random.standard_t(4, 1000) * 0.08, alike)
        surprise, evidence = Surprise(noise[:known]), Evidence()
        for one in noise[known:].tolist():
            evidence.add(surprise.log_strong_evidence(one))
            steps += 1
            if evidence.log_sum > math.log(2000):
                alarms += 1
                break
    assert alarms <= steps / 2000
