"""Sizes of axes by the arguments of a call: what an operator's author may write, and what is reported of mistakes."""

from typing import Any

import pytest

from inferometer.operators import index_tensors, operators
from inferometer.operators.axes import Axes, Entry, Size, blocks, repeated, tiles


def axes(size: Size) -> Axes:
    """An operator with one axis."""
    return Axes(op_type="odd", sizes={"A": size}, varying=(), inputs={"x": "A"}, outputs={"out": "A"})


@pytest.mark.parametrize(
    ("size", "args", "found", "needs", "argument"),
    [
        ("rows", {"rows": 3}, 3, ("rows",), "rows"),
        (8, {}, 8, (), None),
        (None, {}, None, (), None),
        (Entry("shape", -1), {"shape": [2, 7]}, 7, ("shape",), None),
        (lambda width, group: width // group, {"group": 4, "width": 9, "rows": 3}, 2, ("width", "group"), None),
    ],
)
def test_a_size_is_an_argument_a_number_an_entry_or_a_function(
    size: Size, args: dict[str, Any], found: int | None, needs: tuple[str, ...], argument: str | None
) -> None:
    declared = axes(size)
    assert (declared.size_of("A", args), declared.needs("A"), declared.argument_of("A")) == (found, needs, argument)


@pytest.mark.parametrize("size", ["row", lambda row: row + 1, Entry("row", 0)])
def test_an_argument_that_there_is_not_is_named(size: Size) -> None:
    with pytest.raises(LookupError, match="no argument, list or axis is called row"):
        axes(size).size_of("A", {"rows": 3})


def test_tiles_and_blocks_are_rounded_up() -> None:
    assert [tiles(number, 4) for number in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert blocks([1, 4, 5], 4) == 4


def test_absurd_repetitions_are_refused_before_memory_is_taken() -> None:
    assert repeated(9, 2) == [9, 9]
    with pytest.raises(ValueError, match="expected at most 16,777,216 entries, found 16,777,217"):
        repeated(9, (1 << 24) + 1)


@pytest.mark.parametrize("name", list(operators()))
def test_sizes_that_are_no_arguments_have_a_meaning(name: str) -> None:
    operator = operators()[name]
    assert operator.axes is not None
    functions = {axis for axis, size in operator.axes.sizes.items() if callable(size) or size is None}
    assert functions - set(operator.dims) == set()


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (index_tensors.lengths([3, 4]), [3, 4]),
        (index_tensors.offsets([3, 4]), [0, 3, 7]),
        (index_tensors.pages([], 4, 0), []),
        (index_tensors.experts(2, 1, 1), [[0], [0]]),
        (index_tensors.slots(2, 2, 4, 2), [-1, -1]),
    ],
)
def test_index_tensors(array: Any, rows: list[Any]) -> None:
    assert array.tolist() == rows
