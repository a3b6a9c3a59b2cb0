"""A `config.json` as a `ModelSpec`: what decides numbers, besides the dimensions that `architectures` reads.

Source: transformers 5, `configuration_*.py` and `modeling_rope_utils.py`, for defaults and for both layouts of rope's
fields (`rope_theta` with `rope_scaling`, and `rope_parameters`). What the engine can't compute exactly is refused.
Left out: Mistral, mixtures of experts, soft caps, rope that depends on the length (dynamic, yarn, longrope).
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

import numpy as np

from inferometer.architectures.architecture import find_architecture
from inferometer.architectures.config import Config
from inferometer.architectures.model import Model
from inferometer.engines.webgpu.model_spec import Family, ModelSpec
from inferometer.errors import InputError, UnknownName

FAMILIES: Mapping[str, Family] = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma3_text": "gemma3",
    "gemma3": "gemma3",
}
"""The `model_type`s that the engine runs."""

_EPS = 1e-6  # of all four classes
_THETA = 10_000.0
_GEMMA_THETA = {"full_attention": 1_000_000.0, "sliding_attention": 10_000.0}
_GEMMA_QUERY_SCALAR = 256
_ACTIVATIONS: Mapping[str, Literal["silu", "gelu_tanh"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_ROPES = ("default", "linear", "llama3")
_CANT = "The WebGPU engine can't run that; `inferometer chat` without --engine webgpu runs it with PyTorch."


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
    is_gemma = family == "gemma3"
    _require_computable(config, model)
    kinds = tuple("sliding_attention" if model.window(i) else "full_attention" for i in range(model.layers))
    ropes = _gemma_ropes(config) if is_gemma else {"full_attention": _flat_rope(config)}
    tables = {name: _frequencies(config, fields, model.head_dim) for name, fields in ropes.items()}
    names = [name for name in tables if not is_gemma or name in kinds]
    scalar = _number(config, "query_pre_attn_scalar", _GEMMA_QUERY_SCALAR) if is_gemma else model.head_dim
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
        eps=_number(config, "rms_norm_eps", _EPS),
        norm_offset=1.0 if is_gemma else 0.0,
        sandwich=is_gemma,
        head_norms=family in ("gemma3", "qwen3"),
        qkv_bias=model.qkv_bias,
        activation=_activation(config, is_gemma=is_gemma),
        embed_scale=model.hidden**0.5 if is_gemma else 1.0,  # transformers rounds it to the weights' dtype
        attention_scale=float(scalar**-0.5),
        tied=model.tied_embeddings,
        windows=tuple(model.window(layer) for layer in range(model.layers)),
        rope_of=tuple(names.index(kind) if is_gemma else 0 for kind in kinds),
        inverse_frequencies=tuple(tables[name] for name in names),
        context_limit=config.optional_integer("max_position_embeddings"),
    )


def _require_computable(config: Config, model: Model) -> None:
    if config.fields.get("quantization_config") is not None:
        _refuse(config, "quantization_config", "no quantized weights", "them")
    for field, is_set in (
        ("attn_logit_softcapping", model.attention_softcap),
        ("final_logit_softcapping", model.logit_softcap),
        ("attention_bias", model.o_bias),
        ("mlp_bias", model.ffn_bias),
        ("use_bidirectional_attention", config.flag("use_bidirectional_attention", default=False)),
    ):
        if is_set:
            _refuse(config, field, "none", config.fields.get(field))
    if model.head_dim % 2:
        _refuse(config, "head_dim", "an even number, for rope", model.head_dim)
    if _number(config, "partial_rotary_factor", 1.0) != 1.0:
        _refuse(config, "partial_rotary_factor", "1", config.fields.get("partial_rotary_factor"))
    slides_nowhere = FAMILIES[model.architecture] == "gemma3" and not model.sliding_layers
    if slides_nowhere and config.sliding_layers(model.layers) != ():
        config.refuse("sliding_window", "expected a whole number from 1, for layers that slide", None)
    if model.intermediate is None:
        config.refuse("intermediate_size", "expected a whole number from 1", None)


def _activation(config: Config, *, is_gemma: bool) -> Literal["silu", "gelu_tanh"]:
    """Each class reads its own field; Gemma's is left out of multimodal configurations."""
    field, default = ("hidden_activation", "gelu_pytorch_tanh") if is_gemma else ("hidden_act", "silu")
    name = config.text(field, default=default)
    if name not in _ACTIVATIONS:
        _refuse(config, field, f"one of {', '.join(_ACTIVATIONS)}", name)
    return _ACTIVATIONS[name]


