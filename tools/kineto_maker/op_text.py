"""The arguments of a framework op as Kineto writes them."""

from __future__ import annotations

import json

from .aten import contiguous_strides
from .nodes import Argument, Op, Tensor


def op_args(op: Op, *, shapes: bool) -> str:
    """All arguments of an op but `External id` and `Ev Idx`; tensors and details only where shapes are recorded."""
    text = '"Record function id": 0, '
    if op.autograd:
        text = f'"Sequence number": 0, "Fwd thread id": 0, {text}'
    if not shapes:
        return text
    columns: dict[str, object] = {
        "Concrete Inputs": [_concrete(argument) for argument in op.arguments],
        "Input type": [_dtype(argument) for argument in op.arguments],
        "Input Strides": [_strides(argument) for argument in op.arguments],
        "Input Dims": [_dims(argument) for argument in op.arguments],
    }
    columns.update(op.details)
    return text + "".join(f'"{name}": {json.dumps(column)}, ' for name, column in columns.items())


def _concrete(argument: Argument) -> str:
    if argument is None or isinstance(argument, Tensor):
        return ""
    return str(list(argument)) if isinstance(argument, tuple) else str(argument)


def _dtype(argument: Argument) -> str:
    if argument is None:
        return ""
    if isinstance(argument, Tensor):
        return argument.dtype
    return "ScalarList" if isinstance(argument, tuple) else "Scalar"


def _dims(argument: Argument) -> list[int]:
    return list(argument.dims) if isinstance(argument, Tensor) else []


def _strides(argument: Argument) -> list[int]:
    if not isinstance(argument, Tensor):
        return []
    return list(contiguous_strides(argument.dims) if argument.strides is None else argument.strides)
