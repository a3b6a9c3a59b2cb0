"""Which shapes to run: the tiny ones, published ones by index, or all that fit."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from inferometer.errors import InputError
from inferometer.operators.operator import Operator
from inferometer.units import format_ranges

_RANGE = re.compile(r"(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?")


@dataclass(frozen=True)
class ChosenShapes:
    """An operator with labels and arguments of the shapes to run."""

    operator: Operator
    shapes: tuple[tuple[str, Mapping[str, Any]], ...]


def choose_shapes(operator: Operator, words: str) -> ChosenShapes:
    """`tiny`, `all`, or published indices such as `0,3-5`.

    Raises:
        InputError: It is neither, or the operator has no shape of that index.
    """
    if words == "tiny":
        return ChosenShapes(operator, tuple((f"tiny {i}: {_text(args)}", args) for i, args in enumerate(operator.tiny)))
    known = {shape.index: shape for shape in operator.catalogue().shapes}
    if not known:
        raise InputError(f"{operator.name}: expected published shapes, found none", hint="--shapes tiny has its own.")
    wanted = sorted(known) if words == "all" else list(dict.fromkeys(_indices(words)))
    for index in wanted:
        if index not in known:
            raise InputError(
                f"{operator.name} has no shape {index}",
                hint=f"It has {format_ranges(sorted(known))}; `inferometer operators {operator.name}` shows them.",
            )
    return ChosenShapes(operator, tuple((f"{index}: {known[index].label}", known[index].args) for index in wanted))


def choose_indices(words: str, count: int, name: str) -> list[int]:
    """Of `count` things, those of `0,3-5`, each once; `all` are all.

    Raises:
        InputError: It is neither, or there is no such index.
    """
    if words == "all":
        return list(range(count))
    wanted = list(dict.fromkeys(_indices(words)))
    for index in wanted:
        if index >= count:
            raise InputError(f"{name} has no shape {index}", hint=f"It has {count}, counted from 0.")
    return wanted


def fit_device(asked: ChosenShapes, device: str) -> ChosenShapes:
    """With the fp8 that the device has, where neither shape nor operator's default says otherwise: fn on NVIDIA's."""
    named = signature(asked.operator.inputs).parameters
    settable = "fp8_dtype" in named or "fp8_dtype" in asked.operator.settings
    if device == "cpu" or not settable or _is_amd():
        return asked
    return replace(asked, shapes=tuple((label, {"fp8_dtype": "fp8_e4m3fn", **args}) for label, args in asked.shapes))


def _is_amd() -> bool:
    import torch

    return torch.version.hip is not None


def index_of(label: str) -> int | None:
    """Of a published shape, by the label that it was given here; None for others."""
    number = label.partition(":")[0]
    return int(number) if number.isdecimal() else None


def _indices(words: str) -> Iterator[int]:
    for part in words.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match["first"]), int(match["last"] or match["first"])) if match else (1, 0)
        if first > last:
            raise InputError(f'expected tiny, all, or indices such as 0,3-5 for shapes, found "{words}"')
        yield from range(first, last + 1)


def _text(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in args.items())
