"""How much of a slower step a wait can account for: by hand, and on recorded pairs by sums of their own steps."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.analyses.compare.causes.test_causes import NOTHING, fit, series

import inferometer
from inferometer.analyses.compare.causes.causes import Cause, rank_causes
from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.causes.explained import LongerStep, part_explained
from inferometer.analyses.compare.comparison import compare
from inferometer.trace.trace import Trace

RECORDED = Path(__file__).resolve().parents[4] / "samples" / "recorded"
STEP = LongerStep((10e6, 16e6), (1.0, 1.0))
CORE = "% of one core"


def _side(share: float, cores: float = 1.0, metric: str = "runq_share") -> list[Entity]:
    return [series(metric, [share] * 8, unit="fraction"), series("process_cpu_usage", [100 * cores] * 8, unit=CORE)]


@pytest.mark.parametrize(
    ("before", "after", "cores", "part"),
    [
        (0.0, 0.1, (1.0, 0.9), 0.1 * 16 / 6),  # 0.1 s of each second waited: 1.6 ms of a step, of 6 ms more
        (0.0, 0.375, (1.0, 0.625), 1.0),
        (0.1, 0.1, (0.9, 0.9), 0.1),  # the longer step has more of it, too
        (0.0, 0.05, (2.0, 1.9), 0.1 * 16 / 6),  # of two threads: each may have held the step up
        (0.2, 0.0, (0.8, 1.0), 0.0),
        (0.0, 0.9, (1.0, 1.0), 1.0),  # no step waits longer than it lasts
    ],
)
def test_a_wait_of_threads_accounts_for_its_part_of_the_time(
    before: float, after: float, cores: tuple[float, float], part: float
) -> None:
    found = part_explained(_side(before, cores[0]), _side(after, cores[1]), "runq_share", STEP)
    assert found == pytest.approx((part, part))


def test_a_program_that_is_held_back_stands_still_whatever_it_used() -> None:
    before, after = (_side(share, 0.1, "cpu_limited_share") for share in (0.0, 0.1))
    assert part_explained(before, after, "cpu_limited_share", STEP) == pytest.approx((0.1 * 16 / 6,) * 2)


def test_where_steps_take_half_of_the_time_all_of_a_wait_may_lie_in_them() -> None:
    before, after = _side(0.0), _side(0.1, 0.9)
    whole, half = (part_explained(before, after, "runq_share", LongerStep(STEP.step_ns, (c, c))) for c in (1.0, 0.5))
    assert whole is not None
    assert half == pytest.approx((2 * whole[0], 2 * whole[1]))


def test_few_samples_leave_open_how_much_it_is() -> None:
    shares = np.array([0.0, 0.2] * 8)
    before = [series("cpu_stopped", [0.0] * 16, unit="fraction")]
    after = [series("cpu_stopped", shares.tolist(), unit="fraction")]
    found = part_explained(before, after, "cpu_stopped", STEP)
    assert found is not None
    error = shares.std(ddof=1) / math.sqrt(16) * 16 / 6
    assert found == pytest.approx((0.1 * 16 / 6, 0.1 * 16 / 6 + 1.645 * error), rel=1e-3)
    assert part_explained(before, after[:1], "others_disk_write", STEP) is None
    assert part_explained(before, [series("cpu_stopped", [1.0], unit="fraction")], "cpu_stopped", STEP) is None


def test_a_share_of_traced_functions_says_nothing_of_the_whole_program() -> None:
    sides = [[series("runq_share", [share] * 8, unit=None), *_side(share)[1:]] for share in (0.0, 0.1)]
    assert part_explained(sides[0], sides[1], "runq_share", STEP) is None


@pytest.mark.parametrize("used", [None, series("process_cpu_usage", [50.0] * 8, unit="%")])
def test_without_the_cores_that_threads_used_their_wait_has_no_length(used: Entity | None) -> None:
    sides = [[one for one in (_side(share)[0], used) if one] for share in (0.0, 0.1)]
    assert part_explained(sides[0], sides[1], "runq_share", STEP) is None


def _ranked(runq: float, step: LongerStep | None) -> dict[str, Cause]:
    base, candidate = _side(0.001), _side(runq, 0.9)
    base.append(series("others_cpu_usage", [50.0] * 8))
    candidate.append(series("others_cpu_usage", [60.0] * 8))
    causes = rank_causes(base, candidate, agreement=fit("host"), capacities=NOTHING, step=step)
    return {cause.metric: cause for cause in causes}


@pytest.mark.parametrize(
    ("runq", "step", "agreement"), [(0.07, STEP, 0.3), (0.07, None, 1.0), (0.3, STEP, 1.0), (0.17, STEP, 0.3)]
)
def test_load_by_others_that_can_t_account_for_half_is_made_light_of(
    runq: float, step: LongerStep | None, agreement: float
) -> None:
    for cause in _ranked(runq, step).values():
        assert cause.agreement == agreement
        assert (cause.explains is None) == (step is None)
        assert cause.is_too_small == (agreement < 1)


def _of(pair: str) -> tuple[Trace, Trace]:
    return inferometer.open(RECORDED / pair / "normal.ifm"), inferometer.open(RECORDED / pair / "fault.ifm")


def _mean(trace: Trace, metric: str) -> float:
    value = trace.counters.filter(pl.col("metric") == metric).select(pl.col("value").mean()).collect().item()
    return float(value)


def _step_ns(trace: Trace) -> float:
    return float(trace.steps.select(pl.col("dur_ns").mean()).collect().item())


@pytest.mark.parametrize(
    ("pair", "metric", "is_enough"),
    [
        ("cpu_contention", "runq_share", True),
        ("cpu_quota", "cpu_limited_share", True),
        ("cpu_stop", "cpu_stopped", True),
        ("disk", "runq_share", False),
    ],
)
def test_what_was_done_accounts_for_the_slower_step_and_what_went_with_it_does_not(
    pair: str, metric: str, is_enough: bool
) -> None:
    base, candidate = _of(pair)
    found = compare(base, candidate)
    (cause,) = (one for one in found.causes if one.metric == metric)
    assert cause.explains is not None
    waits, steps = [_mean(run, metric) for run in (base, candidate)], [_step_ns(run) for run in (base, candidate)]
    if metric == "runq_share":  # seconds of waiting a second, of the threads that ran so much
        used = [_mean(run, "process_cpu_usage") / 100 for run in (base, candidate)]
        waits = [share / (1 - share) * cores for share, cores in zip(waits, used, strict=True)]
    part = (waits[1] * steps[1] - waits[0] * steps[0]) / (steps[1] - steps[0])
    assert cause.explains[0] == pytest.approx(min(part, 1.0), abs=0.08)
    assert cause.is_too_small != is_enough
    assert found.verdict == "cause named"
    assert (found.causes[0].metric == metric) is (is_enough and pair != "cpu_contention")


def test_a_step_that_is_as_long_as_before_has_nothing_to_account_for() -> None:
    assert not any(cause.explains for cause in compare(*_of("none")).causes)


def _without(trace: Trace, metric: str) -> Trace:
    counters = trace.counters.filter(pl.col("metric") != metric)
    return Trace(trace.facts, {**trace.tables, "counters": counters}, trace.losses, scope=trace.scope)


def test_of_a_stopped_program_whose_stops_nobody_sampled_the_run_queue_is_no_cause() -> None:
    found = compare(*(_without(run, "cpu_stopped") for run in _of("cpu_stop")))
    (waited,) = (cause for cause in found.causes if cause.metric == "runq_share")
    assert waited.q < 1e-6
    assert waited.severity > 0.1
    assert waited.explains is not None
    part, most = (round(100 * share) for share in waited.explains)
    assert part < most < 50
    assert found.verdict == "cause not measured"
    assert found.judged.why.endswith(
        f"runq_share on host went from 0 to {waited.candidate:.4f}. That accounts for {part} % of what a step takes "
        f"longer, at most {most} %. Nothing that was measured in both runs explains the rest."
    )
