"""Candidate causes from series made by hand: roles, severity in physical units, evidence, order."""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from msgspec.structs import replace

from inferometer.analyses.compare.causes.calibration import calibrate
from inferometer.analyses.compare.causes.causes import Capacities, Cause, rank_causes
from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.causes.metric_roles import MetricRole, role_of_metric

NOTHING = Capacities()


def fit(slowed: str | None) -> Callable[[MetricRole], float]:
    """How well a metric fits that functions of this class slowed."""
    return lambda role: 0.6 if slowed is None else 1.0 if slowed in role.slows else 0.3


def series(metric: str, values: list[float], device: str = "host", unit: str | None = "%") -> Entity:
    return Entity(metric, device, unit, np.array(values, dtype=np.float64))


def ranked(base: Entity, candidate: Entity, slows: str | None = None, capacities: Capacities = NOTHING) -> Cause:
    (cause,) = rank_causes([base], [candidate], agreement=fit(slows), capacities=capacities)
    return cause


@pytest.mark.parametrize(
    ("metric", "kind", "cause_class"),
    [
        ("cpu_frequency", "cause", "cpu_clock"),
        ("gpu_sm_frequency", "cause", "gpu_clock"),
        ("gpu_mem_frequency", "cause", "gpu_memory"),
        ("gpu_mem_used", "cause", "gpu_memory"),
        ("gpu_link_receive", "cause", "nvlink_traffic"),
        ("gpu_pcie_transmit", "cause", "pcie_traffic"),
        ("net_tx_rate", "cause", "network"),
        ("disk_read_rate", "cause", "disk"),
        ("disk_usage", "context", None),
        ("host_mem_available", "cause", "memory_pressure"),
        ("gpu_temperature", "cause", "thermal"),
        ("clocks_throttle_reasons", "cause", "thermal"),
        ("process_gpu_usage", "effect", None),
        ("gpu_usage", "effect", None),
        ("gpu_sm_util", "effect", None),
        ("whatever", "context", None),
    ],
)
def test_a_metric_is_a_cause_an_effect_or_context(metric: str, kind: str, cause_class: str | None) -> None:
    role = role_of_metric(metric)
    assert (role.kind, role.cause_class) == (kind, cause_class)


def test_a_lower_clock_is_as_bad_as_the_part_that_is_lost() -> None:
    cause = ranked(series("cpu_frequency", [3500.0] * 8, unit="MHz"), series("cpu_frequency", [900.0] * 8, unit="MHz"))
    assert cause.severity == pytest.approx(1 - 900 / 3500)
    assert (cause.base, cause.candidate, cause.unit) == (3500, 900, "MHz")
    assert cause.p < 0.001
    assert cause.interval == pytest.approx((900 / 3500, 900 / 3500))


def test_a_higher_clock_harms_nobody() -> None:
    cause = ranked(series("gpu_frequency", [900.0] * 8), series("gpu_frequency", [1400.0] * 8))
    assert (cause.severity, cause.score) == (0.0, 0.0)
    assert cause.p > 0.9


def test_functions_that_slowed_tell_which_of_two_changes_counts() -> None:
    base = [series("cpu_frequency", [3500.0] * 8), series("gpu_frequency", [1400.0] * 8, "gpu:7")]
    candidate = [series("cpu_frequency", [2800.0] * 8), series("gpu_frequency", [1000.0] * 8, "gpu:7")]
    first = [
        rank_causes(base, candidate, agreement=fit(cls), capacities=NOTHING)[0].metric for cls in ("host", "compute")
    ]
    assert first == ["cpu_frequency", "gpu_frequency"]


def test_traffic_counts_by_share_of_capacity_and_by_how_often_as_much_it_is() -> None:
    base = series("gpu_pcie_receive", [1e9] * 8, "gpu:0", "B/s")
    busy = ranked(base, series("gpu_pcie_receive", [16e9] * 8, "gpu:0", "B/s"), capacities=Capacities(pcie=30e9))
    assert busy.severity == pytest.approx(np.sqrt(0.5 * (1 - 1 / 16)))
    assert busy.assumed is None
    guessed = ranked(base, series("gpu_pcie_receive", [16e9] * 8, "gpu:0", "B/s"))
    assert guessed.assumed == "PCIe 4.0 x16, 31.5 GB/s a direction"
    drop = ranked(series("net_rx_rate", [500.0] * 8), series("net_rx_rate", [5_000.0] * 8))
    assert drop.severity < 0.001  # ten times next to nothing