def _flat_rope(config: Config) -> dict[str, Any]:
    """Rope of a family that has one for all layers; `rope_scaling`, the older name, goes first as in transformers."""
    fields = _mapping(config, "rope_scaling") or _mapping(config, "rope_parameters")
    if any(isinstance(value, dict) for value in fields.values()):
        _refuse(config, "rope_parameters", "one for all layers", f"several: {', '.join(fields)}")
    theta = _number(config, "rope_theta", _THETA)
    return {"rope_theta": theta, **{key: value for key, value in fields.items() if value is not None}}


def _gemma_ropes(config: Config) -> dict[str, dict[str, Any]]:
    """Rope of full and of sliding layers; what `rope_scaling` says is of full ones only."""
    given = _mapping(config, "rope_parameters")
    strange = [key for key in given if key not in _GEMMA_THETA]
    if strange:  # transformers would take no notice
        _refuse(config, "rope_parameters", f"only {' and '.join(_GEMMA_THETA)}", ", ".join(strange))
    ropes = {}
    for kind, field in (("full_attention", "rope_theta"), ("sliding_attention", "rope_local_base_freq")):
        fields = given.get(kind) or {}
        if not isinstance(fields, dict):
            config.refuse(f"rope_parameters.{kind}", "expected an object", fields)
        scaling = _mapping(config, "rope_scaling") if kind == "full_attention" else {}
        theta = _number(config, field, _GEMMA_THETA[kind])
        own = {key: value for key, value in {**fields, **scaling}.items() if value is not None}
        ropes[kind] = {"rope_theta": theta, **own}
    return ropes


def _frequencies(config: Config, fields: dict[str, Any], head_dim: int) -> tuple[float, ...]:
    """Angles a position, in float32 as transformers computes them: that is what models were trained with."""
    rope = Config(fields, where=config.where, name=config.name, prefix="rope: ")
    kind = rope.text("rope_type", default=rope.text("type", default="default"))
    if kind not in _ROPES:
        _refuse(rope, "rope_type", f"one of {', '.join(_ROPES)}", kind)
    if _number(rope, "partial_rotary_factor", 1.0) != 1.0:
        _refuse(rope, "partial_rotary_factor", "1", fields["partial_rotary_factor"])
    theta = np.float32(_number(rope, "rope_theta", _THETA))
    powers = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    frequencies = np.float32(1) / theta**powers
    if kind == "linear":
        frequencies = frequencies / np.float32(_number(rope, "factor", None))
    elif kind == "llama3":
        frequencies = _llama3(rope, frequencies, config.optional_integer("max_position_embeddings"))
    return tuple(float(each) for each in frequencies)


def _llama3(rope: Config, frequencies: Any, context_limit: int | None) -> Any:
    """Llama 3.1's: long waves are stretched by the factor, short ones kept, those between blended.

    Source: the rope of Meta's `llama-models` for 3.1, by way of transformers' `rope_type: llama3`.
    """
    factor = np.float32(_number(rope, "factor", None))
    low, high = _number(rope, "low_freq_factor", None), _number(rope, "high_freq_factor", None)
    if high <= low:
        rope.refuse("high_freq_factor", f"expected more than low_freq_factor ({low:g})", high)
    context = rope.integer("original_max_position_embeddings", default=context_limit)
    waves = np.float32(2 * math.pi) / frequencies
    stretched = frequencies / factor
    blend = (np.float32(context) / waves - np.float32(low)) / np.float32(high - low)
    blended = (1 - blend) * stretched + blend * frequencies
    return np.where(waves > context / low, stretched, np.where(waves < context / high, frequencies, blended))


def _mapping(config: Config, name: str) -> dict[str, Any]:
    value = config.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        config.refuse(name, "expected an object", value)
    return value


def _number(config: Config, name: str, default: float | None) -> float:
    """A number above 0; `default` None: it must be there."""
    value = config.fields.get(name)
    if value is None and default is not None:
        return float(default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e30:
        config.refuse(name, "expected a number above 0", value)
    return float(value)


def _refuse(config: Config, field: str, wanted: str, found: object) -> NoReturn:
    raise InputError(f"{config.where}: {field}: expected {wanted}, found {found}", hint=_CANT)
