"""A recorded call of an op: its tensors with sizes, types and strides, and the values of its other arguments.

Profilers record inputs alone; of outputs only those that are passed in. Types are named as PyTorch's profiler names
them (`c10::BFloat16`, `float`, `long int`). Positions are those of the op's schema. Files before 2024 have no strides
and no values: a tensor then counts as contiguous, and a model that needs a value says that it is missing.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, Final

import msgspec

from inferometer.operators.framework.inductor_source import KernelSource
from inferometer.operators.framework.lengths import Lengths

ITEM_BYTES: Final = {
    **dict.fromkeys(("double", "long int", "long", "unsigned long", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int", "unsigned int"), 4),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short int", "short", "unsigned short"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "char"), 1),
    **dict.fromkeys(("c10::Float8_e4m3fn", "c10::Float8_e5m2", "c10::Float8_e4m3fnuz", "c10::Float8_e5m2fnuz"), 1),
    **dict.fromkeys(("c10::Float8_e8m0fnu", "c10::Float4_e2m1fn_x2"), 1),
    "c10::complex<double>": 16,
}
"""Bytes of an element; of packed 4-bit types, of a pair."""

SCALAR_TYPES: Final = {
    0: "unsigned char", 1: "signed char", 2: "short int", 3: "int", 4: "long int", 5: "c10::Half", 6: "float",
    7: "double", 11: "bool", 15: "c10::BFloat16", 23: "c10::Float8_e5m2", 24: "c10::Float8_e4m3fn",
    25: "c10::Float8_e5m2fnuz", 26: "c10::Float8_e4m3fnuz", 44: "c10::Float8_e8m0fnu", 45: "c10::Float4_e2m1fn_x2",
}  # fmt: skip
"""What the number of a dtype argument means: c10's ScalarType."""

_NOT_TENSORS = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList", "OptionalTensorList", "None"})


class Unmodelled(Exception):
    """What a call must do can't be known; the message says why."""


