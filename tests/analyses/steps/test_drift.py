"""Whether like steps get slower: over the run, along a decode run, or so that nobody can tell which."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.traces import trace_of

from inferometer.analyses.comparison_limits import BLOCKS
from inferometer.analyses.steps.drift import slope_interval
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.reports.views.view import remarks_of

MS = 1_000_000


def table_of(
    count: int,
    *,
    run: int | None = None,
    drift: float = 0.0,
    growth: float = 0.0,
    host: float = 0.0,
    noise: float = 0.005,
    seed: int = 1,
    context: bool = False,
    phase: str | None = "decode",
) -> StepTable:
    """Steps of 10 ms on the device and 2 ms besides; parts of 10 ms more a step of the run or of the decode run."""
    random = np.random.default_rng(seed)
    steps: list[dict[str, Any]] = []
    totals: list[dict[str, Any]] = []
    position = 0
    for k in range(count):
        is_prefill = run is not None and k % (run + 1) == 0
        position = 0 if is_prefill else position + 1
        attention = 3 * MS + 10 * MS * growth * position
        gemm = 7 * MS * (1 + noise * random.standard_normal()) + 10 * MS * drift * k
        busy = round(attention) + round(gemm)
        gap = 2 * MS + 10 * MS * host * k + 0.1 * MS * random.standard_normal()
        times = {"gpu_busy_ns": busy, "dur_ns": busy + round(gap), "start_ns": 50 * MS * k}
        kinds: dict[str, Any] = {"phase": "prefill" if is_prefill else phase}
        kinds |= {"prefill_tokens": 64} if is_prefill else {"decode_tokens": 4} if phase else {}
        known = {"context_len": 100 + 4 * position} if context else {}
        steps.append({"step": k, "source": "recorded", **times, **kinds, **known})
        for kernel, ns in (("attention", round(attention)), ("gemm", round(gemm))):
            totals.append({"section": 0, "step": k, "kernel": kernel, "total_ns": ns})
    return step_table(trace_of(steps=steps, totals=totals))


def trends(table: StepTable) -> list[tuple[str, str, str | None]]:
    rows = table.trends.filter("is_trend", pl.col("phase").eq_missing("decode") | pl.col("phase").is_null())
    return rows.select("over", "of", "class").rows()


def row(table: StepTable, over: str, of: str, name: str | None = None) -> dict[str, Any]:
    rows = table.trends.filter(pl.col("over") == over, pl.col("of") == of, pl.col("class").eq_missing(name))
    return rows.row(0, named=True)


def said(table: StepTable, words: str) -> bool:
    return any(words in remark for remark in remarks_of(table))


def test_a_drift_over_the_run_is_told_from_the_position_and_carried_by_its_class() -> None:
    table = table_of(120, run=20, drift=0.001)
    assert trends(table) == [("time", "wall", None), ("time", "busy", None), ("time", "class", "gemm")]
    found = row(table, "time", "busy")
    assert found["low_ns"] <= 10_000 <= found["high_ns"]
    assert found["change_ns"] == pytest.approx(0.001 * 118 * 10 * MS, rel=0.1)
    assert found["share"] == pytest.approx(found["change_ns"] / found["median_ns"])
    assert said(table, "get slower over the run: wall time +1.1")
    assert said(table, "gemm +1.1")


def test_growth_along_a_decode_run_is_told_from_drift() -> None:
    table = table_of(120, run=20, growth=0.003)
    assert trends(table) == [("position", "wall", None), ("position", "busy", None), ("position", "class", "attention")]
    found = row(table, "position", "class", "attention")
    assert found["slope_ns"] == pytest.approx(30_000, rel=1e-6)
    assert said(table, "get slower with the position in their decode run")


def test_both_at_once_are_parted() -> None:
    table = table_of(160, run=20, drift=0.001, growth=0.003)
    assert row(table, "time", "busy")["slope_ns"] == pytest.approx(10_000, rel=0.1)
    assert row(table, "position", "busy")["slope_ns"] == pytest.approx(30_000, rel=0.1)
    carried = [(over, name) for over, of, name in trends(table) if of == "class"]
    assert carried == [("time", "gemm"), ("position", "attention")]


def test_a_single_decode_run_can_t_tell_drift_from_growth_and_says_so() -> None:
    table = table_of(60, growth=0.003)
    assert [over for over, _, _ in trends(table)] == ["both"] * 3
    assert said(table, "no step begins a new decode run, so drift and growth with context can't be distinguished")


def test_with_a_recorded_context_drift_is_what_the_context_leaves() -> None:
    assert trends(table_of(120, run=20, growth=0.003, context=True)) == []
    drifting = table_of(120, run=20, growth=0.003, drift=0.001, context=True)
    assert trends(drifting) == [("time", "wall", None), ("time", "busy", None), ("time", "class", "gemm")]
    one_run = table_of(60, growth=0.003, context=True)
    assert said(one_run, "grows all along the run: a drift over time can't be distinguished from that")


def test_a_host_that_gets_slower_carries_the_wall_time_alone() -> None:
    table = table_of(100, run=20, host=0.0005)
    assert trends(table) == [("time", "wall", None), ("time", "gap", None)]
    assert row(table, "time", "gap")["change_ns"] == pytest.approx(0.0005 * 98 * 10 * MS, rel=0.1)
    assert said(table, "; of that the host's gap +")


def test_steps_of_an_unknown_phase_have_no_position() -> None:
    table = table_of(60, drift=0.002, phase=None)
    assert trends(table) == [("time", "wall", None), ("time", "busy", None), ("time", "class", "gemm")]


def test_healthy_runs_have_no_trends() -> None:
    found = [
        trends(table_of(count, run=run, noise=noise, seed=seed))
        for seed in range(12)
        for count, run, noise in ((30, None, 0.005), (100, 20, 0.02), (200, 10, 0.05))
    ]
    assert sum(map(bool, found)) <= 1, found
    assert said(table_of(100, run=20, seed=3), "No drift beyond the noise in")


def test_a_change_below_the_noise_is_none() -> None:
    table = table_of(400, run=40, drift=1e-5)  # 0.4 % over the run
    assert trends(table) == []


def test_few_like_steps_have_no_trends() -> None:
    assert table_of(7, drift=0.1).trends.is_empty()


def test_a_phase_keeps_its_positions_where_it_alone_is_asked_for() -> None:
    steps: list[dict[str, Any]] = []
    totals: list[dict[str, Any]] = []
    for k in range(63):
        is_prefill = k % 21 == 0
        busy = (50 if is_prefill else 10 + 0.1 * (k % 21)) * MS
        steps.append({"step": k, "phase": "prefill" if is_prefill else "decode", "source": "recorded"})
        steps[-1] |= {"decode_tokens": None if is_prefill else 4, "gpu_busy_ns": round(busy), "start_ns": k * 99 * MS}
        totals.append({"section": 0, "step": k, "kernel": "k", "total_ns": round(busy)})
    trace = trace_of(steps=steps, totals=totals)
    whole, decode = step_table(trace), step_table(trace, phase="decode")
    assert decode.trends.rows() == whole.trends.filter(pl.col("phase") == "decode").rows()
    assert trends(decode)[0][0] == "position"


def test_the_slope_and_its_interval_are_theil_s_and_sen_s() -> None:
    from scipy.stats import theilslopes

    random = np.random.default_rng(5)
    for n in (10, 33, BLOCKS):
        x, y = np.arange(n, dtype=np.float64), random.standard_normal(n).cumsum()
        expected = theilslopes(y, x, 0.99)
        assert slope_interval(x, y) == pytest.approx((expected.slope, expected.low_slope, expected.high_slope), rel=0.1)


def test_nothing_is_certain_of_very_few_places() -> None:
    assert slope_interval(np.zeros(9), np.arange(9.0)) == (0.0, 0.0, 0.0)
    slope, low, high = slope_interval(np.array([0.0, 0, 0, 0, 1, 1, 1, 1]), np.arange(8.0))
    assert (low, high) == (-np.inf, np.inf)
    assert slope > 0


def test_an_interval_covers_the_true_slope_nearly_always() -> None:
    random, covered = np.random.default_rng(11), 0
    for _ in range(200):
        x = np.arange(40, dtype=np.float64)
        _, low, high = slope_interval(x, 3 * x + 25 * random.standard_normal(40))
        covered += low <= 3 <= high
    assert covered >= 194
