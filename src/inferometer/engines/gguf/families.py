"""A GGUF file's names for a configuration and for weights, in transformers' words, and what it keeps in another form.

Source: `gguf-py/gguf/constants.py` and `convert_hf_to_gguf.py` of llama.cpp, read 2026-11-26, for keys, names and what
a conversion changes; `llama-model.cpp` for what follows from no key: Gemma's scales and windows, a factor of rope
without its type; ggml's `rope_yarn` for YaRN. What a conversion changes is changed back:

- rows of Llama's queries and keys lie in the order of rope in pairs, not in halves (`Family.pairs`)
- Gemma's norms have 1 added to their weights (`Family.norm_offset`)
- Llama 3.1's rope is a tensor of factors, one per frequency, not four numbers (`_llama3_scaling`)
- a head that is tied to the table isn't there

Left out: mixtures of experts, Gemma 1, LongRoPE, YaRN with settings that transformers hasn't.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inferometer.engines.gguf.metadata import Metadata
from inferometer.errors import InputError, UnknownName

ROPE_FACTORS = "rope_freqs.weight"
_TABLE, _HEAD = "token_embd.weight", "output.weight"
_LAYER = re.compile(r"blk\.([0-9]{1,9})\.(.+)")
_OTHER_FORM = "Take the model's safetensors, or another GGUF file of it."

_OUTSIDE = {_TABLE: "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", _HEAD: "lm_head.weight"}
_PROJECTIONS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
}
_TWO_NORMS = {"ffn_norm": "post_attention_layernorm"}
_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_LLAMA3_POSITIONS = 8_192  # what Llama 3.1's scaling stretches; no file says
_ATTENTION_FACTORS = ("attn_factor", "yarn_attn_factor")
_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0
_GEMMA_LOCAL_BASE, _GEMMA3_PATTERN, _GEMMA2_WINDOW = 10_000.0, 6, 4_096
_GEMMA2_CAPS = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
_GEMMA_27B = {"gemma2": 46, "gemma3": 62}  # layers, by which llama.cpp knows the ones that scale by hidden size / heads


@dataclass(frozen=True)
class Family:
    """One `general.architecture`.

    Attributes:
        model_type: transformers' name of it.
        norms: Names of a layer's norms but the first.
        more: Fields of the configuration that only it has.
        pairs: Rows of queries and keys have rope's two parts next to each other.
        norm_offset: What the file's norms have added to their weights.
    """

    model_type: str
    norms: Mapping[str, str]
    more: Callable[[Metadata, Mapping[str, Any]], Mapping[str, Any]]
    pairs: bool = False
    norm_offset: float = 0.0

    def name(self, tensor: str) -> str:
        """A tensor's name in transformers; one that has none there keeps its own."""
        if tensor in _OUTSIDE:
            return _OUTSIDE[tensor]
        found = _LAYER.fullmatch(tensor)
        part, _, kind = found[2].rpartition(".") if found else ("", "", "")
        module = _PROJECTIONS.get(part) or self.norms.get(part)
        return f"model.layers.{int(found[1])}.{module}.{kind}" if found and module else tensor

    def fields(self, metadata: Metadata, shapes: Mapping[str, tuple[int, ...]], rope_factors: Any) -> dict[str, Any]:
        """The fields of a `config.json`.

        Args:
            metadata: Of the file.
            shapes: Of its tensors, by its names.
            rope_factors: The numbers of `rope_freqs.weight`; None where there are none.

        Raises:
            FormatError: A key or a tensor is missing or wrong.
            InputError: The model isn't of a form that can be run here.
        """
        name = metadata.text("general.architecture")
        hidden = metadata.integer(f"{name}.embedding_length")
        heads = metadata.integer(f"{name}.attention.head_count")
        if _TABLE not in shapes:
            metadata.refuse(_TABLE, "the table of tokens", None)
        if not heads:
            metadata.refuse(f"{name}.attention.head_count", "a whole number from 1", heads)
        head_dim = metadata.integer(f"{name}.attention.key_length", hidden // heads)
        _require_form(metadata, name, head_dim)
        plain = {
            "model_type": self.model_type,
            "vocab_size": shapes[_TABLE][0],
            "hidden_size": hidden,
            "intermediate_size": metadata.integer(f"{name}.feed_forward_length"),
            "num_hidden_layers": metadata.integer(f"{name}.block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": metadata.integer(f"{name}.attention.head_count_kv", heads),
            "head_dim": head_dim,
            "rms_norm_eps": metadata.number(f"{name}.attention.layer_norm_rms_epsilon"),
            "max_position_embeddings": metadata.integer(f"{name}.context_length"),
            "tie_word_embeddings": _HEAD not in shapes,
            "attention_bias": "blk.0.attn_q.bias" in shapes,
            "rope_theta": metadata.number(f"{name}.rope.freq_base", 10_000.0),
            "rope_scaling": _scaling(metadata, name, head_dim, rope_factors),
            "bos_token_id": metadata.optional_integer("tokenizer.ggml.bos_token_id"),
            "eos_token_id": metadata.optional_integer("tokenizer.ggml.eos_token_id"),
        }
        return {**plain, **self.more(metadata, plain)}


def find_family(metadata: Metadata) -> Family:
    """The family of a file.

    Raises:
        FormatError: It names none.
        UnknownName: Another architecture than those of `FAMILIES`.
        InputError: It is a mixture of experts.
    """
    name = metadata.text("general.architecture")
    if name not in FAMILIES:
        raise UnknownName(f"architecture in {metadata.path} (general.architecture)", name, FAMILIES)
    experts = metadata.integer(f"{name}.expert_count", 0)
    if experts:
        raise InputError(
            f"{metadata.path}: {name}.expert_count: expected none, found {experts}",
            hint="Mixtures of experts are read from safetensors only.",
        )
    return FAMILIES[name]


def _require_form(metadata: Metadata, name: str, head_dim: int) -> None:
    """What the fields of a configuration can't say must be as transformers has it."""
    if not head_dim or head_dim % 2:
        metadata.refuse(f"{name}.attention.key_length", "an even number, for rope", head_dim)
    for key in (f"{name}.attention.value_length", f"{name}.rope.dimension_count"):
        found = metadata.integer(key, head_dim)
        if found != head_dim:
            raise InputError(
                f"{metadata.path}: {key}: expected the {head_dim} numbers of a key, found {found}", hint=_OTHER_FORM
            )


def _scaling(metadata: Metadata, name: str, head_dim: int, factors: Any) -> dict[str, Any] | None:
    """As `rope_scaling`; a factor without a type is linear, as llama.cpp has it."""
    of_rope = f"{name}.rope.scaling"
    kind = metadata.text(f"{of_rope}.type", "linear" if f"{of_rope}.factor" in metadata else "none")
    known = ("none", "linear", "yarn") if factors is None else ("none",)
    if kind not in known:
        wanted = f"{', '.join(known)}{'' if factors is None else f' next to {ROPE_FACTORS}'}"
        raise InputError(f"{metadata.path}: {of_rope}.type: expected {wanted}, found {kind}", hint=_OTHER_FORM)
    if factors is not None:
        return _llama3_scaling(metadata, name, head_dim, factors)
    for key in () if kind == "yarn" else _ATTENTION_FACTORS:
        if (found := _optional(metadata, f"{of_rope}.{key}")) not in (None, 1.0):
            raise InputError(
                f"{metadata.path}: {of_rope}.{key}: expected none without YaRN, found {found:g}", hint=_OTHER_FORM
            )
    if kind == "yarn":
        return _yarn_scaling(metadata, name)
    return {"rope_type": "linear", "factor": metadata.number(f"{of_rope}.factor")} if kind == "linear" else None


def _yarn_scaling(metadata: Metadata, name: str) -> dict[str, Any]:
    """YaRN: ggml's formula with an extrapolation of 1 is transformers'.

    Cosines and sines are multiplied by 1 + ln(factor) / 10, and by the factors of attention that the file has.
    """
    of_rope = f"{name}.rope.scaling"
    for key, plain in (("yarn_ext_factor", 1.0), ("yarn_log_multiplier", None)):
        if f"{of_rope}.{key}" in metadata and (found := metadata.number(f"{of_rope}.{key}")) != plain:
            wanted = "none" if plain is None else f"{plain:g}"
            raise InputError(f"{metadata.path}: {of_rope}.{key}: expected {wanted}, found {found:g}", hint=_OTHER_FORM)
    factor = metadata.number(f"{of_rope}.factor")
    given = {
        "original_max_position_embeddings": metadata.optional_integer(f"{of_rope}.original_context_length"),
        **{field: _optional(metadata, f"{of_rope}.yarn_{field}") for field in ("beta_fast", "beta_slow")},
    }
    more = [_optional(metadata, f"{of_rope}.{key}") for key in _ATTENTION_FACTORS]
    if any(more):
        plain = 1 + 0.1 * math.log(factor) if factor > 1 else 1
        given["attention_factor"] = plain * math.prod(each for each in more if each is not None)
    return {"rope_type": "yarn", "factor": factor, **{key: found for key, found in given.items() if found is not None}}


def _optional(metadata: Metadata, key: str) -> float | None:
    return metadata.number(key) if key in metadata else None


def _llama3_scaling(metadata: Metadata, name: str, head_dim: int, factors: Any) -> dict[str, Any]:
    """The four numbers that give these factors: the largest is of the longest waves, the others are Llama 3.1's.

    The factors must be those that the four numbers give, within the rounding of float32: nothing is taken on trust.
    """
    factor = float(factors.max())
    theta = metadata.number(f"{name}.rope.freq_base", 10_000.0)
    positions = metadata.integer(f"{name}.rope.scaling.original_context_length", _LLAMA3_POSITIONS)
    waves = 2 * np.pi * theta ** (2 * np.arange(len(factors)) / head_dim)
    blend = np.clip((positions / waves - _LLAMA3_LOW) / (_LLAMA3_HIGH - _LLAMA3_LOW), 0, 1)
    is_scaling = len(factors) == head_dim // 2 and 1 <= factor < np.inf
    if not is_scaling or not np.allclose(factors, 1 / ((1 - blend) / factor + blend), rtol=1e-4):
        raise InputError(
            f"{metadata.path}: {ROPE_FACTORS}: expected the factors of Llama 3.1's rope, found others", hint=_OTHER_FORM
        )
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": _LLAMA3_LOW,
        "high_freq_factor": _LLAMA3_HIGH,
        "original_max_position_embeddings": positions,
    }


def _plain(metadata: Metadata, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    key = f"{metadata.text('general.architecture')}.attention.sliding_window"
    window = metadata.integer(key, 0)
    if window:
        raise InputError(f"{metadata.path}: {key}: expected none, found {window}", hint=_OTHER_FORM)
    return {"hidden_act": "silu"}


def _gemma(metadata: Metadata, fields: Mapping[str, Any]) -> dict[str, Any]:
    name = metadata.text("general.architecture")
    layers, heads = fields["num_hidden_layers"], fields["num_attention_heads"]
    is_27b = layers == _GEMMA_27B[name]
    return {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": fields["hidden_size"] // heads if is_27b else fields["head_dim"],
    }


def _gemma2(metadata: Metadata, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    caps = {field: metadata.number(f"gemma2.{field}", default) for field, default in _GEMMA2_CAPS.items()}
    return {
        **_gemma(metadata, fields),
        **caps,
        "sliding_window": metadata.integer("gemma2.attention.sliding_window", _GEMMA2_WINDOW),
    }


def _gemma3(metadata: Metadata, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    pattern = metadata.integer("gemma3.attention.sliding_window_pattern", _GEMMA3_PATTERN)
    if not pattern:
        metadata.refuse("gemma3.attention.sliding_window_pattern", "a whole number from 1", pattern)
    return {
        **_gemma(metadata, fields),
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "sliding_window": metadata.integer("gemma3.attention.sliding_window"),
        "sliding_window_pattern": pattern,
        "rope_local_base_freq": metadata.number("gemma3.rope.freq_base_swa", _GEMMA_LOCAL_BASE),
    }


FAMILIES: Mapping[str, Family] = {
    "llama": Family("llama", _TWO_NORMS, _plain, pairs=True),
    "qwen2": Family("qwen2", _TWO_NORMS, _plain),
    "qwen3": Family("qwen3", _TWO_NORMS, _plain),
    "gemma2": Family("gemma2", _FOUR_NORMS, _gemma2, norm_offset=1.0),
    "gemma3": Family("gemma3_text", _FOUR_NORMS, _gemma3, norm_offset=1.0),
}
"""By `general.architecture`."""
