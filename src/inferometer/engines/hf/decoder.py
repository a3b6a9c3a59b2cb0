"""One pass of a Hugging Face decoder whose operators go through `arms.call`: its modules are read, not changed.

The weights, the rotary table and the scaled embedding are the model's own modules; the order of operators around them
is defined here, once for all families: what differs is read from the modules (norms of queries and keys, biases,
windows, caps, experts, norms behind attention). The model itself stays as transformers built it, so that both can run
side by side, in threads too.

B sequences, T new tokens, H hidden size, D head size, V vocabulary.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from inferometer.engines.hf.attention import Attention, window_of
from inferometer.engines.hf.feed_forward import FeedForward, Mixture
from inferometer.engines.hf.key_values import KeyValues
from inferometer.engines.hf.weight_reading import Reader
from inferometer.engines.paths import scope
from inferometer.errors import InputError

_FEED_FORWARD = ("mlp", "block_sparse_moe")


class Layer:
    """One layer: a norm before each part, and in Gemma's form one behind each too."""

    def __init__(self, reader: Reader, module: Any, index: int) -> None:
        self.name = f"layers.{index}"
        self.attention = Attention(reader, module.self_attn, index)
        self.before_attention = reader.norm(module, "input_layernorm")
        second = reader.norm(module, "post_attention_layernorm")
        before = reader.optional_norm(module, "pre_feedforward_layernorm")
        self.after_attention = None if before is None else second
        self.before_feed = second if before is None else before
        self.after_feed = reader.optional_norm(module, "post_feedforward_layernorm")
        self.feed_name = next(name for name in _FEED_FORWARD if hasattr(module, name))
        feed = getattr(module, self.feed_name)
        self.feed = Mixture(reader, feed) if hasattr(feed, "experts") else FeedForward(reader, feed)

    def __call__(self, x_BTH: Any, table: tuple[Any, Any], cache: KeyValues) -> Any:
        """Like `x_BTH`; `table` and `cache` as in `Attention`."""
        normed_BTH = self.before_attention(x_BTH)
        with scope("self_attn"):
            attended_BTH = self.attention(normed_BTH, table, cache)
        if self.after_attention is not None:
            attended_BTH = self.after_attention(attended_BTH)
        normed_BTH, x_BTH = self.before_feed.after_add(attended_BTH, x_BTH, "attention_residual")
        with scope(self.feed_name):
            fed_BTH = self.feed(normed_BTH)
        if self.after_feed is not None:
            fed_BTH = self.after_feed(fed_BTH)
        with scope("feed_forward_residual"):
            return x_BTH + fed_BTH


class Decoder:
    """A whole model. `model` is what transformers built for causal language models, of one of the known families.

    Attributes:
        layers: In order.
        key_heads: Of a layer.
        width: Of a head.

    Raises:
        InputError: Its modules don't have the form that is read here.
    """

    def __init__(self, model: Any) -> None:
        self.config = model.config.get_text_config()
        reader = Reader(self.config)
        try:
            causal = model if hasattr(model, "model") else model.language_model  # Gemma 3 that sees, by version
            trunk = getattr(causal.model, "language_model", causal.model)
            self._embed = trunk.embed_tokens
            reader.take(self._embed.weight)
            is_plain = self.config.model_type.startswith("gemma") and not hasattr(self._embed, "embed_scale")
            self._embed_scale = _rounded(self.config.hidden_size**0.5, self._embed.weight) if is_plain else None
            self.layers = [Layer(reader, module, index) for index, module in enumerate(trunk.layers)]
            self._norm = reader.norm(trunk, "norm")
            self._head = reader.linear(causal, "lm_head")
            self._tables = _Tables(trunk, self.config, [layer.attention.index for layer in self.layers])
        except (AttributeError, StopIteration) as error:
            raise InputError(f"{type(model).__name__} isn't in a form that this engine knows: {error}") from error
        reader.require_all(model, (trunk, causal.lm_head))
        self._cap = getattr(self.config, "final_logit_softcapping", None)
        self.key_heads = self.layers[0].attention.key_heads
        self.width = self.layers[0].attention.width

    def __call__(self, cache: KeyValues, tokens_BT: Any) -> Any:
        """Logits [B, V] of the last position, as the path `forward`; `cache` then has the positions of the tokens."""
        batch, length = tokens_BT.shape
        cache.require_room(batch, length)
        with scope("forward"):
            with scope("embed_tokens"):
                x_BTH = self._embed(tokens_BT)
                if self._embed_scale is not None:  # Gemma 2's, before transformers 5
                    x_BTH = x_BTH * self._embed_scale
            tables = self._tables(x_BTH, cache.filled)
            for layer, table in zip(self.layers, tables, strict=True):
                with scope(layer.name):
                    x_BTH = layer(x_BTH, table, cache)
            last_BH = self._norm(x_BTH)[:, -1].contiguous()
            logits_BV = self._head(last_BH)
            if self._cap is not None:
                with scope("logit_softcap"):
                    logits_BV = (logits_BV / self._cap).tanh() * self._cap
        cache.filled += length
        return logits_BV


def _rounded(value: float, like: Any) -> float:
    import torch

    return float(torch.tensor(value, dtype=like.dtype))


class _Tables:
    """The rotary table of each layer: cosines and sines [B, T, D]. Gemma 3's sliding layers have another."""

    def __init__(self, trunk: Any, config: Any, layers: Sequence[int]) -> None:
        self._module = trunk.rotary_emb
        self._local = getattr(trunk, "rotary_emb_local", None)  # before transformers 5
        self._takes_kind = "layer_type" in inspect.signature(self._module.forward).parameters
        kinds = getattr(config, "layer_types", None)
        if self._local is not None:
            self._kinds = ["local" if window_of(config, trunk.layers[i].self_attn, i) else "" for i in layers]
        else:
            self._kinds = [kinds[i] if self._takes_kind and kinds is not None else "" for i in layers]

    def __call__(self, x_BTH: Any, first: int) -> list[tuple[Any, Any]]:
        import torch

        batch, length, _ = x_BTH.shape
        with scope("rotary_emb"):
            positions_BT = torch.arange(first, first + length, device=x_BTH.device).expand(batch, -1).contiguous()
            found = {kind: self._of(kind, x_BTH, positions_BT) for kind in dict.fromkeys(self._kinds)}
        return [found[kind] for kind in self._kinds]

    def _of(self, kind: str, x_BTH: Any, positions_BT: Any) -> tuple[Any, Any]:
        if self._takes_kind:
            return self._module(x_BTH, positions_BT, kind)  # type: ignore[no-any-return]
        return (self._local if kind else self._module)(x_BTH, positions_BT)  # type: ignore[no-any-return,misc]
