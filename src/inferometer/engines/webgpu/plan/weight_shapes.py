"""Shapes of a model's weights by their names, one by one and stacked."""

from collections.abc import Mapping, Sequence
from functools import cache

from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.weights.slots import Slot, weight_slots
from inferometer.errors import FormatError, UnknownName


def short_name(name: str) -> str:
    """`layers.3.q` is `q`."""
    return name.rpartition(".")[2]


@cache
def slots_by_name(spec: ModelSpec) -> Mapping[str, Slot]:
    """All weights by their whole names, and by names within a layer: of the first layer that has such a weight."""
    slots = weight_slots(spec)
    of_layers = {name.split(".", 2)[2]: slot for name, slot in reversed(slots.items()) if name.startswith("layers.")}
    return {**of_layers, **slots}


def weight_shape(spec: ModelSpec, name: str) -> tuple[int, ...]:
    """Of a weight by its name; without a layer in it, of the first layer that has one of this name.

    Raises:
        UnknownName: The model has no such weight.
    """
    slots = slots_by_name(spec)
    if name == "lm_head" and spec.tied:
        name = "embed"
    if name in slots:
        return slots[name].shape
    raise UnknownName(f"weight of {spec.name}", name, slots)


def matrix_shape(spec: ModelSpec, names: Sequence[str]) -> tuple[int, int]:
    """Rows and columns of stacked matrices.

    Raises:
        UnknownName: The model has no such matrix.
        FormatError: One is no matrix, or their rows are of several lengths.
    """
    shapes = [weight_shape(spec, name) for name in names]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) != 2:
            raise FormatError(f"{spec.name}: {name}: expected a matrix, found a vector of {shape[0]} numbers")
    if len({shape[1] for shape in shapes}) > 1:
        raise FormatError(f"{' and '.join(names)}: expected rows of one length, found {[shape[1] for shape in shapes]}")
    return sum(shape[0] for shape in shapes), shapes[0][1]


def vector_size(spec: ModelSpec, names: Sequence[str]) -> int:
    """How many numbers concatenated vectors have."""
    shapes = [weight_shape(spec, name) for name in names]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) != 1:
            raise FormatError(f"{spec.name}: {name}: expected a vector, found a matrix")
    return sum(shape[0] for shape in shapes)
