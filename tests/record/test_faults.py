"""What `compare` names in the bundled recordings, whose second run has a known fault (`tools/record_faults.py`)."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import inferometer
from inferometer.analyses.compare.causes.causes import Capacities, Cause, rank_causes
from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.causes.metric_roles import OTHERS_CPU, RUN_QUEUE, role_of_metric
from inferometer.analyses.compare.causes.resampling import Values
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.analyses.steps.sources import read_steps
from inferometer.trace.trace import Trace

RECORDED = Path(__file__).parents[2] / "samples" / "recorded"
PAIRS = sorted(path.parent.name for path in RECORDED.glob("*/truth.json"))
RUNS = ("normal", "fault")
MOST_BYTES = 2_000_000


def _open(pair: str, run: str) -> Trace:
    return inferometer.open(RECORDED / pair / f"{run}.ifm")


def _truth(pair: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((RECORDED / pair / "truth.json").read_text())
    return read


@cache
def _compared(pair: str) -> Comparison:
    return compare(*(_open(pair, run) for run in RUNS))


def test_there_are_pairs_with_every_fault_and_one_without() -> None:
    assert {_truth(pair)["cause"] for pair in PAIRS} == {"cpu_contention", "cpu_quota", "disk", None}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_right_cause_is_named_or_none(pair: str) -> None:
    found, truth = _compared(pair).judged, _truth(pair)
    assert found.verdict == truth["verdict"]
    assert (found.claimed and found.claimed.cause_class) == truth["cause"]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if _truth(pair)["cause"]])
def test_no_cause_is_named_the_other_way_round(pair: str) -> None:
    back = compare(_open(pair, "fault"), _open(pair, "normal"))
    assert back.judged.verdict == "improvement"
    assert back.judged.claimed is None


@pytest.mark.parametrize("pair", PAIRS)
def test_what_changed_adds_up_to_the_step(pair: str) -> None:
    changes = _compared(pair).changes
    added = sum(line.delta_ns for line in changes.contributions if line.added)
    assert abs(changes.candidate_step_ns - changes.base_step_ns - added) <= len(changes.contributions)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("pair", PAIRS)
def test_steps_are_those_that_the_program_marked(pair: str, run: str) -> None:
    trace = _open(pair, run)
    found = read_steps(trace)
    assert found.anchor == "inferometer.step"
    assert set(found.steps["phase"]) == {"decode"}
    assert found.steps.height == trace.count_rows()["steps"] > 20


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("pair", PAIRS)
def test_nothing_names_the_machine(pair: str, run: str) -> None:
    trace = _open(pair, run)
    assert trace.facts.hosts == ("machine",)
    for table in ("launches", "counters"):
        assert trace.tables[table].select(pl.col("host").unique()).collect().to_series().to_list() == ["machine"]
    said = (*trace.facts.notes, *trace.frames.select("frame").unique().collect()["frame"])
    assert not [line for line in said if re.search(r"(?<![\w.])/\w", line)]


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_are_small(pair: str) -> None:
    assert sum(file.stat().st_size for file in (RECORDED / pair).rglob("*") if file.is_file()) < MOST_BYTES


def test_waiting_for_a_quota_is_not_taken_for_load_by_others() -> None:
    """The kernel counts both as waiting in the run queue, so the share of that rose as much as the quota's own."""
    causes = {cause.metric: cause for cause in _compared("cpu_quota").causes}
    waiting, limited = causes[RUN_QUEUE], causes["cpu_limited_share"]
    assert waiting.severity == pytest.approx(limited.severity, abs=0.05)
    assert waiting.score < limited.score / 2


def test_waiting_without_a_quota_is_load_by_others() -> None:
    causes = {cause.metric: cause for cause in _compared("cpu_contention").causes}
    assert causes[RUN_QUEUE].agreement == 1
    assert causes[RUN_QUEUE].score > 0.2


def test_ops_on_the_cpu_are_slowed_by_what_slows_a_cpu() -> None:
    """Nothing but ops slowed while the program was stopped: their class is that of kernels, which no quota slows."""
    slowdown = _compared("cpu_stop").leading.slowdown
    assert slowdown.on_cpu
    assert set(slowdown.classes) == {"compute"}
    assert slowdown.agreement(role_of_metric("cpu_stopped")) == 1
    assert replace(slowdown, on_cpu=False, waits=False).agreement(role_of_metric("cpu_stopped")) < 1


@pytest.mark.parametrize(("held", "part"), [((0, 0, 1, 0, 1), 0.4), ((1, 0, 1, 0, 1), 0.6), ((0.4, 0, 1, 0, 0.2), 0.2)])
def test_a_state_counts_by_the_part_of_ticks_in_which_it_holds(held: tuple[float, ...], part: float) -> None:
    cause = _ranked({"cpu_stopped": (np.zeros(50), np.array(held * 10, dtype=float))})["cpu_stopped"]
    assert cause.base == 0
    assert cause.candidate == cause.severity == pytest.approx(part)


def test_load_by_others_alone_does_not_explain_slower_ops() -> None:
    """Beside an idle processor it takes none from the program; that the program waited is what the run queue tells."""
    slowdown = replace(_compared("cpu_contention").leading.slowdown, classes=frozenset({"compute"}), waits=False)
    assert slowdown.agreement(role_of_metric(OTHERS_CPU)) < slowdown.agreement(role_of_metric(RUN_QUEUE)) == 1


@pytest.mark.parametrize(("limited", "agreement"), [(0.5, 0.3), (0.0, 1.0), (None, 1.0)])
def test_waiting_counts_where_no_quota_explains_it(limited: float | None, agreement: float) -> None:
    series = {RUN_QUEUE: (_around(0.001), _around(0.5))}
    if limited is not None:
        series["cpu_limited_share"] = (_around(0.0), _around(limited))
    assert _ranked(series)[RUN_QUEUE].agreement == agreement


def _around(value: float) -> Values:
    return value * np.linspace(0.9, 1.1, 50)


def _ranked(series: dict[str, tuple[Values, Values]]) -> dict[str, Cause]:
    sides = ([Entity(name, "host", None, both[i]) for name, both in series.items()] for i in range(2))
    causes = rank_causes(*sides, agreement=lambda _: 1.0, capacities=Capacities())
    return {cause.metric: cause for cause in causes}
