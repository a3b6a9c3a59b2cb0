"""A model's first layers as a checkpoint of their own, for measuring kernels without loading the rest."""

import math

import msgspec

from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.plan.layout import F16_BYTES
from inferometer.engines.webgpu.weights.slots import weight_slots

LEAST_LAYERS = 2
LEAST_BYTES = 64 << 20
"""Size of the matrices of these layers, where the model has as much: more than what caches hold."""


class FirstLayers:
    """A `Checkpoint` with so few layers of another that every shape of a matrix is still there."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        layers = _count_layers(checkpoint.spec)
        self.spec: ModelSpec = msgspec.structs.replace(
            checkpoint.spec,
            layers=layers,
            windows=checkpoint.spec.windows[:layers],
            rope_of=checkpoint.spec.rope_of[:layers],
        )
        self.source, self.parameters = checkpoint.source, checkpoint.parameters
        self.notes, self.config, self.tokenizer = checkpoint.notes, checkpoint.config, checkpoint.tokenizer
        self.matrix, self.floats, self.vector = checkpoint.matrix, checkpoint.floats, checkpoint.vector
        self.source_bytes, self.own_format, self.rows = checkpoint.source_bytes, checkpoint.own_format, checkpoint.rows


def _count_layers(spec: ModelSpec) -> int:
    """At least one layer with experts and one without, where the model has both."""
    shapes = [slot.shape for name, slot in weight_slots(spec).items() if name.startswith("layers.0.")]
    layer_bytes = sum(F16_BYTES * math.prod(shape) for shape in shapes if len(shape) == 2)
    sparse = set() if spec.experts is None else set(spec.experts.layers)
    kinds = (sparse, set(range(spec.layers)) - sparse)
    of_every_kind = 1 + max(min(layers) for layers in kinds if layers)
    return min(max(LEAST_LAYERS, of_every_kind, -(-LEAST_BYTES // layer_bytes)), spec.layers)
