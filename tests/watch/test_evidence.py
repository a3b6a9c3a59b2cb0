"""Evidence: its mean is 1 while nothing has changed, and it says since when something has."""

import math

import numpy as np
import pytest

from inferometer.watch.evidence import Evidence, Recovery
from inferometer.watch.surprise import Surprise, evidence_of


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


@pytest.mark.parametrize("alike", [0.0, 0.6])
def test_neighbours_that_resemble_each_other_count_less(alike: float) -> None:
    random = np.random.default_rng(1)
    noise, last = [], 0.0
    for each in random.normal(0, 1, 4000):
        last = alike * last + each
        noise.append(last)
    assert Surprise(np.array(noise)).weight == pytest.approx((1 - alike) / (1 + alike), abs=0.06)


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
        noise = random.standard_t(4, 1000) * 0.08
        for at in range(1, len(noise)):
            noise[at] += alike * noise[at - 1]
        surprise, evidence = Surprise(noise[:known]), Evidence()
        for one in noise[known:].tolist():
            evidence.add(surprise.log_strong_evidence(one))
            steps += 1
            if evidence.log_sum > math.log(2000):
                alarms += 1
                break
    assert alarms <= steps / 2000
