"""A checkpoint without a file: the numbers that `engines.random_weights` gives transformers' model of the same seed.

Any rows are computed without those before them. Matrices are then rounded to float16, as those of files are; norms and
biases stay float32. Of experts they are those of transformers' modules since version 5, which join them.
"""

import math
from typing import Any

import numpy as np

from inferometer.backends.wgsl.weight_formats import F16, WeightFormat, encode
from inferometer.engines.chat.tokens import BytesTokenizer, Tokenizer
from inferometer.engines.random_weights import numbers, spread
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.weights.slots import require_slot, require_span, weight_slots


class RandomCheckpoint:
    """A model of a configuration with weights from a seed; a `Checkpoint`.

    Attributes:
        spec: The model.
        source: `random weights, seed 0`.
        parameters: How many numbers; a tied table counts once.
        notes: None.
        config: Fields of the configuration.
        tokenizer: Bytes.
    """

    def __init__(self, spec: ModelSpec, config: dict[str, Any], seed: int) -> None:
        self.spec, self.config = spec, config
        self.source = f"random weights, seed {seed}"
        self.notes: tuple[str, ...] = ()
        self.tokenizer: Tokenizer = BytesTokenizer()
        self._seed, self._slots = seed, weight_slots(spec)
        self.parameters = sum(math.prod(slot.shape) for slot in self._slots.values())

    def matrix(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says."""
        return self._rows(name, first, last, np.float16)

    def floats(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says."""
        return self._rows(name, first, last, np.float32)

    def own_format(self, name: str) -> WeightFormat:
        """float16."""
        return F16

    def rows(self, name: str, weights: WeightFormat, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says."""
        if weights is F16:
            return self.matrix(name, first, last)
        return encode(self.floats(name, first, last), weights)

    def vector(self, name: str) -> Any:
        """As the protocol says."""
        slot = require_slot(self._slots, name, matrix=False)
        return self._numbers(name, 0, slot.shape[0], np.float32)

    def source_bytes(self, name: str, first: int = 0, last: int | None = None) -> int:
        """0: nothing is read."""
        return 0

    def _rows(self, name: str, first: int, last: int | None, dtype: Any) -> Any:
        slot = require_slot(self._slots, name, matrix=True)
        first, last = require_span(name, slot, first, last)
        width = slot.shape[1]
        return self._numbers(name, first * width, last * width, dtype).reshape(last - first, width)

    def _numbers(self, name: str, first: int, last: int, dtype: Any) -> Any:
        slot = require_slot(self._slots, name)
        is_head = slot is require_slot(self._slots, "lm_head")
        tensor, start = (slot.tensor, 0) if slot.joined is None else (slot.joined.tensor, slot.joined.first)
        mean, deviation = spread(tensor, slot.shape[-1], is_head=is_head, is_gemma=self.spec.sandwich)
        return numbers(f"{self._seed} {tensor}", mean, deviation, start + first, start + last, dtype)
