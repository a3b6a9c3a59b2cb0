"""The keys and values of the positions so far, in memory that is taken once for all that will come.

B sequences, Hk key heads, S positions, D head size. A layer with a window keeps all positions too, and hands out those
that its queries see: the same as a cache that forgets, without moving anything.
"""

from typing import Any

from inferometer.errors import InputError


class KeyValues:
    """What a model's `forward` fills.

    Attributes:
        capacity: Positions that there is room for.
        filled: Positions that are in it.
    """

    def __init__(
        self, layers: int, batch: int, heads: int, capacity: int, width: int, *, dtype: Any, device: str
    ) -> None:
        import torch

        shape = (layers, 2, batch, heads, capacity, width)
        self._all = torch.empty(shape, dtype=dtype, device=device)
        self.batch, self.capacity, self.filled = batch, capacity, 0

    def require_room(self, batch: int, tokens: int) -> None:
        """Raise InputError where `tokens` more of `batch` sequences don't fit, or are none."""
        if tokens < 1:
            raise InputError("expected at least one token a pass, found none")
        if batch != self.batch:
            raise InputError(f"the cache is for {self.batch} sequences, found {batch}")
        if self.filled + tokens > self.capacity:
            raise InputError(
                f"the cache has room for {self.capacity} positions, found {self.filled} and {tokens} more",
                hint="Start it with the length that prompt and new tokens need together.",
            )

    def take(self, other: "KeyValues", kept: int) -> None:
        """The first `kept` positions of another cache of this model; they are then filled here."""
        self._all[..., :kept, :] = other._all[..., :kept, :]
        self.filled = kept

    def update(self, layer: int, k_BHkTD: Any, v_BHkTD: Any, window: int | None) -> tuple[Any, Any]:
        """Keys and values [B, Hk, S, D] up to the new ones, which are its last T; from the first that any of them sees.

        The answer lies in the cache: its heads aren't side by side.
        """
        end = self.filled + k_BHkTD.shape[2]
        keys, values = self._all[layer]
        keys[:, :, self.filled : end] = k_BHkTD
        values[:, :, self.filled : end] = v_BHkTD
        first = 0 if window is None else max(0, self.filled - window + 1)
        return keys[:, :, first:end], values[:, :, first:end]
