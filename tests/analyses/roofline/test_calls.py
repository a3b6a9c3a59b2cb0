"""Which calls are equal, and which forward op a step of autograd is of."""

import json
from typing import Any

import pytest
from tests.traces import trace_of

from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.op_calls import NONE, OpCalls
from inferometer.analyses.roofline.table import Roofline, roofline

LOOKUP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
BACKWARD = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"
LONG = 8
Row = dict[str, Any]


def op(name: str, start: int, dur: int = 2, *, number: int | None = None, thread: int = 1, **arguments: Any) -> Row:
    texts = {name: json.dumps(value) for name, value in arguments.items()}
    place = {"process": 1, "thread": thread, "start_ns": start, "dur_ns": dur}
    return {"op": name, "sequence_number": number, **place, **texts}


def lookup(start: int, indices: int) -> Row:
    dims = [[], [], [], [], [], [], [2], [], [], [], [], [indices], [4]]
    return op(LOOKUP, start, input_dims=dims, input_dtypes=["float"] * 6 + ["int"] * 7)


FORWARD = [
    op("aten::to", 0, number=40),
    lookup(3, 5),
    op("aten::view", 6, number=41),
    lookup(9, 6),
    op("x", 12, number=44),
]


def forward_of(number: int | None, *ops: Row) -> int:
    calls = OpCalls(trace_of(ops=[op(BACKWARD, 50, number=number, thread=2), *ops]))
    return calls.forward_of(0, LOOKUP)


@pytest.mark.parametrize(("number", "place"), [(40, 2), (41, 4), (43, 4), (39, NONE), (44, NONE), (None, NONE)])
def test_the_forward_op_is_the_one_that_counted_past_the_steps_number(number: int | None, place: int) -> None:
    assert forward_of(number, *FORWARD) == place


def test_the_numbers_of_autograds_own_steps_dont_count_and_two_that_may_be_it_are_none() -> None:
    steps = [op("autograd::engine::evaluate_function: MmBackward0", 2, number=7), op("MmBackward0", 2, 1, number=7)]
    assert forward_of(40, *FORWARD, *steps) == 2
    assert forward_of(39, *FORWARD, *steps) == NONE

    assert forward_of(40, FORWARD[0], lookup(3, 5), lookup(5, 6), FORWARD[2]) == NONE


def test_without_an_op_before_or_after_none_is_known() -> None:
    assert forward_of(40, *FORWARD[1:2]) == NONE
    assert forward_of(40, *FORWARD[1:3]) == NONE
    assert forward_of(40, *FORWARD[:2]) == NONE


def found_of(*sizes: int) -> Roofline:
    """Steps with one gradient's size, each of which makes a tensor of another size first."""
    ops, calls, launches = [], [], []
    for number, size in enumerate(sizes, 1):
        start = 100 * number
        ops.append(op(BACKWARD, start, 90, input_dims=[[4, 96]], input_dtypes=["float"]))
        ops.append(op("aten::empty_like", start + 1, input_dims=[[size], []], input_dtypes=["long", ""]))
        place = {"process": 1, "correlation_id": number}
        calls.append({"api": "cudaLaunchKernel", "thread": 1, "start_ns": start + 9, "dur_ns": 1, **place})
        launches.append({"start_ns": start + 20, "dur_ns": 10, **place})
    trace = trace_of(launches, ops=ops, calls=calls)
    return roofline(attribute(trace, with_op_calls=True), trace)


def test_calls_with_equal_arguments_are_equal_only_if_what_their_model_sees_inside_is() -> None:
    rows = found_of(5, 6, 5).frame.sort("read_bytes").to_dicts()

    assert [(row["calls"], row["read_bytes"], row["total_ns"]) for row in rows] == [
        (2, 5 * LONG, 20),
        (1, 6 * LONG, 10),
    ]
    assert {row["number"] for row in rows} == {1}
