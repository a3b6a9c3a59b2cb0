"""What the planner must know of a model, and where it gets weights from.

Families: Gemma 2 and 3, Llama 3, Mixtral, Qwen 2.5 and 3, Qwen 2 and 3 MoE.
Weights have names by what they do, the same in every family:

    embed [V, D]   lm_head [V, D] (the same numbers where tied)   final_norm [D]
    layers.N.q [Hq*Dh, D]  k, v [Hkv*Dh, D]  o [D, Hq*Dh]  gate, up [F, D]  down [D, F]
    layers.N.q_bias, k_bias, v_bias    of Qwen 2.5
    layers.N.o_bias                    where `attention_bias` is set, with the three
    layers.N.gate_bias, up_bias [F], down_bias [D]   where `mlp_bias` is set
    layers.N.router [E, D]  experts.M.gate, experts.M.up [Fe, D]  experts.M.down [D, Fe]
                                       in place of gate, up, down, where a layer is a mixture of experts
    layers.N.shared_router [1, D]  shared_gate, shared_up [Fs, D]  shared_down [D, Fs]   of Qwen 2 MoE
    layers.N.q_norm, k_norm [Dh]       of Gemma 3 and Qwen 3, over each head
    layers.N.attention_norm, ffn_norm [D]            in front of both halves
    layers.N.attention_post_norm, ffn_post_norm [D]  after them, before the residual: Gemma's sandwich

V vocabulary, D hidden size, Hq and Hkv query and key heads, Dh head size, F feed-forward size; E
experts, Fe the size of one, Fs that of the one that every token passes.
"""

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from inferometer.backends.wgsl.weight_formats import WeightFormat

if TYPE_CHECKING:
    from inferometer.engines.chat.tokens import Tokenizer

Family = Literal["gemma2", "gemma3", "llama", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"]


class Experts(msgspec.Struct, frozen=True, kw_only=True):
    """Layers that are mixtures of experts.

    Attributes:
        layers: Which these are.
        count, each: E, and how many of them a token passes.
        size: Fe.
        renormalize: Weights of a token's experts add up to 1; else to what the softmax over all gave them.
        shared_size: Fs; None: there is none.
    """

    layers: tuple[int, ...]
    count: int
    each: int
    size: int
    renormalize: bool
    shared_size: int | None = None


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder-only model in plain numbers.

    Attributes:
        name: The folder's or the bundled one's.
        vocab, hidden, layers, heads, kv_heads, head_dim, intermediate: V, D, layers, Hq, Hkv, Dh, F; F is 0 where all
            layers have experts.
        eps: Of every norm.
        norm_offset: Norms scale by `norm_offset + weight`: 1 in Gemma.
        sandwich: Each half has a norm after it too.
        head_norms: Queries and keys pass a norm over the head before rope.
        qkv_bias: Query, key and value projections add a bias.
        o_bias: The output projection of attention does.
        ffn_bias: Those of the feed-forward do.
        experts: Its mixtures of experts.
        activation: `silu` or `gelu_tanh`, of the gate.
        embed_scale: The embedding's row is multiplied by this.
        attention_scale: Scores are multiplied by this.
        attention_softcap: Then they become `cap * tanh(score / cap)`, before the softmax; None: they don't.
        logit_softcap: The same of logits.
        tied: `lm_head` is `embed`.
        windows: For each layer the positions that a token sees, itself included; None: all before it.
        rope_of: For each layer an index in `inverse_frequencies`.
        inverse_frequencies: Tables of rope, each Dh/2 angles a position, scaling included.
        context_limit: Positions that it was made for.
    """

    name: str
    family: Family
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    eps: float
    norm_offset: float
    sandwich: bool
    head_norms: bool
    qkv_bias: bool
    o_bias: bool
    activation: Literal["silu", "gelu_tanh"]
    embed_scale: float
    attention_scale: float
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    ffn_bias: bool = False
    experts: Experts | None = None
    tied: bool
    windows: tuple[int | None, ...]
    rope_of: tuple[int, ...]
    inverse_frequencies: tuple[tuple[float, ...], ...]
    context_limit: int | None


class Checkpoint(Protocol):
    """A model's weights; nothing is decoded before it is asked for.

    Attributes:
        spec: The model.
        source: `random weights, seed 0`, or the folder.
        parameters: How many numbers; a tied table counts once.
        notes: What a reader must know: numbers that float16 rounds to zero or can't hold.
        config: Fields of its `config.json`.
        tokenizer: Its own.
    """

    spec: ModelSpec
    source: str
    parameters: int
    config: dict[str, Any]
    tokenizer: "Tokenizer"

    @property
    def notes(self) -> tuple[str, ...]:
        """As above; of what was read so far."""

    def matrix(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """Rows `first` to `last` as float16 [rows, K], C-contiguous. `lm_head` of a tied model gives `embed`."""

    def floats(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As `matrix`, in float32."""

    def own_format(self, name: str) -> WeightFormat:
        """Of a matrix on a device, where none is asked for: that which holds a quantized one exactly, else float16."""

    def rows(self, name: str, weights: WeightFormat, first: int = 0, last: int | None = None) -> Any:
        """As `matrix`, as they lie on a device: [rows, ...], `row_bytes` each. The own format is taken as it is."""

    def vector(self, name: str) -> Any:
        """A norm or bias as float32 [n]."""

    def source_bytes(self, name: str, first: int = 0, last: int | None = None) -> int:
        """Bytes that reading these rows takes from files; 0 of random weights."""
