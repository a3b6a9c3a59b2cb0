"""Operators on the first arm's inputs: what counts as right, and how a wrong one is found with its path."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

torch: Any = pytest.importorskip("torch")

from tests.engines.toy_engine import ToyEngine, arm  # noqa: E402

from inferometer.engines import arms  # noqa: E402
from inferometer.engines.ab import Plan, measure_ab  # noqa: E402
from inferometer.engines.ab.checking import OperatorCheck, twin  # noqa: E402
from inferometer.engines.arms import TORCH_ONLY, Arm  # noqa: E402

PLAN = Plan(prompt_tokens=5, new_tokens=3, batch=2, repetitions=1)
FORWARD = "completion.generate.decode.forward"
EMPTY = (None, None, None)


def check(other: Arm, operator: str, *args: Any, base: Arm = TORCH_ONLY, **settings: Any) -> dict[str, Any]:
    """The one row of `ERRORS` after one call."""
    made = OperatorCheck(base, other)
    made(operator, args, settings)
    (row,) = made.errors.frame().to_dicts()
    return row


def answering(operator: str, change: Callable[[Any], Any]) -> Arm:
    """An arm whose answer is what `change` makes of the right one."""
    return arm("other", [operator], lambda call, *args, **settings: change(call(*args, **settings)))


def test_a_wrong_kernel_is_found_at_its_path_and_the_run_goes_on_with_the_first_arms_answers() -> None:
    wrong = answering("silu_mul", lambda right: right * 1.01)
    found = measure_ab(ToyEngine(), [TORCH_ONLY, wrong], PLAN, record=False)
    bad = found.errors.drop_nulls("failure")
    assert bad["path"].to_list() == [
        f"completion.generate.{phase}.forward.layers.{n}.mlp.silu_mul"
        for phase in ("prefill", "decode")
        for n in (0, 1)
    ]
    assert bad["normalised_error"].to_list() == pytest.approx([0.01] * 4, rel=1e-4)
    assert bad["failure"][0] == "error 0.01, 1e-05 is allowed"
    assert bad["call"].to_list() == [1] * 4
    assert [least <= calls for least, calls in zip([1, 1, 2, 2], bad["calls"], strict=True)] == [True] * 4
    assert set(found.errors["arm"]) == {"other"}
    rest = found.errors.filter(~found.errors["path"].is_in(bad["path"].implode()))
    assert rest["max_error"].to_list() == [0.0] * rest.height  # lm_head had the right inputs
    ((_, _, _, _, mean_kl, max_kl, max_logit_error),) = found.agreement.rows()
    assert 0 < mean_kl <= max_kl
    assert max_logit_error > 0


def test_operators_that_only_the_other_arm_has_are_checked_too() -> None:
    class Choosing(ToyEngine):
        """Calls another operator where the arm in use has a backend for it."""

        def forward(self, cache: Any, tokens_BT: Any) -> Any:
            logits_BV = super().forward(cache, tokens_BT)
            if arms._in_use.get().backend_of("softmax") != arms.BASE:
                arms.call("softmax", logits_BV)
            return logits_BV

    found = measure_ab(Choosing(), [TORCH_ONLY, answering("softmax", lambda right: right * 2)], PLAN, record=False)
    assert found.errors.drop_nulls("failure")["path"].to_list() == [
        f"completion.generate.{phase}.softmax" for phase in ("prefill", "decode")
    ]


@pytest.mark.parametrize(
    ("dtype", "factor", "is_right"),
    [
        *(("float32", 1 + 5e-6, True), ("float32", 1 + 5e-5, False)),
        *(("float16", 1 + 1e-3, True), ("float16", 1 + 5e-3, False)),
        *(("bfloat16", 1 + 4e-3, True), ("bfloat16", 1 + 4e-2, False)),
    ],
)
def test_floats_may_differ_by_their_dtypes_tolerance(dtype: str, factor: float, *, is_right: bool) -> None:
    kind = getattr(torch, dtype)
    x, y = torch.ones(4, 64, dtype=kind), torch.ones(4, 64, dtype=kind)
    other = answering("silu_mul", lambda right: (right.float() * factor).to(kind))
    assert (check(other, "silu_mul", x, y)["failure"] is None) == is_right


def test_an_answer_in_float32_to_coarser_inputs_is_held_to_these() -> None:
    logits = torch.randn(2, 9)
    other = answering("softmax", lambda right: right * (1 + 1e-3))
    assert check(other, "softmax", logits.bfloat16())["failure"] is None
    assert check(other, "softmax", logits)["failure"] is not None


def test_what_the_first_arm_itself_is_off_by_is_allowed_three_times() -> None:
    x, weight = torch.randn(4, 8), torch.randn(6, 8)
    rough = arm("rough", ["linear"], lambda call, x, w, b: call(x, w, b) * (1 + 1e-3))
    off = {}
    for factor in (1 - 1e-3, 1 + 3e-3, 1 + 9e-3):
        other = answering("linear", lambda right, factor=factor: right * factor)  # type: ignore[misc]
        off[factor] = check(other, "linear", x, weight, None, base=rough)
    assert [row["failure"] is None for row in off.values()] == [True, True, False]
    assert off[1 + 9e-3]["tolerance"] == pytest.approx(3e-3, rel=1e-2)
    exact = answering("linear", lambda right: right * (1 + 3e-3))
    assert check(exact, "linear", x, weight, None)["failure"] is not None


def test_an_input_that_was_changed_is_noticed_with_its_number() -> None:
    def damaging(call: Callable[..., Any], gate: Any, up: Any) -> Any:
        right = call(gate, up)
        up.add_(1)
        return right

    gate, up = torch.ones(3, 4), torch.ones(3, 4)
    row = check(arm("other", ["silu_mul"], damaging), "silu_mul", gate, up)
    assert (row["failure"], row["max_error"]) == ("changes its inputs: argument 2", 0.0)
    assert bool((up == 1).all())  # the model's own is untouched
    found = measure_ab(ToyEngine(), [arm("first", ["silu_mul"], damaging), TORCH_ONLY], PLAN, record=False)
    (note,) = {note.partition(":")[0] for note in found.notes if "changes" in note}
    assert note == "first changes its inputs"
    assert found.errors.filter(pl.col("arm") == "torch")["failure"].drop_nulls().is_empty()


def test_an_operator_that_raises_in_the_check_fails_there_and_the_others_are_checked() -> None:
    def stopping(call: Callable[..., Any], *args: Any) -> Any:
        raise ValueError("head size 7\nand more")

    row = check(arm("other", ["silu_mul"], stopping), "silu_mul", torch.ones(2), torch.ones(2))
    assert (row["failure"], row["calls"]) == ("raised ValueError: head size 7", 1)
    assert (row["max_error"], row["normalised_error"], row["tolerance"]) == EMPTY


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        (lambda right: right[:1], "float32[1, 4] instead of float32[3, 4]"),
        (lambda right: right.double(), "float64[3, 4] instead of float32[3, 4]"),
        (lambda right: (right, right), "2 tensors instead of 1"),
        (lambda right: right.index_fill(0, torch.tensor([1]), float("nan")), "NaN or infinite, where"),
        (torch.zeros_like, "error 1, 1e-05 is allowed"),
    ],
)
def test_answers_of_another_kind_are_wrong(change: Callable[[Any], Any], failure: str) -> None:
    row = check(answering("silu_mul", change), "silu_mul", torch.ones(3, 4), torch.ones(3, 4))
    assert row["failure"].startswith(failure)


def test_nan_where_the_first_arm_has_nan_is_no_difference() -> None:
    x = torch.tensor([[1.0, float("nan"), float("inf")]])
    row = check(answering("silu_mul", torch.clone), "silu_mul", x, torch.ones(1, 3))
    assert (row["failure"], row["max_error"]) == (None, 0.0)


def test_tokens_must_be_equal_also_where_logits_are() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0], [3.0, 1.0, 0.0]])
    row = check(answering("argmax", lambda right: right + torch.tensor([1, 0])), "argmax", logits)
    assert (row["failure"], row["max_error"], row["tolerance"]) == ("1 of 2 values differ", 1.0, None)


@pytest.mark.parametrize(
    ("experts", "failure"),
    [([[2, 1]], None), ([[1, 1]], "1 of 2 values differ"), ([[2, 0]], "1 of 2 values differ"), ([[2, 9]], "2 of 2")],
)
def test_of_equal_logits_any_expert_is_right(experts: list[list[int]], failure: str | None) -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0]])
    other = arm("other", ["moe_route"], lambda call, *args, **s: (call(*args, **s)[0], torch.tensor(experts)))
    first = arm("first", ["moe_route"], lambda call, *args, **s: (call(*args, **s)[0], torch.tensor([[1, 2]])))
    row = check(other, "moe_route", logits, k=2, renormalize=True, base=first)
    assert row["failure"] == failure or (failure is not None and row["failure"].startswith(failure))


def test_twins_have_values_and_strides_of_their_own() -> None:
    base = torch.arange(48.0).reshape(4, 12)
    for odd in (base[:, 3:7], base.t(), base[:1].expand(5, 12), base[::2, ::3], torch.ones(0, 3), torch.tensor(2)):
        made = twin((odd, None, 3))[0]
        assert (made.shape, made.stride(), made.dtype) == (odd.shape, odd.stride(), odd.dtype)
        assert torch.equal(made, odd)
        assert odd.numel() == 0 or made.data_ptr() != odd.data_ptr()
    (inner,) = twin({"a": [base]})["a"]
    assert inner is not base