@pytest.mark.parametrize(("before", "after", "severity"), [(40, 60, 0.0), (60, 80, 0.5), (75, 80, 0.25), (85, 80, 0.0)])
def test_heat_counts_only_near_the_limit(before: float, after: float, severity: float) -> None:
    base, candidate = (series("gpu_temperature", [degrees] * 8) for degrees in (before, after))
    assert ranked(base, candidate, capacities=Capacities(limit_c=90)).severity == pytest.approx(severity)


@pytest.mark.parametrize(
    ("ticks", "metrics", "enough"),
    [
        ((3, 99), 1, False),  # neighbours are alike: however many the other run has
        ((99, 3), 1, False),
        ((4, 4), 1, True),
        ((4, 4), 4, False),  # of 70 orders of eight ticks one is the clearest: 4 / 70 > 0.05
        ((4, 7), 16, True),
        ((4, 7), 17, False),
        ((7, 4), 17, False),
        ((5, 5), 15, False),
        ((6, 6), 15, True),
    ],
)
def test_ticks_are_enough_where_the_clearest_change_of_so_many_metrics_could_be_told(
    ticks: tuple[int, int], metrics: int, enough: bool
) -> None:
    base = [series("cpu_frequency", [3500.0 + i for i in range(ticks[0])])]
    candidate = [series("cpu_frequency", [900.0 + i for i in range(ticks[1])])]
    for number in range(metrics - 1):
        base.append(series("others_cpu_usage", [20.0] * 8, f"host:{number}"))
        candidate.append(series("others_cpu_usage", [20.0] * 8, f"host:{number}"))
    (cause,) = (
        one
        for one in rank_causes(base, candidate, agreement=fit(None), capacities=NOTHING)
        if one.metric == "cpu_frequency"
    )
    assert cause.has_ticks is enough
    if min(ticks) > 3 and max(ticks) < 25:  # by another way: whether the test itself finds what can't be clearer
        assert (cause.q <= 0.05) is enough
    needed = cause.needed_ticks
    if not enough:
        assert needed > min(ticks)
    assert metrics / math.comb(2 * needed, needed) <= 0.05
    assert needed == 4 or metrics / math.comb(2 * needed - 2, needed - 1) > 0.05


def test_alike_runs_have_no_evidence() -> None:
    rng = np.random.default_rng(1)
    base, other = (series("others_cpu_usage", list(rng.normal(20, 2, 30))) for _ in range(2))
    assert ranked(base, other).p > 0.01
    assert ranked(base, base).severity == 0


def test_metrics_that_only_one_run_has_or_that_are_effects_are_no_candidates() -> None:
    base = [series("cpu_frequency", [3500.0] * 8), series("process_cpu_usage", [50.0] * 8)]
    assert rank_causes(base, [series("process_cpu_usage", [90.0] * 8)], agreement=fit(None), capacities=NOTHING) == []


def test_calibration_gives_the_scores_of_halves() -> None:
    drifting = [series("others_cpu_usage", [float(i) for i in range(20)])]
    calm = [series("others_cpu_usage", [20.0, 21.0] * 10)]

    def rank(one: object, two: object) -> list[Cause]:
        return rank_causes(one, two, agreement=fit(None), capacities=NOTHING)  # type: ignore[arg-type]

    found = calibrate(drifting, [], rank, 0.5)
    assert len(found.halves) == 4
    assert found.level == pytest.approx(0.1 * 0.6, rel=0.05)  # 10 % more, functions unknown
    assert found.rate == 0
    assert calibrate(calm, [], rank, 0.5).level < found.level < calibrate(calm, [drifting], rank, 0.5).level
    assert calibrate([], [], rank, 0.1).rate is None


