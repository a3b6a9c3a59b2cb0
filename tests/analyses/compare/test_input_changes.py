"""Other weights of matrix products are another model: dtype and sizes, where ops tell them."""

from typing import Any

import pytest
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.input_changes import InputChange, find_input_change

WIDER = "of other sizes (768 and 3,072 in place of 512 and 2,048)."


def run_of(*products: tuple[str, list[list[int]], str, int]) -> Trace:
    """Ops with the dims of their inputs, one dtype and how often."""
    rows: list[dict[str, Any]] = []
    for op, dims, dtype, count in products:
        dtypes = "[" + ", ".join(f'"{dtype}"' for _ in dims) + "]"
        rows += [{"op": op, "input_dims": str(dims), "input_dtypes": dtypes, "start_ns": 0, "dur_ns": 1}] * count
    return trace_of(ops=rows)


def model(hidden: int, dtype: str = "float", tokens: int = 64) -> Trace:
    return run_of(
        ("aten::linear", [[tokens, hidden], [hidden, hidden]], dtype, 8),
        ("aten::linear", [[tokens, hidden], [4 * hidden, hidden]], dtype, 4),
        ("aten::add", [[tokens, hidden], [tokens, hidden]], dtype, 9),
    )


@pytest.mark.parametrize(
    ("base", "candidate", "words"),
    [
        (
            model(512),
            model(512, "c10::BFloat16"),
            "Weights of most matrix products are in bfloat16 in place of float32.",
        ),
        (
            model(512),
            model(768),
            f"Weights of most matrix products are {WIDER}",
        ),
        (
            model(512),
            model(768, "c10::Half"),
            f"Weights of most matrix products are in float16 in place of float32 and {WIDER}",
        ),
    ],
)
def test_what_differs_is_named(base: Trace, candidate: Trace, words: str) -> None:
    change = find_input_change(base, candidate)
    assert change is not None
    assert change.describe() == words


def test_the_same_weights_for_other_numbers_of_tokens_and_calls_are_no_change() -> None:
    assert find_input_change(model(512), model(512, tokens=7)) is None
    twice = run_of(("aten::mm", [[4, 8], [8, 2]], "float", 20))
    assert find_input_change(run_of(("aten::mm", [[4, 8], [8, 2]], "float", 10)), twice) is None


def test_a_few_other_products_are_no_change() -> None:
    some = [("aten::mm", [[4, 8], [8, 2]], "float", 10), ("aten::mm", [[4, 8], [8, 9]], "float", 9)]
    assert find_input_change(run_of(some[0]), run_of(*some)) is None


@pytest.mark.parametrize("trace", [trace_of(), run_of(("aten::add", [[4, 8]], "float", 9))])
def test_runs_that_do_not_tell_their_products_say_nothing(trace: Trace) -> None:
    assert find_input_change(trace, model(512)) is None
    assert find_input_change(model(512), trace) is None


def test_many_other_sizes_are_not_listed() -> None:
    one, two = (run_of(*[("aten::mm", [[8, 8], [8, n + k]], "float", 1) for k in range(9)]) for n in (100, 200))
    assert find_input_change(one, two) == InputChange(None, (tuple(range(100, 109)), tuple(range(200, 209))))
    assert find_input_change(one, two).describe() == "Weights of most matrix products are of other sizes."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("dims", "dtypes"),
    [
        ("", ""),
        ("[[8, 8]]", '["float"]'),
        ("[8, 8]", "[1, 2]"),
        ("[[8], [[8]]]", '["float", "float"]'),
        ("[" * 9999, "[]"),
    ],
)
def test_inputs_that_are_no_lists_of_sizes_are_passed_over(dims: str, dtypes: str) -> None:
    rows = [{"op": "aten::linear", "input_dims": dims, "input_dtypes": dtypes, "start_ns": 0, "dur_ns": 1}]
    assert find_input_change(model(512), trace_of(ops=rows)) is None
