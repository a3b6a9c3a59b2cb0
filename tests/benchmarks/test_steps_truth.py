"""Exact, inexact and missing steps are distinguished, against every launch of the synthetic traces."""

from __future__ import annotations

import json

import polars as pl
import pytest
from benchmarks.steps_truth import CASES, Case, Score, changed, judge, main, run_case, table
from tests.traces import trace_of
from tools.kineto_maker import Chain, LaunchTruth, LaunchTruths, Options, StepTruth, Truth

from inferometer.analyses.steps.found.finding import STEPS, FoundSteps, find_steps

SMALL = Options(steps=4, layers=1, lean=True, stack=False, shapes=False)


def known(steps: list[tuple[str, list[int]]]) -> Truth:
    """A truth of steps with a phase and the starts of their launches, each 5 ns long."""
    launches = [
        LaunchTruth("kernel", "k", start, 5, 7, 1, number, 0, Chain(), None, None, None)
        for number, (_, starts) in enumerate(steps)
        for start in starts
    ]
    beside = LaunchTruth("kernel", "other", 1, 5, 9, 1, 0, 1, Chain(), None, None, None)
    truth = Truth("none", steps=[StepTruth(k, phase, None, 0, 1, 1, 1, 0) for k, (phase, _) in enumerate(steps)])  # type: ignore[arg-type]
    truth.by_launch = LaunchTruths([*launches, beside])
    return truth


def found(*steps: tuple[int, int, str | None]) -> FoundSteps:
    rows = [{"step": k, "start_ns": a, "dur_ns": b - a, "phase": phase} for k, (a, b, phase) in enumerate(steps)]
    lacking = {name: [None] * len(rows) for name in STEPS if name not in ("step", "start_ns", "dur_ns", "phase")}
    frame = pl.DataFrame(rows).with_columns(pl.Series(name, values) for name, values in lacking.items())
    frame = frame.with_columns(pl.lit(value=False).alias("is_partial"), pl.lit(0.9).alias("confidence"))
    return FoundSteps(frame.select(pl.col(name).cast(STEPS[name]) for name in STEPS), pl.DataFrame(), "anchor", ())


def counts(score: Score) -> tuple[int, int, dict[str, int]]:
    return score.exact, score.extra, dict(score.verdicts)


def test_a_step_is_exact_with_all_its_launches_and_no_other() -> None:
    truth = known([("prefill", [0, 10]), ("decode", [20, 30]), ("decode", [40, 50])])
    launches = pl.DataFrame({"start_ns": [0, 10, 20, 30, 40, 50, 1], "step": [0, 0, 1, 1, 2, 2, None]})
    exact = judge("case", truth, launches, found((0, 15, "prefill"), (20, 35, "decode"), (40, 55, None)))
    assert counts(exact) == (3, 0, {"right": 2, "missing": 1})
    early = judge(
        "case", truth, launches, found((0, 25, "prefill"), (30, 35, "prefill"), (40, 55, "decode"), (60, 70, None))
    )
    assert counts(early) == (1, 2, {"right": 2, "wrong": 1})
    assert early.misses[0].startswith("step 0 (prefill): {0: 2} of found sizes [3]")
    none = judge("case", truth, launches, find_steps(trace_of([{}])))
    assert counts(none) == (0, 0, {"missing": 3})


def test_traces_are_made_harder_launch_by_launch() -> None:
    names = ["indexSelectSmallIndex", "gemm", "Memcpy DtoH", "gemm"]
    kinds = ["kernel", "kernel", "memcpy", "kernel"]
    times = {"start_ns": [0, 50, 5_000, 70_000], "dur_ns": [100, 10, 10, 10]}
    launches = pl.DataFrame({"kernel": names, "kind": kinds, **times, "step": [0, 0, 1, 1]})
    assert changed(launches, "no copies")["start_ns"].to_list() == [0, 50, 70_000]
    assert changed(launches, "squeezed")["start_ns"].to_list() == [0, 50, 1_100, 2_110]
    assert changed(launches, "no sampler")["kernel"].to_list() == ["j_unit", *names[1:]]
    assert changed(launches, "no names").select("kernel", "kind").rows() == [
        *(("j_unit", "kernel"), ("z_unit", "kernel")),
        *(("x_unit", "kernel"), ("z_unit", "kernel")),
    ]
    many = pl.concat([launches.with_columns(pl.col("start_ns") + 10**6 * k) for k in range(25)])
    assert changed(many, "cut")["start_ns"].to_list() == many["start_ns"].to_list()[3:96]


def test_the_table_has_a_row_a_case() -> None:
    score = Score("case", 4, exact=3, extra=1, confidence=0.966, anchor="copies")
    score.verdicts.update(["right", "right", "wrong", "missing"])
    assert table([score])[2] == "| case | 4 | 75.0 % | 1 | 50.0 % (1 wrong, 1 missing) | 0.97 | copies |"


@pytest.mark.parametrize("marks", ["sglang", "vllm", "profiler"])
def test_marks_are_exact(marks: str) -> None:
    score = run_case(Case("marked", Options(steps=4, layers=1, lean=True, marks=marks)))  # type: ignore[arg-type]
    assert (score.exact, score.extra) == (4, 0)
    assert score.verdicts == ({"missing": 4} if marks == "profiler" else {"right": 4})


def test_what_is_said_is_json_on_stdout_and_a_table_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "SGLang", "--layers", "1", "--misses"]) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["case"], row["exact"], row["misses"]) == ("eager, SGLang's marks", row["steps"], [])
    assert "| eager, SGLang's marks |" in said.err
    assert len({case.name for case in CASES}) == len(CASES)