@pytest.mark.parametrize(
    ("unit", "base", "candidate", "severity"),
    [
        ("%", 86.0, 97.0, 0.0),  # nothing waits for memory that isn't full
        ("%", 86.0, 98.0, 0.12),
        ("%", 86.0, 99.0, 0.13),
        ("%", 99.0, 99.5, 0.005),
        ("bytes", 40e9, 79e9, 39 / 80),
        ("bytes", 40e9, 70e9, 0.0),
    ],
)
def test_memory_in_use_counts_only_where_it_is_full(unit: str, base: float, candidate: float, severity: float) -> None:
    before, after = (series("gpu_mem_used", [value] * 8, "gpu:0", unit) for value in (base, candidate))
    assert ranked(before, after, capacities=Capacities(memory=80e9)).severity == pytest.approx(severity)


@pytest.mark.parametrize(("waited", "agreement"), [([0.1] * 8, 0.3), ([0.5] * 8, 1.0), (None, 1.0)])
def test_load_by_others_is_no_cause_where_threads_waited_no_longer_than_before(
    waited: list[float] | None, agreement: float
) -> None:
    """A program that sleeps leaves the processors to others."""
    calm = series("host_mem_usage", [20.0] * 8)
    base, candidate = ([series("others_cpu_usage", [load] * 8), calm] for load in (10.0, 60.0))
    if waited is not None:
        base.append(series("runq_share", [0.1] * 8, unit=None))
        candidate.append(series("runq_share", waited, unit=None))
    causes = rank_causes(base, candidate, agreement=fit("host"), capacities=NOTHING)
    (load,) = (cause for cause in causes if cause.metric == "others_cpu_usage")
    assert load.agreement == agreement


def test_traffic_of_a_network_counts_by_its_share_of_the_capacity() -> None:
    """409 MB/s more of 12.5 GB/s are 3.3 %: too little to be claimed, however little was there before."""
    before, after = (series("net_rx_rate", [rate] * 8, unit="B/s") for rate in (1e3, 409e6))
    cause = ranked(before, after)
    assert cause.severity == pytest.approx(409e6 / 12.5e9, rel=1e-3)
    assert cause.severity < 0.05


def normal(z: float) -> float:
    """How often a normal value lies above `z` standard deviations."""
    return NormalDist().cdf(-z)


WARM = "throttling at 90 degrees Celsius"


@pytest.mark.parametrize(
    ("metric", "unit", "values", "capacities", "severity", "assumed"),
    [
        ("cpu_frequency", "MHz", (0, 900), NOTHING, 0, None),  # the part of nothing isn't known
        ("cpu_frequency", "GHz", (0.5, 0.25), NOTHING, 0.5, None),
        ("others_cpu_usage", "%", (10, 60), NOTHING, 0.5, None),
        ("others_cpu_usage", "%", (0, 150), NOTHING, 1, None),
        ("runq_share", None, (0.25, 0.5), NOTHING, 0.25, None),
        ("io_pressure", "%", (10, 60), NOTHING, 0.5, None),
        ("gpu_temperature", "C", (60, 80), NOTHING, 0.5, WARM),  # half of the way from 70 to 90 degrees
        ("gpu_temperature", "C", (60, 80), Capacities(limit_c=110), 0.25, None),
        ("gpu_temperature", "C", (60, 64.5), Capacities(limit_c=65), 0.5, None),  # the last degree, of a low limit
        ("swap_used", "%", (10, 60), NOTHING, 0.5, None),
        ("swap_used", "bytes", (0, 40e9), Capacities(memory=80e9), 0, None),  # the device's memory, not the host's
        ("gpu_mem_used", "bytes", (40e9, 79e9), NOTHING, 0, None),
        ("gpu_pcie_receive", "B/s", (20e9, 40e9), Capacities(pcie=10e9), 0.5**0.5, None),  # twice; more than all
        ("gpu_pcie_receive", "B/s", (0, 4), Capacities(pcie=4), 1, None),
        ("gpu_pcie_receive", "B/s", (0, 0), NOTHING, 0, None),
        ("gpu_pcie_receive", "B/s", (9e9, 1e9), NOTHING, 0, None),
        ("gpu_link_receive", "B/s", (1e9, 4e9), Capacities(link=6e9), (0.5 * 0.75) ** 0.5, None),
        ("net_rx_rate", "B/s", (1e9, 1e9 + 12.5e8), NOTHING, 0.1, "a network of 100 Gbit/s"),
    ],
)
def test_severity_is_a_part_of_what_the_device_can_do(
    metric: str,
    unit: str | None,
    values: tuple[float, float],
    capacities: Capacities,
    severity: float,
    assumed: str | None,
) -> None:
    base, candidate = (series(metric, [value] * 8, "gpu:0", unit) for value in values)
    cause = ranked(base, candidate, capacities=capacities)
    assert cause.severity == pytest.approx(severity)
    assert cause.assumed == assumed