class Tensor(msgspec.Struct, frozen=True):
    """One recorded tensor. `strides` in elements; None where the file has none: it counts as contiguous."""

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Elements, each place of an expanded dimension counted."""
        return prod(self.dims)

    @property
    def item_bytes(self) -> int:
        """Of an element.

        Raises:
            Unmodelled: The type has no known size.
        """
        if self.dtype not in ITEM_BYTES:
            raise Unmodelled(f'the size of its type "{self.dtype}" isn\'t known')
        return ITEM_BYTES[self.dtype]

    @property
    def touched(self) -> int:
        """Different elements in memory: an expanded dimension (stride 0) counts once, and so do overlapping places."""
        if self.strides is None or len(self.strides) != len(self.dims):
            return self.numel
        if 0 in self.dims:
            return 0
        kept = sorted((abs(stride), size) for size, stride in zip(self.dims, self.strides, strict=True) if stride)
        kept = [(stride, size) for stride, size in kept if size > 1]
        extent = 1
        for stride, size in kept:
            if stride < extent:  # places of this dimension meet those of smaller ones
                return min(prod(size for _, size in kept), 1 + sum((size - 1) * stride for stride, size in kept))
            extent += (size - 1) * stride
        return prod(size for _, size in kept)

    @property
    def bytes(self) -> int:
        """Bytes of the touched elements."""
        return self.touched * self.item_bytes


Input = Tensor | tuple[Tensor, ...] | str | None
"""A tensor, a list of them, the text of a value (empty where the file has no values), or nothing."""


class OpCall(msgspec.Struct, frozen=True, dict=True):
    """A call.

    Attributes:
        op: Its name.
        inputs: By position.
        kernels: Names of the kernels that it launched itself: what they multiply in may stand there alone.
        inside: Calls that it made, in their order, and last the one that made it where it is a step of autograd; empty
            unless the op's model asks for them.
        lengths: Of the sequences that it serves, as far as they are known.
        source: Of the compiled kernel that it is, where that is known.
    """

    op: str
    inputs: tuple[Input, ...]
    kernels: tuple[str, ...] = ()
    inside: tuple["OpCall", ...] = ()
    lengths: Lengths = msgspec.field(default_factory=Lengths)
    source: KernelSource | None = None

    def tensor(self, at: int) -> Tensor:
        """The tensor at this position.

        Raises:
            Unmodelled: There is none.
        """
        found = self.maybe_tensor(at)
        if found is None:
            raise Unmodelled(f"argument {at} should be a tensor, and the file has none there")
        return found

    def maybe_tensor(self, at: int) -> Tensor | None:
        """The tensor at this position, if there is one: an optional argument."""
        found = self.inputs[at] if at < len(self.inputs) else None
        return found if isinstance(found, Tensor) else None

    def tensors(self, at: int) -> tuple[Tensor, ...]:
        """The list of tensors at this position.

        Raises:
            Unmodelled: It is none, or its tensors weren't recorded: profilers leave out those of long lists.
        """
        found = self.inputs[at] if at < len(self.inputs) else None
        if not isinstance(found, tuple):
            raise Unmodelled(f"argument {at} should be a list of tensors, and the file has none there")
        if not found:
            raise Unmodelled("the sizes of its list of tensors weren't recorded")
        return found

    @cached_property
    def all_tensors(self) -> tuple[Tensor, ...]:
        """Every tensor among the inputs, those in lists too."""
        return tuple(
            each
            for found in self.inputs
            for each in (found if isinstance(found, tuple) else (found,))
            if isinstance(each, Tensor)
        )

    def value(self, at: int) -> Any:
        """The value at this position: a number, True or False, or a list of such; None where it isn't given.

        Raises:
            Unmodelled: The file has no values.
        """
        found = self.inputs[at] if at < len(self.inputs) else None
        if found is None or not isinstance(found, str):
            return None
        if not found:
            raise Unmodelled("the values of its arguments aren't in the file")
        return read_value(found)

    def integer(self, at: int, default: int | None = None) -> int:
        """A whole number.

        Raises:
            Unmodelled: There is none and no default, or the file has no values.
        """
        found = self.value(at)
        if isinstance(found, int):
            return int(found)
        if default is None:
            raise Unmodelled(f"argument {at} should be a whole number, and the file has none there")
        return default

    def integers(self, at: int) -> tuple[int, ...]:
        """A list of whole numbers; one number is a list of one.

        Raises:
            Unmodelled: There is none, or the file has no values.
        """
        found = self.value(at)
        listed = [found] if isinstance(found, int) else found
        if not isinstance(listed, list) or not all(isinstance(each, int) for each in listed):
            raise Unmodelled(f"argument {at} should be whole numbers, and the file has none there")
        return tuple(listed)


def read_call(
    op: str, dims: str | None, dtypes: str | None, strides: str | None, values: str | None, **more: Any
) -> OpCall:
    """The call of these recorded texts, each a JSON list with a place for each argument.

    Args:
        op: Name.
        dims: Sizes.
        dtypes: Types.
        strides: Strides, or None of older files.
        values: Values of what is no tensor, as texts; None of older files.
        more: As of `OpCall`.

    Raises:
        Unmodelled: Sizes or types weren't recorded, or don't fit each other.
    """
    sizes, types = _listed(dims), _listed(dtypes)
    if sizes is None or types is None:
        raise Unmodelled("its shapes weren't recorded")
    if len(sizes) != len(types):
        raise Unmodelled("its sizes and types are of different numbers of arguments")
    steps, texts = _listed(strides) or [], _listed(values) or []
    inputs = (
        _input(size, kind, steps[at] if at < len(steps) else None, texts[at] if at < len(texts) else "")
        for at, (size, kind) in enumerate(zip(sizes, types, strict=True))
    )
    return OpCall(op, tuple(inputs), **more)


def read_value(text: str) -> Any:
    """A value of its text: Python's way to write it, or JSON's."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(text.replace("True", "true").replace("False", "false"))
    except RecursionError:  # nested too deeply
        return text
    except ValueError:
        try:
            return float(text)  # `1.`, which JSON lacks
        except ValueError:
            return text


def _listed(text: str | None) -> list[Any] | None:
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # the latter: nested too deeply
        return None
    return found if isinstance(found, list) else None


def _input(dims: Any, kind: Any, strides: Any, value: Any) -> Input:
    if kind in ("Scalar", "ScalarList"):
        return str(value)
    if kind == "TensorList":
        return _list_of_tensors(dims, strides)
    if not isinstance(kind, str) or kind in _NOT_TENSORS:
        return str(value) if value not in ("", None) else None
    return _tensor(dims, kind, strides)


def _list_of_tensors(dims: Any, strides: Any) -> tuple[Tensor, ...]:
    """Profilers don't say the types of tensors in lists: `LISTED`."""
    parts = dims if isinstance(dims, list) and all(isinstance(part, list) for part in dims) else []
    steps: Sequence[Any] = strides if isinstance(strides, list) and len(strides) == len(parts) else [None] * len(parts)
    return tuple(_tensor(part, LISTED, step) for part, step in zip(parts, steps, strict=True))


LISTED: Final = "TensorList"
"""The type of a tensor in a list: not recorded."""


def _tensor(dims: Any, kind: str, strides: Any) -> Tensor:
    if not _are_counts(dims):
        raise Unmodelled("its sizes can't be read")
    steps = tuple(strides) if isinstance(strides, list) and len(strides) == len(dims) and _are_whole(strides) else None
    return Tensor(tuple(dims), kind, steps)


def _are_whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)


def _are_counts(values: Any) -> bool:
    return _are_whole(values) and all(value >= 0 for value in values)
