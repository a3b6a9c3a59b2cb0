"""What a candidate's process is told of an operator: names, defaults, and the sizes of outputs; no answer, no seed."""

import inspect
from collections.abc import Mapping
from typing import Any

from inferometer.bench.exchange.axes import bind
from inferometer.operators.operator import Operator


def contract_of(operator: Operator) -> dict[str, Any]:
    """What makes a `Contract` there."""
    found = inspect.signature(operator.reference).parameters
    defaults = {
        name: found[name].default
        for name in operator.settings
        if name in found and found[name].default is not inspect.Parameter.empty
    }
    return {
        "name": operator.name,
        "settings": tuple(operator.settings),
        "defaults": defaults,
        "outputs": operator.outputs,
        "updates": dict(operator.updates),
    }


def made_of(operator: Operator, args: Mapping[str, Any]) -> list[tuple[str, str, list[int]]]:
    """Name, dtype and shape of each output; left out are those that depend on the inputs' values, and foreign ones."""
    if operator.axes is None:
        return []
    bound = bind(operator, args)
    shapes = {name: bound.shape(tensor) for name, tensor in bound.outputs.items()}
    return [
        (name, bound.outputs[name].dtype, [size for size in shape if size is not None])
        for name, shape in shapes.items()
        if None not in shape
    ]