@pytest.mark.parametrize(
    ("metric", "base", "candidate", "p"),
    [
        # 1 of the 6 orders of two and two, where they moved in the harmful direction
        ("others_cpu_usage", [1, 2], [3, 4], 1 / 6),
        ("others_cpu_usage", [1, 1.25], [1.5, 2], 1 / 6),
        ("cpu_frequency", [3, 4], [1, 2], 1 / 6),
        ("others_cpu_usage", [1, 2, 20], [2.5, 3, 4], 7 / 20),
        # with ties: of the 20 ways to draw three of six, 3 are as harmful
        ("others_cpu_usage", [1, 2, 2], [2, 3, 3], 3 / 20),
        # else by the normal approximation: the 0.5 is its correction for continuity
        ("others_cpu_usage", [3, 4], [1, 2], normal(-(2 + 0.5) / (2 * 2 * 5 / 12) ** 0.5)),
        ("cpu_frequency", [1, 2], [3, 4], normal(-(2 + 0.5) / (2 * 2 * 5 / 12) ** 0.5)),
        ("others_cpu_usage", [1, 2, 3], [0, 1.5, 10], normal(-(0.5 + 0.5) / (3 * 3 * 7 / 12) ** 0.5)),
        ("others_cpu_usage", [1, 2, 3], [0, 2, 4], normal(-0.5 / (3 * 3 * (7 - 6 / 30) / 12) ** 0.5)),
        # and of more than 25 ticks
        ("others_cpu_usage", [1, 2], range(3, 28), 1 / 351),
        ("others_cpu_usage", [1, 2], range(3, 29), normal((26 - 0.5) / (2 * 26 * 29 / 12) ** 0.5)),
        # nothing is known from one tick, or where nothing changes
        ("others_cpu_usage", [1], [3, 4], 1),
        ("others_cpu_usage", [5, 5, 5], [5, 5, 5], 1),
    ],
)
def test_p_is_how_often_chance_alone_would_harm_as_much(
    metric: str, base: list[float], candidate: list[float], p: float
) -> None:
    assert ranked(series(metric, list(base)), series(metric, list(candidate))).p == pytest.approx(p)


def test_drawn_orders_give_the_same_p_each_time() -> None:
    base, candidate = series("others_cpu_usage", [1.0, 2.0] * 5), series("others_cpu_usage", [2.0, 2.0, 1.0, 2.0] * 3)
    assert ranked(base, candidate).p == ranked(base, candidate).p


def test_a_cause_is_typical_values_evidence_and_score() -> None:
    cause = ranked(series("cpu_frequency", [10, 11, 19]), series("cpu_frequency", [5, 5.5, 9]), "host")
    assert (cause.base, cause.candidate, cause.family, cause.ticks) == (11, 5.5, "CPU clock", (3, 3))
    assert (cause.severity, cause.agreement) == (0.5, 1.0)
    assert (cause.p, cause.q) == pytest.approx((0.05, 0.05))
    assert cause.score == pytest.approx(0.5 * 0.95)


def test_states_count_by_the_part_of_the_ticks_in_which_they_hold() -> None:
    cause = ranked(series("throttle_hw", [0, 0, 0, 1], unit=None), series("throttle_hw", [0, 1, 1, 1], unit=None))
    assert (cause.base, cause.candidate, cause.severity) == (0.25, 0.75, 0.5)
    cause = ranked(series("throttle_hw", [0, 0.2, 0.7]), series("throttle_hw", [0, 0.3, 0.9]))
    assert (cause.base, cause.candidate) == (0.2, 0.3)


