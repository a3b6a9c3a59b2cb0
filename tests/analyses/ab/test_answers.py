"""Answers of the timed passes: what isn't a number, not the same each time, or not as large as the base's."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
import pytest
from tests.analyses.ab.runs import Call, measured, op

from inferometer.analyses.ab.answers import AnswerFault, find_faults
from inferometer.analyses.ab.comparison import compare_paths
from inferometer.analyses.ab.measurement import AGREEMENT, LOGITS
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import facts_of, remarks_of

NAN, INFINITE = float("nan"), float("inf")
Sums = Sequence[tuple[float | None, float | None]]
RIGHT: Sums = ((1.0, 8.0), (3.0, None), (2.0, 9.0), (5.0, 5.0))  # of norm, moe_route, silu_mul, silu_mul
SILU = "root.mlp.silu_mul"


def run_of(answers: Sequence[Sums], *, base: Sequence[Sums] | None = None, **others: Any) -> Any:
    """A repetition for each of `answers`: four calls of operators, whose sums and sums of sizes are given."""
    silu = [op("silu_mul", 50), op("silu_mul", 50)]
    root = Call("root", 1, [op("norm", 10), op("moe_route", 10), Call("mlp", 1, silu)])
    made = measured({arm: [root] * len(answers) for arm in ("torch", "triton")}, **others)
    values = iter([pair for each in (*(base or [RIGHT] * len(answers)), *answers) for pair in each])
    sums = [(None, None) if operator is None else next(values) for operator in made.calls["operator"]]
    given = pl.DataFrame(sums, {"sum": pl.Float64, "abs_sum": pl.Float64}, orient="row")
    return pl.concat([made.calls.drop("sum", "abs_sum"), given], how="horizontal"), made


def faults_of(answers: Sequence[Sums], *, base: Sequence[Sums] | None = None, **facts: Any) -> dict[str, AnswerFault]:
    calls, made = run_of(answers, base=base)
    return find_faults(replace(made, calls=calls, facts={"dtype": "float32", **facts}))


def with_(place: int, pair: tuple[float | None, float | None]) -> Sums:
    return [*RIGHT[:place], pair, *RIGHT[place + 1 :]]


def test_right_answers_have_no_fault() -> None:
    assert faults_of([RIGHT] * 4) == {}
    nearly = [[(one * (1 + 1e-6 * i), size) for one, size in RIGHT] for i in range(4)]  # type: ignore[operator]
    assert faults_of([[*each[:1], RIGHT[1], *each[2:]] for each in nearly]) == {}


@pytest.mark.parametrize(
    ("value", "words"), [(NAN, "NaN in its answer"), (INFINITE, "an infinite value in its answer")]
)
def test_the_first_call_that_is_not_finite_is_named_with_how_many_passes_have_one(value: float, words: str) -> None:
    spoiled = [*RIGHT[:3], (value, value)]
    fault = faults_of([RIGHT, [*RIGHT[:2], (value, value), (NAN, NAN)], RIGHT, spoiled])["triton"]
    assert (fault.kind, fault.path, fault.call, fault.completions) == ("not finite", SILU, 1, (2, 4))
    assert fault.failure == f"{words}, first in repetition 2 at {SILU}, call 1; in 2 of 4 passes"


def test_an_infinity_that_the_base_has_is_meant_and_its_nan_is_its_own_fault() -> None:
    infinite, nan = with_(2, (INFINITE, INFINITE)), with_(2, (NAN, NAN))
    assert faults_of([infinite] * 3, base=[infinite] * 3) == {}
    assert faults_of([nan] * 3, base=[infinite] * 3)["triton"].kind == "not finite"
    assert list(faults_of([nan] * 3, base=[nan] * 3)) == ["torch"]


def test_an_answer_unlike_those_of_other_repetitions_is_found_and_what_follows_is_not() -> None:
    spoiled = [*RIGHT[:2], (2.5, 9.5), (9.0, 9.0)]
    fault = faults_of([RIGHT, RIGHT, spoiled, RIGHT])["triton"]
    assert (fault.kind, fault.path, fault.call, fault.completions) == ("unsteady", SILU, 1, (1, 4))
    assert fault.failure.startswith("sums 0.056 of their size from the same call's in other repetitions, first in rep")


def test_two_repetitions_tell_nothing_of_each_other() -> None:
    slight = with_(2, (2.03, 9.03))  # more than steady answers differ by, less than unlike ones
    assert faults_of([RIGHT, slight]) == {}
    assert faults_of([RIGHT, slight, RIGHT])["triton"].kind == "unsteady"


def test_answers_that_are_always_as_large_again_are_unlike_the_bases() -> None:
    fault = faults_of([with_(2, (4.0, 18.0))] * 3)["triton"]
    assert (fault.kind, fault.path) == ("unlike", SILU)
    assert "torch's in the timed passes" in fault.failure
    assert faults_of([with_(2, (2.5, 9.5))] * 3, dtype="bfloat16") == {}


def test_answers_of_another_operator_at_the_same_path_are_not_held_against_the_bases() -> None:
    """As where an arm adds the residual within the norm."""
    calls, made = run_of([[(30.0, 80.0), *RIGHT[1:]]] * 4)
    assert find_faults(replace(made, calls=calls, facts={"dtype": "float32"}))["triton"].kind == "unlike"
    fused = (pl.col("arm") == "triton") & (pl.col("operator") == "norm")
    calls = calls.with_columns(pl.when(fused).then(pl.lit("add_norm")).otherwise("operator").alias("operator"))
    assert find_faults(replace(made, calls=calls, facts={"dtype": "float32"})) == {}


def test_after_other_experts_answers_may_differ_and_an_index_counts_where_all_before_it_was_exact() -> None:
    rounded, routed = (1.0 + 1e-7, 8.0), (4.0, None)
    tied = [rounded, routed, (7.0, 9.0), (7.0, 7.0)]
    assert faults_of([RIGHT, RIGHT, tied, RIGHT]) == {}
    fault = faults_of([RIGHT, RIGHT, [RIGHT[0], routed, *RIGHT[2:]], RIGHT])["triton"]
    assert (fault.path, fault.call) == ("root.moe_route", 1)
    assert "other integers" in fault.failure


def test_logits_are_told_where_no_operator_is_seen_to_be_wrong() -> None:
    rows = [(*place, 1.0, 4.0) for place in product(("torch", "triton"), range(3), (False, True), range(2))]
    calls, made = run_of([RIGHT] * 3)

    def of(sums: tuple[float, float]) -> AnswerFault:
        spoiled = [(*row[:4], *sums) if row[:4] == ("triton", 1, False, 1) else row for row in rows]
        logits = pl.DataFrame(spoiled, LOGITS, orient="row")
        return find_faults(replace(made, calls=calls, logits=logits))["triton"]

    fault = of((NAN, NAN))
    assert (fault.kind, fault.path, fault.call, fault.completions) == ("not finite", None, 2, (1, 6))
    assert fault.failure == ("NaN or infinite logits, first in repetition 2 without scopes at step 2; in 1 of 6 passes")
    assert of((3.0, 6.0)).kind == "unsteady"


def test_a_distribution_that_is_none_is_wrong_at_the_root_and_never_a_dash() -> None:
    calls, made = run_of([RIGHT] * 3)
    agreement = pl.DataFrame([("triton", 8, 4, 4, None, None, None)], AGREEMENT, orient="row")
    found = compare_paths(replace(made, calls=calls, agreement=agreement))
    assert not found.is_good
    assert dict(facts_of(found))["Verdict"] == "triton: WRONG at the root; no operator was seen to be wrong."
    assert "triton has NaN or infinite logits at 4 of 8 positions." in remarks_of(found)
    page = render_terminal(found, is_terminal=False)
    assert "no number" in page
    assert "WRONG" in page[page.index("Next tokens") : page.index("Call paths")]
    assert found.as_json()["faults"]["triton"]["kind"] == "not finite"
