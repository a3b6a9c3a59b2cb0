"""The benchmark of `ab` counts what it says: a run in which no faulty call was is no run in which one was missed."""

import pytest

pytest.importorskip("torch")

from benchmarks.ab_truth import FUSED, KINDS, OPERATOR, Faulty, make_arm, measure_differences, measure_faults
from tests.engines.toy_engine import ToyEngine

from inferometer.engines.ab import Plan
from inferometer.engines.ab.progress import Progress
from inferometer.operators.decoder.contracts import CONTRACTS

PLAN = Plan(prompt_tokens=5, new_tokens=3, batch=2, repetitions=3)


def test_runs_count_in_which_a_faulty_call_was() -> None:
    rows = list(measure_faults(ToyEngine(), PLAN, 2, kinds=["NaN"], every=["7", "1000000", "never"]))
    counts = [{name: row[name] for name in ("every", "runs", "occurred", "wrong", "named")} for row in rows]
    assert counts == [
        {"every": 7, "runs": 2, "occurred": 2, "wrong": 2, "named": 2},
        {"every": 1_000_000, "runs": 2, "occurred": 0, "wrong": 0, "named": 0},
        {"every": None, "runs": 2, "occurred": 0, "wrong": 0, "named": 0},
    ]
    assert rows[0]["check_fails"] == 2
    assert all(row["load"] >= 0 for row in rows)


def test_a_faulty_call_in_the_warm_up_alone_is_none_that_anybody_could_see() -> None:
    fault = Faulty(2, KINDS["1.5"], calls=0)
    answers = []
    for part in ("check of the operators", "warm-up", "repetition"):
        fault.hear(Progress("faulty", part))
        answers += [fault(lambda right: right, 1.0) for _ in range(2)]
    assert answers == [1.0, 1.5] * 3
    assert fault.occurred == 2


def test_copies_do_the_same_work_as_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[str]] = []

    def noting(name: str, operators: list[str], change: object) -> object:
        made.append(list(operators))
        return make_arm(name, operators, change)  # type: ignore[arg-type]

    monkeypatch.setattr("benchmarks.ab_truth.make_arm", noting)
    (row,) = measure_differences(ToyEngine(), PLAN, 1, copies=True, delay_us=100.0)
    assert made == [[name for name in CONTRACTS if name != FUSED]]
    assert OPERATOR in made[0]
    assert row["found"] <= row["found_without_control"] <= row["planted"] == 2
    assert set(row["false"]) <= set(row["false_without_control"])
    (row,) = measure_differences(ToyEngine(), PLAN, 1, copies=False, delay_us=100.0)
    assert made[1] == [OPERATOR]
    assert row["false"] == []
