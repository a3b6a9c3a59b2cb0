"""A `config.json` as a `ModelSpec`: what decides numbers, besides the dimensions that `architectures` reads.

Source: transformers 5, `configuration_*.py`, for defaults. What the engine can't compute exactly is refused.
Left out: Mistral. Rope is in `rope.py`.
"""

from collections.abc import Mapping
from typing import Literal

from inferometer.architectures.architecture import find_architecture
from inferometer.architectures.config import Config
from inferometer.architectures.model import Model
from inferometer.engines.webgpu.model_spec import Experts, Family, ModelSpec
from inferometer.engines.webgpu.weights.fields import number, refuse
from inferometer.engines.webgpu.weights.rope import read_ropes
from inferometer.errors import UnknownName

FAMILIES: Mapping[str, Family] = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "gemma3": "gemma3",
    "mixtral": "mixtral",
    "qwen2_moe": "qwen2_moe",
    "qwen3_moe": "qwen3_moe",
}
"""The `model_type`s that the engine runs."""

_EPS, _MIXTRAL_EPS = 1e-6, 1e-5  # of all classes but Mixtral's
_GEMMAS = ("gemma2", "gemma3")
_GEMMA_QUERY_SCALAR = 256
_SOFTCAPS = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}  # of Gemma 2, where left out
_ACTIVATIONS: Mapping[str, Literal["silu", "gelu_tanh"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}


def read_spec(config: Config) -> ModelSpec:
    """The model of a configuration, as `architectures.config.open_config` or `config_of` gives it.

    Raises:
        UnknownName: Another family.
        FormatError: A field is missing or wrong; the message names it.
        InputError: The engine can't compute what a field asks for.
    """
    kind = config.text("model_type")
    if kind not in FAMILIES:
        raise UnknownName("architecture (model_type)", kind, FAMILIES)
    family = FAMILIES[kind]
    model = find_architecture(kind).read(config)
    is_gemma = family in _GEMMAS
    _require_computable(config, model)
    kinds = tuple("sliding_attention" if model.window(i) else "full_attention" for i in range(model.layers))
    ropes = read_ropes(config, model.head_dim, by_kind=family == "gemma3")
    names = [name for name in ropes if len(ropes) == 1 or name in kinds]
    factor = ropes[names[0]].factor  # one for all: Gemma 3 has none
    scalar = number(config, "query_pre_attn_scalar", _GEMMA_QUERY_SCALAR) if is_gemma else model.head_dim
    return ModelSpec(
        name=config.name,
        family=family,
        vocab=model.vocab,
        hidden=model.hidden,
        layers=model.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        intermediate=model.intermediate or 0,
        eps=number(config, "rms_norm_eps", _MIXTRAL_EPS if family == "mixtral" else _EPS),
        norm_offset=1.0 if is_gemma else 0.0,
        sandwich=is_gemma,
        head_norms=family in ("gemma3", "qwen3", "qwen3_moe"),
        qkv_bias=model.qkv_bias,
        o_bias=model.o_bias,
        ffn_bias=model.ffn_bias,
        experts=_experts(config, model),
        activation=_activation(config, is_gemma=is_gemma),
        embed_scale=model.hidden**0.5 if is_gemma else 1.0,  # transformers rounds it to the weights' dtype
        attention_scale=float(scalar**-0.5) * factor**2,  # of queries, and of keys
        attention_softcap=_softcap(config, "attn_logit_softcapping", is_set=model.attention_softcap),
        logit_softcap=_softcap(config, "final_logit_softcapping", is_set=model.logit_softcap),
        tied=model.tied_embeddings,
        windows=tuple(model.window(layer) for layer in range(model.layers)),
        rope_of=tuple(names.index(kind) if len(ropes) > 1 else 0 for kind in kinds),
        inverse_frequencies=tuple(ropes[name].inverse_frequencies for name in names),
        context_limit=config.optional_integer("max_position_embeddings"),
    )


def _experts(config: Config, model: Model) -> Experts | None:
    """Mixtral's class has no `norm_topk_prob`, and does it."""
    mixture = model.mixture
    if mixture is None:
        return None
    return Experts(
        layers=mixture.layers,
        count=mixture.experts,
        each=mixture.each,
        size=mixture.width,
        renormalize=model.architecture == "mixtral" or config.flag("norm_topk_prob", default=False),
        shared_size=mixture.shared_width,
    )


def _softcap(config: Config, field: str, *, is_set: bool) -> float | None:
    return number(config, field, _SOFTCAPS[field]) if is_set else None


def _require_computable(config: Config, model: Model) -> None:
    family = FAMILIES[model.architecture]
    has_caps = family == "gemma2"  # transformers' Gemma 3 has the fields too, and doesn't cap its scores
    if config.fields.get("quantization_config") is not None:
        refuse(config, "quantization_config", "no quantized weights", "them")
    for field, is_set in (
        ("attn_logit_softcapping", model.attention_softcap and not has_caps),
        ("final_logit_softcapping", model.logit_softcap and not has_caps),
        ("attention_bias", model.o_bias and family in _GEMMAS),
        ("use_bidirectional_attention", config.flag("use_bidirectional_attention", default=False)),
    ):
        if is_set:
            refuse(config, field, "none", config.fields.get(field))
    if model.head_dim % 2:
        refuse(config, "head_dim", "an even number, for rope", model.head_dim)
    if number(config, "partial_rotary_factor", 1.0) != 1.0:
        refuse(config, "partial_rotary_factor", "1", config.fields.get("partial_rotary_factor"))
    slides_nowhere = family in _GEMMAS and not model.sliding_layers
    if slides_nowhere and config.sliding_layers(model.layers) != ():
        config.refuse("sliding_window", "expected a whole number from 1, for layers that slide", None)
    if model.intermediate is None and model.mixture is None:
        config.refuse("intermediate_size", "expected a whole number from 1", None)


def _activation(config: Config, *, is_gemma: bool) -> Literal["silu", "gelu_tanh"]:
    """Each class reads its own field; Gemma's is left out of multimodal configurations."""
    field, default = ("hidden_activation", "gelu_pytorch_tanh") if is_gemma else ("hidden_act", "silu")
    name = config.text(field, default=default)
    if name not in _ACTIVATIONS:
        refuse(config, field, f"one of {', '.join(_ACTIVATIONS)}", name)
    return _ACTIVATIONS[name]
