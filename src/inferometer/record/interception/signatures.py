"""What an op was called with, as PyTorch's profiler writes it: shapes, types, strides and scalars as JSON text.

Equal calls share one `Signature`, whose texts are made once. The key of a call is flat, since it is made for every op:
first the overload, then of each argument either size, strides and type of a tensor, or its Python type and value. A
list is `list` and the key of its items, keyword arguments are `dict` and a tuple of names and keys.

Unlike the profiler's, lists of tensors of which some are None have shapes, and a number in place of a tensor has its
value. Text, devices and generators are empty, as there.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from inferometer.record.interception.overloads import Overload, dtype_numbers, scalar_types

_C_NAMES = {  # C++ names of types, as the profiler has them; others are `c10::` and their own
    "float32": "float",
    "float64": "double",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "bool": "bool",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
_NUMBERS = {int: "long int", float: "double", bool: "bool", complex: "c10::complex<double>"}


class Texts(NamedTuple):
    """JSON text of one call's arguments; null where they couldn't be read (sparse, nested or symbolic tensors)."""

    input_dims: str | None
    input_dtypes: str | None
    input_strides: str | None
    scalars: str | None


UNREAD = Texts(None, None, None, None)


class _Input(NamedTuple):
    dims: Any
    dtype: str
    strides: Any
    scalar: str


_NOTHING = _Input([], "", [], "")


class Signature:
    """An op with the shapes, types, strides and scalars of its inputs. `key` is None where they couldn't be read."""

    __slots__ = ("_key", "_parse", "_texts", "overload")

    def __init__(self, overload: Overload, key: Sequence[Any] | None) -> None:
        self.overload = overload
        self._key = key
        self._parse: Callable[[Sequence[Any]], tuple[list[_Input], dict[str, _Input]]] = _parse_key
        self._texts: Texts | None = None

    @classmethod
    def observed(cls, overload: Overload, arguments: Sequence[Any] | None) -> "Signature":
        """Of all its arguments in the schema's order, as the observer has them; None where they couldn't be read.

        A tensor is a tuple of sizes, strides and the type's name, what is neither tensor nor number is None.
        """
        made = cls(overload, arguments)
        made._parse = _parse_observed
        return made

    @property
    def texts(self) -> Texts:
        """The JSON texts; made at the first use, not when the op ran."""
        if self._texts is None:
            self._texts = UNREAD if self._key is None else _render(self.overload, *self._parse(self._key))
            self._key = None
        return self._texts


def add_other(key: list[Any], value: Any) -> None:
    """Add to a key what is neither a plain tensor nor a plain scalar."""
    if isinstance(value, list | tuple):
        items: list[Any] = []
        for item in value:
            add_any(items, item)
        key += (list, tuple(items))
    elif hasattr(value, "is_cpu"):
        key += (value.shape, value.stride(), value.dtype)
    else:
        key += (type(value), None)


def add_any(key: list[Any], value: Any) -> None:
    """Add any argument to a key."""
    if type(value) in scalar_types():
        key += (type(value), value)
    else:
        add_other(key, value)


def add_named(key: list[Any], kwargs: Mapping[str, Any]) -> None:
    """Add keyword arguments to a key, after all others."""
    named: list[Any] = []
    for name, value in kwargs.items():
        of_one: list[Any] = []
        add_any(of_one, value)
        named += (name, tuple(of_one))
    key += (dict, tuple(named))


def _render(overload: Overload, given: list[_Input], named: dict[str, _Input]) -> Texts:
    inputs = list(given)
    for i, argument in enumerate(overload.arguments):
        if i >= len(given):
            inputs.append(named.pop(argument.name) if argument.name in named else _scalar_input(argument.default))
        if argument.is_tensor and inputs[i].dtype in ("Scalar", ""):
            inputs[i] = inputs[i]._replace(dtype=number_type(inputs[i].scalar))
    inputs += named.values()
    return Texts(
        json.dumps([each.dims for each in inputs]),
        json.dumps([each.dtype for each in inputs]),
        json.dumps([each.strides for each in inputs]),
        json.dumps([each.scalar for each in inputs]),
    )


def _parse_observed(arguments: Sequence[Any]) -> tuple[list[_Input], dict[str, _Input]]:
    return [_observed_input(each) for each in arguments], {}


def _observed_input(value: Any) -> _Input:
    if isinstance(value, tuple):
        sizes, strides, dtype = value
        return _Input(list(sizes), dtype, list(strides), "")
    if isinstance(value, list):
        return _list_input([_observed_input(each) for each in value])
    return _scalar_input(value)


def _parse_key(key: Sequence[Any]) -> tuple[list[_Input], dict[str, _Input]]:
    return _parse(key[1:])


def _parse(key: Sequence[Any]) -> tuple[list[_Input], dict[str, _Input]]:
    """The inputs of a key by position, and those by name."""
    given: list[_Input] = []
    named: dict[str, _Input] = {}
    i = 0
    while i < len(key):
        head = key[i]
        if not isinstance(head, type):
            given.append(_Input(list(head), _c_name(key[i + 2]), list(key[i + 1]), ""))
            i += 3
            continue
        if head is dict:
            pairs = key[i + 1]
            named = {name: _parse(of)[0][0] for name, of in zip(pairs[::2], pairs[1::2], strict=True)}
        else:
            given.append(_list_input(_parse(key[i + 1])[0]) if head is list else _scalar_input(key[i + 1]))
        i += 2
    return given, named


def _list_input(items: Sequence[_Input]) -> _Input:
    if any(item.dtype not in ("", "Scalar", "ScalarList", "TensorList") for item in items):
        return _Input([item.dims for item in items], "TensorList", [item.strides for item in items], "")
    return _Input([], "ScalarList", [], f"[{', '.join(item.scalar for item in items)}]")


def _scalar_input(value: Any) -> _Input:
    if isinstance(value, list | tuple):
        return _list_input([_scalar_input(each) for each in value])
    text = _scalar_text(value)
    return _Input([], "Scalar", [], text) if text else _NOTHING


def _scalar_text(value: Any) -> str:
    """A scalar as TorchScript prints it; types and layouts are their numbers."""
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        text = f"{value:.17g}"
        return f"{text}." if text.removeprefix("-").isdigit() else text
    if isinstance(value, complex):
        return str(value)
    number = dtype_numbers().get(value) if value is not None and not isinstance(value, str) else None
    return "" if number is None else str(number)


def _c_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return _C_NAMES.get(name) or f"c10::{name[:1].upper()}{name[1:]}"


def number_type(text: str) -> str:
    """The type of a number that stands in place of a tensor."""
    if text in ("True", "False"):
        return _NUMBERS[bool]
    if not text:
        return ""
    if "j" in text:
        return _NUMBERS[complex]
    return _NUMBERS[int] if text.removeprefix("-").isdigit() else _NUMBERS[float]
