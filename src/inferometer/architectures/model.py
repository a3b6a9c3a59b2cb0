"""The dimensions of one model: what decides which operators a step calls, and how large they are."""

import msgspec


class Mixture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Layers whose feed-forward part is a mixture of experts.

    Attributes:
        layers: Which these are.
        experts: Routed experts of such a layer.
        each: How many of them a token is sent to.
        width: The intermediate width of one.
        shared_width: That of the expert that every token passes, or of several together; None without.
        shared_gate: A learned weight for a token scales what the shared expert gives.
        router_bias: The router has a correction for each expert.
    """

    layers: tuple[int, ...]
    experts: int
    each: int
    width: int
    shared_width: int | None = None
    shared_gate: bool = False
    router_bias: bool = False


class Latent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Attention whose keys and values are cached as one compressed vector (DeepSeek's MLA).

    Attributes:
        rank: Width of that vector.
        query_rank: Width of compressed queries; None where they aren't compressed.
        nope: Part of a query or key head without positions.
        rope: Part with positions, which all key heads share.
        value: Width of a value head.
    """

    rank: int
    query_rank: int | None
    nope: int
    rope: int
    value: int

    @property
    def cached_width(self) -> int:
        """Numbers that a position adds to a layer's cache."""
        return self.rank + self.rope


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decoder-only language model as plain integers; None where its family has no such thing.

    Attributes:
        name: What reports call it.
        architecture: The configuration's `model_type`, which decides the family (`gemma3_text`).
        source: The file or the published configuration that the numbers are from.
        dtype: The type that the weights were published in (`bfloat16`), if the configuration says so.
        layers: Decoder layers.
        hidden: Width of the residual stream.
        vocab: Rows of the embedding table.
        heads: Query heads of a layer.
        kv_heads: Key and value heads of a layer; with latent attention, those of the expanded form.
        head_dim: Width of a query or key head; not always `hidden / heads`.
        intermediate: Width of a dense feed-forward layer; None where every layer has experts.
        activation: Its function, as the configuration names it (`silu`, `gelu_pytorch_tanh`).
        tied_embeddings: The output projection is the embedding table, held once.
        qkv_bias: The query, key and value projections add a bias.
        o_bias: The output projection of attention does.
        ffn_bias: The dense feed-forward projections do.
        attention_softcap: Scores go through a scaled tanh before the softmax.
        logit_softcap: The logits do.
        sliding_window: Positions that a token sees in a sliding layer, itself included.
        sliding_layers: The layers with that window.
        mixture: Its mixture of experts.
        latent: Its latent attention.
        defaulted: Fields that the configuration leaves out; they are its class's defaults.
    """

    name: str
    architecture: str
    source: str
    dtype: str | None = None
    layers: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int | None = None
    activation: str
    tied_embeddings: bool
    qkv_bias: bool = False
    o_bias: bool = False
    ffn_bias: bool = False
    attention_softcap: bool = False
    logit_softcap: bool = False
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()
    mixture: Mixture | None = None
    latent: Latent | None = None
    defaulted: tuple[str, ...] = ()

    def window(self, layer: int) -> int | None:
        """Positions that a token of this layer sees at most, itself included; None: all before it."""
        return self.sliding_window if layer in self.sliding_layers else None
