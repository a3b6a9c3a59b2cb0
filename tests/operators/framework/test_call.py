"""Recorded arguments: what is read of them, and what can't be."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled, read_call


def call_of(dims: object, types: object, strides: object = None, values: object = None) -> OpCall:
    texts = [None if each is None else json.dumps(each) for each in (dims, types, strides, values)]
    return read_call("aten::x", *texts)


def places(dims: tuple[int, ...], strides: tuple[int, ...]) -> int:
    found = {0} if 0 not in dims else set()
    for size, stride in zip(dims, strides, strict=True):
        found = {place + at * stride for place in found for at in range(size)}
    return len(found)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=3))
@examples(100)
def test_touched_elements_are_never_more_than_those_in_memory_where_strides_nest(shape: list[tuple[int, int]]) -> None:
    dims, strides = tuple(size for size, _ in shape), tuple(stride for _, stride in shape)

    touched = Tensor(dims, "float", strides).touched

    assert touched >= places(dims, strides)
    assert touched <= max(1, Tensor(dims, "float").numel) or 0 in dims


@pytest.mark.parametrize(
    ("dims", "strides", "touched"),
    [
        ((3, 4), (4, 1), 12),
        ((3, 4), (1, 3), 12),
        ((3, 4), (0, 1), 4),
        ((3, 4), (0, 0), 1),
        ((3, 4), (1, 1), 6),
        ((2, 3, 4), (100, 10, 1), 24),
        ((0, 4), (4, 1), 0),
        ((), (), 1),
        ((5,), (-1,), 5),
    ],
)
def test_elements_that_share_a_place_count_once(dims: tuple[int, ...], strides: tuple[int, ...], touched: int) -> None:
    assert Tensor(dims, "float", strides).touched == touched


def test_arguments_are_tensors_lists_values_or_nothing() -> None:
    call = call_of(
        [[2, 3], [[2, 3], [4]], [], [], []],
        ["c10::BFloat16", "TensorList", "Scalar", "", "ScalarList"],
        [[3, 1], [[3, 1], [1]], [], [], []],
        ["", "", "True", "", "[1, 2]"],
    )

    assert call.tensor(0) == Tensor((2, 3), "c10::BFloat16", (3, 1))
    assert [each.dims for each in call.tensors(1)] == [(2, 3), (4,)]
    assert (call.value(2), call.value(3), call.integers(4)) == (True, None, (1, 2))
    assert call.maybe_tensor(3) is None
    assert call.maybe_tensor(99) is None


@pytest.mark.parametrize(
    ("text", "value"), [("False", False), ("1.", 1.0), ("-1", -1), ("[True, False]", [True, False]), ("none", "none")]
)
def test_values_are_read_as_pytorch_writes_them(text: str, value: object) -> None:
    assert call_of([[]], ["Scalar"], None, [text]).value(0) == value


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((None, None, None, None), "its shapes weren't recorded"),
        (("[[1]]", None, None, None), "its shapes weren't recorded"),
        (("[[1]", '["float"]', None, None), "its shapes weren't recorded"),
        (("{}", "[]", None, None), "its shapes weren't recorded"),
        (("[[1], [2]]", '["float"]', None, None), "different numbers"),
        (('[["a"]]', '["float"]', None, None), "can't be read"),
        (("[[-1]]", '["float"]', None, None), "can't be read"),
        (("[[1.5]]", '["float"]', None, None), "can't be read"),
        (("[7]", '["float"]', None, None), "can't be read"),
    ],
)
def test_what_cannot_be_read_says_why(texts: tuple[str | None, ...], why: str) -> None:
    with pytest.raises(Unmodelled, match=why):
        read_call("aten::x", *texts)


def test_a_value_that_a_file_lacks_is_no_default() -> None:
    call = call_of([[2], []], ["float", "Scalar"])

    with pytest.raises(Unmodelled, match="values of its arguments aren't in the file"):
        call.integer(1)


def test_an_unknown_type_has_no_size() -> None:
    with pytest.raises(Unmodelled, match='"c10::Octet"'):
        _ = Tensor((3,), "c10::Octet").bytes


def test_lists_that_nest_too_deeply_are_no_traceback() -> None:
    deep = "[" * 100_000

    with pytest.raises(Unmodelled, match="weren't recorded"):
        read_call("aten::x", deep, deep, None, None)
    assert call_of([[]], ["Scalar"], [[]], [deep]).value(0) == deep
