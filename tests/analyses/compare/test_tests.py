"""Which test is slower: ratios, intervals and verdicts, recomputed in another way."""

import json
from math import exp, hypot, log
from pathlib import Path
from random import Random
from statistics import mean, stdev, variance
from typing import Any

import pytest
from scipy import stats
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.tests import TestComparison, are_repeated, compare_tests
from inferometer.errors import InputError
from inferometer.reports.views.compared_tests import headline
from inferometer.reports.views.view import facts_of, json_of, remarks_of
from inferometer.trace.facts import Device

BASE = [100.0, 102.0, 99.0, 101.0, 100.5]


def bench(facts: dict[str, Any] | None = None, **tests: list[float]) -> Trace:
    def row(name: str, samples: list[float]) -> dict[str, Any]:
        spread = stdev(samples) if len(samples) > 1 else None
        return {"test": name, "repetitions": len(samples), "mean_ns": mean(samples), "stddev_ns": spread}

    table = [row(name, samples) | {"order": order} for order, (name, samples) in enumerate(tests.items())]
    return trace_of(tests=table, facts=facts)


def said(found: TestComparison) -> str:
    return "\n".join([*(text for _, text in facts_of(found)), *remarks_of(found)])


def welch(base: list[float], candidate: list[float]) -> tuple[float, float]:
    """Of the logarithm of the ratio of means, each mean's variance by that of its samples."""
    parts = [variance(each) / len(each) / mean(each) ** 2 for each in (base, candidate)]
    df = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (base, candidate), strict=True))
    reach = stats.t.ppf(0.975, df) * sum(parts) ** 0.5
    middle = log(mean(candidate) / mean(base))
    return exp(middle - reach), exp(middle + reach)


def test_each_test_has_its_ratio_and_its_interval() -> None:
    slow, same = [112.0, 113.0, 111.5, 112.5], [100.4, 101.2, 99.6, 100.9, 100.2]
    found = compare_tests(bench(pp=BASE, tg=BASE, old=BASE), bench(pp=slow, tg=same, new=BASE))
    by_name = {row.name: row for row in found.rows}
    assert [(row.name, row.kind) for row in found.rows] == [
        *(("pp", "slower"), ("tg", "same")),
        *(("old", "gone"), ("new", "new")),
    ]
    assert by_name["pp"].ratio == pytest.approx(112.25 / 100.5)
    for name, samples in (("pp", slow), ("tg", same)):
        assert by_name[name].interval == pytest.approx(welch(BASE, samples))
    assert found.verdict == "slower"
    assert found.is_regression(0.05)
    assert not found.is_regression(0.5)
    low, high = welch(BASE, slow)
    assert f"1 slower of 2 tests: pp takes 1.117 times as long ({low:.3f} to {high:.3f})." in said(found)
    assert "Only the base has old." in said(found)


def test_the_other_way_round_is_the_inverse() -> None:
    one, other = bench(pp=BASE), bench(pp=[90.0, 91.0, 89.0])
    there, back = compare_tests(one, other).rows[0], compare_tests(other, one).rows[0]
    assert (there.kind, back.kind) == ("faster", "slower")
    assert there.ratio == pytest.approx(1 / (back.ratio or 0))
    low, high = back.interval or (0, 0)
    assert there.interval == pytest.approx((1 / high, 1 / low))


@pytest.mark.parametrize(
    ("candidate", "kind"),
    [
        (BASE, "same"),
        ([each * 1.02 for each in BASE], "unclear"),
        ([each * 1.055 for each in [100, 100.1, 99.9, 100]], "slower"),
        ([each * 1.01 for each in [100, 100.1, 99.9, 100]], "same"),
        ([each * 0.9 for each in BASE], "faster"),
        ([50.0, 150.0, 100.0], "unclear"),
        ([200.0], "unknown"),
    ],
)
def test_a_verdict_needs_an_interval_beyond_what_runs_drift_by(candidate: list[float], kind: str) -> None:
    assert compare_tests(bench(pp=BASE), bench(pp=candidate)).rows[0].kind == kind


def test_equal_runs_are_rarely_called_different() -> None:
    """Intervals leave 1 out in 5 of 100 pairs; with the margin of drift, a verdict is rarer still."""
    rng, outside, called = Random(7), 0, 0
    for _ in range(1000):
        sides = [[rng.gauss(100, 2) for _ in range(5)] for _ in range(2)]
        row = compare_tests(bench(pp=sides[0]), bench(pp=sides[1])).rows[0]
        assert row.interval
        outside += not row.interval[0] <= 1 <= row.interval[1]
        called += row.kind in ("slower", "faster")
    assert 30 <= outside <= 70
    assert called <= 10


