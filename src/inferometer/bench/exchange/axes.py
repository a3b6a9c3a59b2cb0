"""Sizes of the tensors of a call, without torch: what its operator declares (`Operator.axes`) with its arguments.

Tests hold every operator's against tensors as they are drawn.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.errors import InputError
from inferometer.operators.axes import Axes, call
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


@dataclass(frozen=True)
class Tensor:
    """Axes of a tensor by name, and its dtype as torch calls it."""

    axes: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Bound:
    """The axes and tensors of one call; the size of an axis is None where only values show it."""

    sizes: dict[str, int | None]
    var: frozenset[str]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]

    def shape(self, tensor: Tensor) -> tuple[int | None, ...]:
        """Its sizes."""
        return tuple(self.sizes[axis] for axis in tensor.axes)


def axes_of(operator: Operator) -> Axes:
    """What an operator declares.

    Raises:
        InputError: It declares none: another package's operator.
    """
    if operator.axes is None:
        raise InputError(
            f"{operator.name}: it declares no axes of its tensors: it can't be exchanged",
            hint="Give its Operator `axes`: inferometer.operators.axes has an explanation.",
        )
    return operator.axes


def bind(operator: Operator, args: Mapping[str, Any]) -> Bound:
    """The axes and tensors of a call.

    Raises:
        InputError: An argument is missing, or of a wrong type or size.
    """
    axes, names = axes_of(operator), check_args(operator, args)
    found = {
        axis: _size(operator, axis, _given(operator, f"axis {axis}", axes.size_of, axis, names)) for axis in axes.sizes
    }
    leading: dict[str, int | None] = {}
    if any("..." in spec for spec in axes.inputs.values()):
        shape = names["shape"][:-1]
        labels = ["T"] if len(shape) == 1 else [f"T{place}" for place in range(len(shape))]
        leading = {axis: _size(operator, axis, size) for axis, size in zip(labels, shape, strict=True)}
    absent = {name for name, argument in axes.optional.items() if not names.get(argument)}
    tensors = [
        {name: _tensor(spec, tuple(leading), names) for name, spec in specs.items() if name not in absent}
        for specs in (axes.inputs, axes.outputs)
    ]
    return Bound({**leading, **found}, frozenset({*axes.varying, *leading}), *tensors)


def values_of(operator: Operator, args: Mapping[str, Any]) -> dict[str, Any]:
    """The integer inputs of a call, as arrays: lengths, offsets, tables of pages, experts. The same for the same args.

    Raises:
        InputError: As `bind`.
    """
    axes, bound = axes_of(operator), bind(operator, args)
    names = {**check_args(operator, args), **bound.sizes}
    return {name: _given(operator, name, call, function, names) for name, function in axes.values.items()}


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
    for name, function in axes_of(operator).lists.items():
        names[name] = _given(operator, name, call, function, names)
    return names


def parameters_of(operator: Operator) -> dict[str, inspect.Parameter]:
    """The keywords of its inputs and of its reference, without seed and device."""
    both = [*inspect.signature(operator.inputs).parameters.values()]
    both += inspect.signature(operator.reference).parameters.values()
    keywords = [each for each in both if each.kind is each.KEYWORD_ONLY and each.name not in ("seed", "device")]
    return {each.name: each for each in keywords}


def _given(operator: Operator, what: str, function: Callable[..., Any], *args: Any) -> Any:
    """What a function of arguments gives; `what` names its result in an error."""
    try:
        return function(*args)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise InputError(f"{operator.name}: its arguments give no tensors: {what}: {error}") from error


def _size(operator: Operator, axis: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InputError(f"{operator.name}: axis {axis}: expected a size, found {value!r:.60}")


def _tensor(spec: str, leading: tuple[str, ...], names: Mapping[str, Any]) -> Tensor:
    axes, _, dtype = spec.partition(":")
    short = names.get(dtype.strip(), dtype.strip()) or "bf16"
    expanded = [each for axis in axes.split() for each in (leading if axis == "..." else (axis,))]
    return Tensor(tuple(expanded), _LONG.get(short, str(short)))
