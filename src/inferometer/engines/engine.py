"""What runs a model one pass at a time; `hf.py` is one, and tests have small ones of their own."""

from typing import Any, Protocol


class Engine(Protocol):
    """A model on a device, with its weights. Operators of its passes go through `arms.call`.

    Attributes:
        name: As users know it: `tiny-llama`, or the folder's name.
        device: `cpu`, `cuda`, `cuda:1`.
        dtype: Of weights and activations: `float32`, `bfloat16`.
        vocabulary: Number of tokens.
    """

    name: str
    device: str
    dtype: str
    vocabulary: int

    def start(self, batch: int, length: int) -> Any:
        """An empty cache for `batch` sequences of at most `length` positions: what `forward` takes and fills."""

    def forward(self, cache: Any, tokens_BT: Any) -> Any:
        """Logits [B, V] of the last position, after tokens int64 [B, T] that follow those in the cache.

        One call of the path `forward`, with the model's modules below it.
        """