def test_rates_stand_in_where_times_are_not_printed_and_nothing_is_judged() -> None:
    sides = [
        trace_of(tests=[{"test": "pp", "order": 0, "tokens_per_s": rate, "tokens_per_s_stddev": 1.0}])
        for rate in (200.0, 100.0)
    ]
    found = compare_tests(*sides)
    assert (found.rows[0].ratio, found.rows[0].interval, found.rows[0].kind) == (2.0, None, "unknown")
    assert found.verdict == "unclear"
    assert "nothing says whether this is noise" in said(found)


@pytest.mark.parametrize("facts", [{"model": "other 7B"}, {"devices": "NVIDIA A100"}])
def test_other_models_and_devices_give_no_ratio(facts: dict[str, Any]) -> None:
    def about(model: str, name: str) -> dict[str, Any]:
        return {"model": model, "devices": (Device("gpu:0", name=name),)}

    base = bench(about("llama 7B", "NVIDIA H100"), pp=BASE)
    candidate = bench(about(facts.get("model", "llama 7B"), facts.get("devices", "NVIDIA H100")), pp=[200.0, 201.0])
    found = compare_tests(base, candidate)
    assert found.verdict == "not comparable"
    assert found.rows[0].ratio is None
    assert found.is_regression(0)
    assert "different" in str(found.stops)


def test_steps_alone_are_compared_by_kind_and_decode_by_token() -> None:
    def run(decode: list[int]) -> Trace:
        steps = [{"step": 0, "phase": "prefill", "prefill_tokens": 9, "dur_ns": 500, "source": "recorded"}]
        steps += [
            {"step": i, "phase": "decode", "decode_tokens": n, "dur_ns": n * each, "source": "recorded"}
            for i, (n, each) in enumerate(zip((4, 8, 16), decode, strict=True), 1)
        ]
        return trace_of(steps=steps)

    base, candidate = run([10, 11, 10]), run([20, 21, 20])
    assert are_repeated(base, candidate)
    found = compare_tests(base, candidate)
    assert [(row.name, row.kind) for row in found.rows] == [
        ("prefill of 9 tokens", "unknown"),
        ("decode, a token", "slower"),
    ]
    assert found.rows[1].interval == pytest.approx(welch([10, 11, 10], [20, 21, 20]))
    assert "1 slower of 2 kinds of step" in said(found)


def test_runs_with_launches_are_no_tests_and_a_benchmark_needs_another() -> None:
    traced, timed = trace_of([{}]), bench(pp=BASE)
    assert not are_repeated(traced, traced)
    assert are_repeated(traced, timed)
    with pytest.raises(InputError, match="expected tests of a benchmark, as by hand has, found none"):
        compare_tests(timed, traced)


def test_settings_that_differ_are_told() -> None:
    found = compare_tests(bench({"settings": {"fa": "0"}}, pp=BASE), bench({"settings": {"fa": "1"}}, pp=BASE))
    assert "fa 0 -> 1" in said(found)
    assert json_of(found)["setup"] == [{"name": "fa", "base": "0", "candidate": "1"}]


def test_two_real_runs_whose_repetitions_vary_cannot_be_told_apart() -> None:
    """The samples' intervals by the normal approximation in place of Welch's, from the repetitions in the files."""
    paths = [Path(__file__).parents[3] / "samples" / "engines" / f"llama_bench_{run}.json" for run in (1, 2)]
    tests: list[dict[str, list[float]]] = [
        {f"pp{one['n_prompt']}" if one["n_prompt"] else f"tg{one['n_gen']}": one["samples_ns"] for one in run}
        for run in (json.loads(path.read_text()) for path in paths)
    ]
    found = compare_tests(*map(inferometer.open, paths))
    (said,) = [each for each in remarks_of(found) if each.startswith("Can't tell of ")]
    for row in found.rows:
        before, after = (side[row.name] for side in tests)
        error = hypot(*(stdev(times) / mean(times) / len(times) ** 0.5 for times in (before, after)))
        ratio = mean(after) / mean(before)
        low, high = ratio * exp(-1.96 * error), ratio * exp(1.96 * error)
        assert min(low, 1 / high) < 1 / 1.03  # a difference that would matter is in it
        assert row.interval == pytest.approx((low, high), rel=0.03)
        assert row.interval is not None
        assert f"{row.name} ({row.interval[0]:.3f} to {row.interval[1]:.3f})" in said
    assert headline(found) == "Can't tell: 2 of 2 tests can't be judged, and none is clearly slower or faster."
