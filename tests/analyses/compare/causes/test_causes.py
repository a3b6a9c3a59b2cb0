"""Candidate causes from series made by hand: roles, severity in physical units, evidence, order."""

from collections.abc import Callable

import numpy as np
import pytest

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


@pytest.mark.parametrize(("ticks", "enough"), [(4, False), (5, False), (6, True)])
def test_few_ticks_are_not_enough_to_claim_a_cause(ticks: int, enough: bool) -> None:
    cause = ranked(series("cpu_frequency", [3500.0] * ticks), series("cpu_frequency", [900.0] * ticks))
    assert cause.has_ticks is enough


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
    base, candidate = ([series("others_cpu_usage", [load] * 8)] for load in (10.0, 60.0))
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
