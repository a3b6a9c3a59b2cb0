"""Attention of one layer of a transformers model: projections, positions, cache and the attention itself.

B sequences, T new tokens, S positions, H hidden size, Hq query heads, Hk key heads, D head size.
"""

from typing import Any

from inferometer.engines import arms
from inferometer.engines.hf.key_values import KeyValues
from inferometer.engines.hf.weight_reading import Reader
from inferometer.engines.paths import scope
from inferometer.errors import InputError

_KINDS = ("full_attention", "sliding_attention")


class Attention:
    """One layer's, called with what its norm gave.

    Attributes:
        index: Of the layer.
        window: Positions that a query sees, its own included; None: all.
        key_heads: Heads of keys and values.
        width: Of a head.
    """

    def __init__(self, reader: Reader, module: Any, index: int) -> None:
        self.index = index
        self.query, self.key, self.value, self.out = (
            reader.linear(module, name) for name in ("q_proj", "k_proj", "v_proj", "o_proj")
        )
        self.query_norm, self.key_norm = (reader.optional_norm(module, name) for name in ("q_norm", "k_norm"))
        self.width = int(module.head_dim)
        self.key_heads = self.key.weight.shape[0] // self.width
        self.window = window_of(reader.config, module, index)
        self._scale = float(getattr(module, "scaling", self.width**-0.5))  # Qwen2-MoE's had none before 5
        self._softcap = getattr(module, "attn_logit_softcapping", None)

    def __call__(self, x_BTH: Any, table: tuple[Any, Any], cache: KeyValues) -> Any:
        """[B, T, H]; `table` has the cosines and sines [B, T, D] of the T positions, which go into the cache."""
        heads = (*x_BTH.shape[:2], -1, self.width)
        q_BTHqD, k_BTHkD, v_BTHkD = (part(x_BTH).view(heads) for part in (self.query, self.key, self.value))
        if self.query_norm is not None:
            q_BTHqD = self.query_norm(q_BTHqD)
        if self.key_norm is not None:
            k_BTHkD = self.key_norm(k_BTHkD)
        q_BHqTD, k_BHkTD = arms.call("rope", q_BTHqD.transpose(1, 2), k_BTHkD.transpose(1, 2), *table)
        with scope("cache"):
            k_BHkSD, v_BHkSD = cache.update(self.index, k_BHkTD, v_BTHkD.transpose(1, 2), self.window)
        operator = "attention_decode" if x_BTH.shape[1] == 1 else "attention_prefill"
        settings: dict[str, Any] = {"scale": self._scale, "window": self.window, "softcap": self._softcap}
        out_BTHqD = arms.call(operator, q_BHqTD, k_BHkSD, v_BHkSD, **settings)
        return self.out(out_BTHqD.reshape(*x_BTH.shape[:2], -1))


def window_of(config: Any, module: Any, index: int) -> int | None:
    """Positions that a query of a layer sees; None: all.

    Newer configurations say each layer's kind; before, the module knows, or all layers are alike (Mixtral).
    """
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        if kinds[index] not in _KINDS:
            raise InputError(f"layer {index}: expected {' or '.join(_KINDS)}, found {kinds[index]}")
        return config.sliding_window if kinds[index] == "sliding_attention" else None
    if hasattr(module, "sliding_window"):
        return module.sliding_window  # type: ignore[no-any-return]
    size = getattr(config, "sliding_window", None)
    if size is None or not getattr(config, "use_sliding_window", True):
        return None
    return size if index >= getattr(config, "max_window_layers", 0) else None
