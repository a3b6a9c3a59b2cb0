"""What an operator says of its tensors: axes, dtypes and integers by the arguments of a call, without torch.

A size that isn't an argument is a function, whose parameters are named after the arguments that it needs:
`lambda hidden_size, group_size: hidden_size // group_size`. So its names say which arguments an axis depends on.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any

import msgspec

_MOST = 1 << 24  # entries of a list made by repetition


class Entry(msgspec.Struct, frozen=True):
    """The entry of an argument that is a list: `Entry("shape", -1)`."""

    argument: str
    place: int


Size = str | int | Entry | Callable[..., int] | None
"""Of an axis: an argument's name, a number, an argument's entry, a function of arguments; None: only values show it."""


class Axes(msgspec.Struct, frozen=True):
    """The tensors of an operator. In `inputs` and `outputs`, `"T k: fp32"` is a tensor's axes and dtype.

    Attributes:
        op_type: The category of flashinfer-bench 0.1.2; where it has none, a word of the same kind.
        sizes: Of each axis. `Operator.dims` has the meaning of those that aren't arguments.
        varying: Axes that differ between calls of one model; the others are constant.
        inputs: In the order of `Operator.inputs`. `...` stands for all but the last size of the argument `shape`. The
            dtype is a short name or the argument that has it; bf16 without one.
        outputs: The same of what the reference returns.
        lists: What several sizes need, as functions of arguments: further names for `sizes` and `values`.
        values: Integer inputs that a kernel follows, as functions of arguments and axes: numpy arrays, the same for the
            same arguments (`index_tensors`).
        optional: Inputs that are there only where an argument is true, by name.
    """

    op_type: str
    sizes: Mapping[str, Size]
    varying: tuple[str, ...]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    lists: Mapping[str, Callable[..., Sequence[int]]] = msgspec.field(default_factory=dict)
    values: Mapping[str, Callable[..., Any]] = msgspec.field(default_factory=dict)
    optional: Mapping[str, str] = msgspec.field(default_factory=dict)

    def argument_of(self, axis: str) -> str | None:
        """The argument that an axis is, whole; None of every other axis."""
        size = self.sizes[axis]
        return size if isinstance(size, str) else None

    def needs(self, axis: str) -> tuple[str, ...]:
        """The arguments and lists that its size depends on."""
        match self.sizes[axis]:
            case str(name) | Entry(argument=name):
                return (name,)
            case int() | None:
                return ()
            case function:
                return parameters(function)

    def size_of(self, axis: str, names: Mapping[str, Any]) -> Any:
        """Its size, unchecked: arguments can give anything.

        Raises:
            LookupError, TypeError, ValueError, ArithmeticError: The arguments give none.
        """
        match self.sizes[axis]:
            case str(name):
                return _find(name, names)
            case Entry(argument=name, place=place):
                return _entry(name, _find(name, names), place)
            case int() | None as size:
                return size
            case function:
                return call(function, names)


def call(function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """A function of arguments, with those that it names."""
    return function(**{name: _find(name, names) for name in parameters(function)})


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a function of arguments names."""
    return tuple(signature(function).parameters)


def tiles(number: int, size: int) -> int:
    """How many of a size hold a number of things, the last perhaps in part."""
    return -(-number // size)


def blocks(lengths: Sequence[int], size: int) -> int:
    """Blocks of a cache that hold sequences, none of which share one."""
    return sum(tiles(length, size) for length in lengths)


def repeated(length: int, times: int) -> list[int]:
    """As many equal lengths; a file can ask for any number, so there is a limit."""
    if times > _MOST:
        raise ValueError(f"expected at most {_MOST:,} entries, found {times:,}")
    return [length] * times


def _find(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise LookupError(f"no argument, list or axis is called {name}")
    return names[name]


def _entry(name: str, entries: Sequence[Any], place: int) -> Any:
    try:
        return entries[place]
    except IndexError as error:
        raise ValueError(f"{name} has no entry {place}: it has {len(entries)}") from error
