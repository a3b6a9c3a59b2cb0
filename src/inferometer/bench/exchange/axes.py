"""Sizes of every operator's tensors by its arguments, without torch: `axes.json`.

An operator there has `axes` (name: expression of the arguments), `var` (those that differ between workloads of one
definition), `inputs` and `outputs` (axes and dtype, bf16 where none stands there, or the argument that names it),
`lists` (names for expressions that several axes use), `values` (integers that a kernel follows) and `optional` inputs.
`...` stands for all but the last size of the argument `shape`; None for a size that only values tell. Tests hold all
of it against tensors as they are drawn.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from inferometer.bench.exchange.expressions import evaluate
from inferometer.errors import InputError
from inferometer.operators.operator import Operator

_LONG = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "int32": "int32",
    "int64": "int64",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
}


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `axes.json` says of an operator."""

    op_type: str
    axes: dict[str, str]
    var: tuple[str, ...]
    inputs: dict[str, str]
    outputs: dict[str, str]
    lists: dict[str, str] = {}
    values: dict[str, str] = {}
    optional: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str
    operators: dict[str, Sizes]


@dataclass(frozen=True)
class Tensor:
    """Axes of a tensor by name, and its dtype as torch calls it."""

    axes: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Bound:
    """The axes and tensors of one call; the size of an axis is None where only values tell it."""

    sizes: dict[str, int | None]
    var: frozenset[str]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]

    def shape(self, tensor: Tensor) -> tuple[int | None, ...]:
        """Its sizes."""
        return tuple(self.sizes[axis] for axis in tensor.axes)


@cache
def read_sizes() -> dict[str, Sizes]:
    """All of `axes.json`."""
    data = (files("inferometer.bench.exchange") / "axes.json").read_bytes()
    return msgspec.json.decode(data, type=_File).operators


def sizes_of(operator: Operator) -> Sizes:
    """Of an operator.

    Raises:
        InputError: It isn't in the file: another package's operator.
    """
    found = read_sizes().get(operator.name)
    if found is None:
        raise InputError(f"{operator.name}: its tensors' axes are in no table: it can't be exchanged")
    return found


def bind(operator: Operator, args: Mapping[str, Any]) -> Bound:
    """The axes and tensors of a call.

    Raises:
        InputError: An argument is missing, or of a wrong type or size.
    """
    sizes, names = sizes_of(operator), check_args(operator, args)
    found: dict[str, int | None] = {}
    for axis, expression in sizes.axes.items():
        found[axis] = _size(operator, axis, _evaluate(operator, expression, names))
    leading: dict[str, int | None] = {}
    if any("..." in spec for spec in sizes.inputs.values()):
        shape = names["shape"][:-1]
        labels = ["T"] if len(shape) == 1 else [f"T{place}" for place in range(len(shape))]
        leading = {axis: _size(operator, axis, size) for axis, size in zip(labels, shape, strict=True)}
    absent = {name for name, argument in sizes.optional.items() if not names.get(argument)}
    tensors = [
        {name: _tensor(spec, tuple(leading), names) for name, spec in specs.items() if name not in absent}
        for specs in (sizes.inputs, sizes.outputs)
    ]
    return Bound({**leading, **found}, frozenset({*sizes.var, *leading}), *tensors)


def values_of(operator: Operator, args: Mapping[str, Any]) -> dict[str, Any]:
    """The integer inputs of a call, as arrays: lengths, offsets, tables of pages, experts. The same for the same args.

    Raises:
        InputError: As `bind`.
    """
    sizes, bound = sizes_of(operator), bind(operator, args)
    names = {**check_args(operator, args), **bound.sizes}
    return {name: _evaluate(operator, expression, names) for name, expression in sizes.values.items()}


def check_args(operator: Operator, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the defaults of those that aren't given, and the operator's lists.

    Raises:
        InputError: One is missing, or isn't of its type.
    """
    names: dict[str, Any] = {}
    for name, parameter in parameters_of(operator).items():
        if name not in args:
            if parameter.default is parameter.empty:
                raise InputError(f"{operator.name}: argument {name} is missing")
            names[name] = parameter.default
            continue
        try:
            msgspec.convert(args[name], parameter.annotation)
        except msgspec.ValidationError as error:
            raise InputError(f"{operator.name}: argument {name}: {error}") from error
    names.update(args)
    for name, expression in sizes_of(operator).lists.items():
        names[name] = _evaluate(operator, expression, names)
    return names


def parameters_of(operator: Operator) -> dict[str, inspect.Parameter]:
    """The keywords of its inputs and of its reference, without seed and device."""
    both = [*inspect.signature(operator.inputs).parameters.values()]
    both += inspect.signature(operator.reference).parameters.values()
    keywords = [each for each in both if each.kind is each.KEYWORD_ONLY and each.name not in ("seed", "device")]
    return {each.name: each for each in keywords}


def _evaluate(operator: Operator, expression: str, names: Mapping[str, Any]) -> Any:
    try:
        return evaluate(expression, names)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise InputError(f"{operator.name}: its arguments give no tensors: {expression}: {error}") from error


def _size(operator: Operator, axis: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InputError(f"{operator.name}: axis {axis}: expected a size, found {value!r:.60}")


def _tensor(spec: str, leading: tuple[str, ...], names: Mapping[str, Any]) -> Tensor:
    axes, _, dtype = spec.partition(":")
    short = names.get(dtype.strip(), dtype.strip()) or "bf16"
    expanded = [each for axis in axes.split() for each in (leading if axis == "..." else (axis,))]
    return Tensor(tuple(expanded), _LONG.get(short, str(short)))
