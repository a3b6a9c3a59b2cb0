"""What counts as a right answer: kind, shape, layout, errors by norm and row, neighbours of fp8 values."""

import re
from typing import Any

import pytest

from inferometer.bench.comparison import FLIPPED, compare_outputs
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")


def reason(name: str, change: Any, place: int = -1) -> str | None:
    """Why the changed answer of an operator is wrong."""
    operator = operators()[name]
    args = operator.tiny[place]
    wanted = operator.answer(operator.inputs(**args, seed=3), args)
    outputs = tuple(tensor.clone() for tensor in wanted.values())
    found = change(*outputs)
    return next((check.reason for check in compare_outputs(operator, found, wanted) if not check.is_right), None)


@pytest.mark.parametrize("name", list(operators()))
def test_the_answer_itself_is_right_and_zeros_are_not(name: str) -> None:
    assert reason(name, lambda *outputs: outputs if len(outputs) > 1 else outputs[0]) is None
    zeros = reason(name, lambda *outputs: tuple(torch.zeros_like(each) for each in outputs))
    assert zeros is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: out.float(), "want dtype bfloat16, found float32"),
        (lambda out: out[:-1], r"want shape \(5, 1029\), found \(4, 1029\)"),
        (lambda out: out.T.contiguous().T, "want a dense tensor, found strides"),
        (lambda out: (out, out), r"want 1 outputs \(out\), found 2"),
        (torch.nn.Parameter, "want a plain torch.Tensor, found Parameter"),
        (lambda out: None, "want a plain torch.Tensor, found NoneType"),
        (lambda out: out.index_fill(0, torch.tensor([2]), float("nan")), "where nan is"),
        (lambda out: out.index_fill(0, torch.tensor([2]), 0.0), "error is"),
        (lambda out: out * 1.02, "the error is 0.02"),
    ],
)
def test_what_is_wrong_is_said(change: Any, words: str) -> None:
    found = reason("rms_norm", change)
    assert found is not None
    assert re.search(words, found), found


def test_one_wrong_row_among_thousands_is_seen() -> None:
    operator = operators()["rms_norm"]
    wanted = {"out": torch.randn(20_000, 64).to(torch.bfloat16)}
    found = wanted["out"].clone()
    found[777] = 0
    (check,) = compare_outputs(operator, found, wanted)
    assert check.error is not None
    assert check.error < 1e-2
    assert check.reason == "row 777 is 1 off, want at most 0.08"


def test_one_wrong_number_in_a_long_row_is_seen() -> None:
    operator = operators()["rms_norm"]
    wanted = {"out": torch.randn(50, 4096).to(torch.bfloat16)}
    found = wanted["out"].clone()
    wanted["out"][3, 77] = found[3, 77] = 1.5
    found[3, 77] = 0
    (check,) = compare_outputs(operator, found, wanted)
    assert check.reason == "number 77 of row 3 is 1 off, want at most 0.16"


def test_a_row_of_nearly_nothing_is_held_to_the_usual_row() -> None:
    operator = operators()["rms_norm"]
    wanted = torch.randn(50, 64)
    wanted[7] *= 1e-6
    found = wanted.clone()
    found[7] += 1e-6
    (check,) = compare_outputs(operator, found.to(torch.bfloat16), {"out": wanted.to(torch.bfloat16)})
    assert check.is_right


@pytest.mark.parametrize(
    ("share", "steps", "is_right"), [(FLIPPED / 2, 1, True), (FLIPPED * 3, 1, False), (1e-3, 2, False)]
)
def test_few_fp8_values_may_be_their_neighbours(share: float, steps: int, is_right: bool) -> None:
    operator = operators()["fp8_dynamic_per_token_quant"]
    values = torch.randn(100, 100).mul(30).to(torch.float8_e4m3fn)
    bits = values.view(torch.uint8).clone()
    count = int(share * bits.numel())
    flat = bits.view(-1)
    flat[:count] += torch.where((flat[:count] & 127) < 100, steps, -steps).to(torch.uint8)
    wanted = {"q": values, "scale": torch.ones(100)}
    found = (bits.view(torch.float8_e4m3fn), torch.ones(100))
    assert all(check.is_right for check in compare_outputs(operator, found, wanted)) == is_right


def test_integers_are_exact() -> None:
    found = reason("moe_count_and_sort", lambda ids, counts, sums: (ids, counts, sums + 1))
    assert found is not None
    assert found.endswith("values differ, and must be exact")