@pytest.mark.parametrize(
    ("base_s", "candidate_s", "tick_s"),
    [([0, 1, 2, 9], [0, 2, 4, 6], 2), ([0, 3, 6], [0, 2], 3), ([5], [0, 3], 3), ([5], [7], None), (None, None, None)],
)
def test_the_time_between_ticks_is_the_usual_one_of_the_run_where_it_is_longer(
    base_s: list[int] | None, candidate_s: list[int] | None, tick_s: float | None
) -> None:
    def at(times_s: list[int] | None) -> Entity:
        times_ns = None if times_s is None else np.array(times_s) * 10**9
        return Entity("cpu_frequency", "host", "MHz", np.ones(len(times_s or [0])), times_ns)

    assert ranked(at(base_s), at(candidate_s)).tick_s == tick_s


@pytest.mark.parametrize(
    ("limited", "agreement"),
    [
        ([0.6, 0.7, 0.8], 0.3),
        ([0.15, 0.16, 0.17], 0.3),  # 0.05 more, at q = 0.05
        ([0.14, 0.15, 0.16], 1.0),  # less than 0.05 more
        ([0.11, 0.7, 0.8], 0.3),  # so few that nobody knows
        ([0.1, 0.11, 0.7, 0.8, 0.11] * 2, 1.0),  # chance does as much
    ],
)
def test_waiting_threads_are_no_sign_of_load_where_a_limit_may_hold_them(
    limited: list[float], agreement: float
) -> None:
    before = [0.1, 0.11, 0.12] if len(limited) < 4 else [0.1, 0.1, 0.12, 0.7, 0.12] * 2
    base = [series("runq_share", [0.1, 0.2, 0.3], unit=None), series("cpu_limited_share", before, unit=None)]
    after = [series("runq_share", [0.5, 0.6, 0.7], unit=None), series("cpu_limited_share", limited, unit=None)]
    causes = rank_causes(base, after, agreement=fit("host"), capacities=NOTHING)
    (waited,) = (cause for cause in causes if cause.metric == "runq_share")
    assert waited.agreement == agreement
    assert waited.score == pytest.approx(0.4 * agreement * (1 - waited.q))


def test_of_equal_scores_the_severer_change_comes_first() -> None:
    """One tick is no evidence: both scores are 0."""
    base = [series(metric, [10]) for metric in ("others_cpu_usage", "host_mem_usage", "io_pressure")]
    candidate = [series("others_cpu_usage", [30]), series("host_mem_usage", [50]), series("io_pressure", [])]
    found = rank_causes(base, candidate, agreement=fit(None), capacities=NOTHING)
    assert [(cause.metric, cause.score, cause.severity) for cause in found] == [
        ("host_mem_usage", 0, 0.4),
        ("others_cpu_usage", 0, 0.2),
    ]


CAUSE = Cause(
    metric="gpu_pcie_receive", device="gpu:0", cause_class="pcie_traffic", family="PCIe", score=0.5, severity=0.7,
    base=1.0, candidate=2.0, unit="B/s", p=0.01, q=0.02, interval=(1.9, 2.1), ticks=(6, 7), agreement=0.6,
    assumed="PCIe 4.0 x16", tick_s=1.0, tested=18, explains=(0.2, 0.4),
)  # fmt: skip


def test_json_holds_all_of_a_cause() -> None:
    assert CAUSE.as_json() == {
        "metric": "gpu_pcie_receive", "device": "gpu:0", "class": "pcie_traffic", "role": "cause", "score": 0.5,
        "base": 1.0, "candidate": 2.0, "unit": "B/s", "p": 0.01, "q": 0.02, "severity": 0.7, "interval": (1.9, 2.1),
        "ticks": (6, 7), "agreement": 0.6, "family": "PCIe", "assumed": "PCIe 4.0 x16", "explains": (0.2, 0.4),
    }  # fmt: skip


def test_both_runs_need_ticks_but_for_what_was_told_already() -> None:
    open_ = replace(CAUSE, q=0.2)
    assert open_.has_ticks
    assert not replace(open_, ticks=(4, 7)).has_ticks
    assert not replace(open_, ticks=(7, 4)).has_ticks
    assert replace(open_, ticks=(4, 7)).needed_ticks == 6
    assert replace(CAUSE, ticks=(4, 7)).has_ticks  # of several metrics that moved together each is clearer
    assert not replace(CAUSE, ticks=(3, 500)).has_ticks
