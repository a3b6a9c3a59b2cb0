"""What changes inputs: rows of zeros, numbers near the end of a type's range, one number spoiled, nothing at all."""

from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from inferometer.operators import require_operator
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, few_rows

pytest.importorskip("torch", reason="torch isn't installed")

import torch

from inferometer.bench.comparison import compare_outputs
from inferometer.operators.hard_cases import (
    both,
    enlarged,
    filled,
    nan_may_fill_rows,
    no_tokens,
    scaled,
    shrunk,
    spoiled,
    zeroed,
)

if TYPE_CHECKING:
    from inferometer.operators.hard_cases import Change


def of(change: "Change", x: torch.Tensor, **args: Any) -> torch.Tensor:
    return change({"x": x}, args)["x"]


def test_rows_of_zeros_are_the_first_and_every_other() -> None:
    x = torch.ones(5, 3)
    assert of(zeroed("x"), x).sum(1).tolist() == [0, 3, 0, 3, 0]
    assert x.sum() == 15
    fp8 = of(zeroed("x"), torch.ones(3, 2).to(torch.float8_e4m3fn))
    assert fp8.float().sum(1).tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(torch.float16, 32752, 65504), (torch.bfloat16, 2.0**49, 2.0**50), (torch.float32, 2.0**49, 2.0**50)],
)
def test_large_numbers_come_to_the_end_of_the_range_and_keep_their_bits(
    dtype: torch.dtype, least: float, most: float
) -> None:
    x = torch.tensor([0.75, -3.0, 0.0, inf]).to(dtype)
    found = of(enlarged("x", most=2.0**50), x)
    assert least <= found[1].abs() <= most
    assert found[0] * -4 == found[1]
    assert found[2:].tolist() == [0.0, inf]
    assert of(enlarged("x"), torch.zeros(2, dtype=dtype)).tolist() == [0.0, 0.0]


def test_tiny_numbers_have_no_square() -> None:
    x = torch.ones(2)
    assert (of(shrunk("x"), x) > 0).all()
    assert (of(shrunk("x"), x).square() == 0).all()
    assert of(shrunk("x"), x.half())[0] == 2.0**-8


def test_one_number_is_spoiled_in_the_middle_or_where_it_is_said() -> None:
    x = torch.zeros(3, 4)
    assert of(spoiled(nan, "x"), x).isnan().nonzero().tolist() == [[1, 2]]
    assert of(spoiled(nan, "x", (0, -1)), x).isnan().nonzero().tolist() == [[0, 3]]
    assert of(spoiled(nan, "x"), x.to(torch.float8_e4m3fn)).float().isnan().sum() == 1
    assert of(spoiled(nan, "x"), x[:0]).shape == (0, 4)


def test_changes_follow_one_another_and_names_that_are_not_there_are_passed_over() -> None:
    change = both(filled(2.0, "x", "bias"), scaled(3.0, "x"))
    assert of(change, torch.zeros(2)).tolist() == [6.0, 6.0]


def test_few_cuts_counts_of_tokens_alone() -> None:
    few = at_most(token_count=8, seq_lens=48)
    assert few({"token_count": 3, "hidden_size": 4096}) == {"token_count": 3, "hidden_size": 4096}
    assert few({"seq_lens": [100, 7, 60, 9]}) == {"seq_lens": [48, 7, 48]}
    assert few({"seq_lens": None}) == {"seq_lens": None}
    assert few_rows({"shape": [100, 3, 64]}) == {"shape": [8, 3, 64]}


def test_no_tokens_are_asked_for_by_arguments_or_by_names() -> None:
    assert no_tokens(token_count=0).args == {"token_count": 0}
    assert of(no_tokens("x").change, torch.ones(3, 2)).shape == (0, 2)
    assert no_tokens("x").may_raise


def test_a_nan_may_fill_its_row_and_no_other() -> None:
    wanted = {"out": torch.tensor([[nan, 0.0], [1.0, 1.0]])}
    filled_row = {"out": torch.tensor([[nan, nan], [1.0, 1.0]])}
    operator = require_operator("l2_norm")

    def reasons(found: dict[str, torch.Tensor]) -> list[str | None]:
        checks = compare_outputs(operator, found["out"], wanted, None, {"x": wanted["out"]}, nan_may_fill_rows)
        return [check.reason for check in checks]

    assert reasons(wanted) == reasons(filled_row) == [None]
    assert reasons({"out": torch.tensor([[0.0, nan], [1.0, 1.0]])}) != [None]
    assert reasons({"out": torch.tensor([[nan, nan], [nan, 1.0]])}) != [None]


def ties(logits: list[list[float]], ids: list[list[int]], **settings: int) -> list[str | None]:
    """What is said of these ids, with the weights that they have."""
    operator = require_operator("moe_topk_gating_softmax")
    tensors = {"gating_output": torch.tensor(logits)}
    args = {"top_k": len(ids[0]), **settings}
    wanted = operator.answer(tensors, args)
    found_ids = torch.tensor(ids, dtype=torch.int32)
    weights = torch.softmax(tensors["gating_output"], -1).gather(1, found_ids.long())
    return [check.reason for check in compare_outputs(operator, [weights, found_ids], wanted, args, tensors)]


@pytest.mark.parametrize(
    ("ids", "is_right"),
    [([[0, 1]], True), ([[1, 0]], True), ([[0, 2]], True), ([[2, 1]], True), ([[0, 0]], False), ([[0, 3]], False)],
)
def test_of_equal_logits_any_are_right_each_once(ids: list[list[int]], is_right: bool) -> None:
    assert (ties([[1.0, 1.0, 1.0, 0.0]], ids) == [None, None]) is is_right


@pytest.mark.parametrize(
    ("ids", "is_right"), [([[0, 1]], True), ([[2, 3]], True), ([[4, 5]], False), ([[0, 3]], False)]
)
def test_of_groups_that_tie_either_is_right_and_its_experts_then(ids: list[list[int]], is_right: bool) -> None:
    logits = [[2.0, 1.0, 2.0, 0.5, 0.0, 0.0]]
    assert (ties(logits, ids, num_expert_groups=3, topk_group=1) == [None, None]) is is_right


def test_unequal_logits_leave_nothing_open() -> None:
    assert ties([[3.0, 2.0, 1.0]], [[0, 1]]) == [None, None]
    assert ties([[3.0, 2.0, 1.0]], [[1, 0]]) != [None, None]


def test_an_operator_without_any_has_none() -> None:
    plain = replace(require_operator("rms_norm"), hard=HardCases())
    assert plain.hard.cases == ()
    assert plain.hard.few({"token_count": 9}) == {"token_count": 9}
    case = HardCase("zeros", "as they are", "the same")
    drawn, args = plain.hard.draw(case, plain.inputs, {"token_count": 2, "hidden_size": 4}, seed=1)
    assert drawn["x"].shape == (2, 4)
    assert args == {"token_count": 2, "hidden_size": 4}
