"""Rotary embeddings of a `config.json`: the angle of each pair of dimensions a position, a factor of queries and keys.

Source: transformers 5, `modeling_rope_utils.py`, for defaults and for both layouts of the fields (`rope_theta` with
`rope_scaling`, and `rope_parameters`). Left out: rope that depends on the length of the text (dynamic, longrope).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inferometer.architectures.config import Config
from inferometer.engines.webgpu.weights.fields import mapping, number, refuse

_THETA, _MIXTRAL_THETA = 10_000.0, 1_000_000.0
_GEMMA_THETA = {"full_attention": 1_000_000.0, "sliding_attention": 10_000.0}
_KINDS = ("default", "linear", "llama3", "yarn")
_YARN_FAST, _YARN_SLOW = 32.0, 1.0  # turns within the original context


@dataclass(frozen=True)
class Rope:
    """`inverse_frequencies`: radians a position, of each pair. `factor`: of the rotated queries, and of the keys."""

    inverse_frequencies: tuple[float, ...]
    factor: float


def read_ropes(config: Config, head_dim: int, *, by_kind: bool) -> dict[str, Rope]:
    """By kind of layer: Gemma 3 has one for full and one for sliding ones, the others `full_attention` alone.

    Raises:
        FormatError: A field is missing or wrong; the message names it.
        InputError: The engine can't compute what a field asks for.
    """
    given = _gemma_ropes(config) if by_kind else {"full_attention": _flat_rope(config)}
    ropes = {kind: _read(config, fields, head_dim) for kind, fields in given.items()}
    if by_kind and any(rope.factor != 1.0 for rope in ropes.values()):
        refuse(config, "rope_scaling", "none that scales attention, which not all layers would have", "yarn")
    return ropes


def _flat_rope(config: Config) -> dict[str, Any]:
    """Rope of a family that has one for all layers; `rope_scaling`, the older name, goes first as in transformers."""
    fields = mapping(config, "rope_scaling") or mapping(config, "rope_parameters")
    if any(isinstance(value, dict) for value in fields.values()):
        refuse(config, "rope_parameters", "one for all layers", f"several: {', '.join(fields)}")
    default = _MIXTRAL_THETA if config.text("model_type") == "mixtral" else _THETA
    theta = number(config, "rope_theta", default)
    return {"rope_theta": theta, **{key: value for key, value in fields.items() if value is not None}}


def _gemma_ropes(config: Config) -> dict[str, dict[str, Any]]:
    """Rope of full and of sliding layers; what `rope_scaling` says is of full ones only."""
    given = mapping(config, "rope_parameters")
    strange = [key for key in given if key not in _GEMMA_THETA]
    if strange:  # transformers would take no notice
        refuse(config, "rope_parameters", f"only {' and '.join(_GEMMA_THETA)}", ", ".join(strange))
    ropes = {}
    for kind, field in (("full_attention", "rope_theta"), ("sliding_attention", "rope_local_base_freq")):
        fields = given.get(kind) or {}
        if not isinstance(fields, dict):
            config.refuse(f"rope_parameters.{kind}", "expected an object", fields)
        scaling = mapping(config, "rope_scaling") if kind == "full_attention" else {}
        theta = number(config, field, _GEMMA_THETA[kind])
        own = {key: value for key, value in {**fields, **scaling}.items() if value is not None}
        ropes[kind] = {"rope_theta": theta, **own}
    return ropes


def _read(config: Config, fields: dict[str, Any], head_dim: int) -> Rope:
    """Angles in float32, as transformers computes them: that is what models were trained with."""
    rope = Config(fields, where=config.where, name=config.name, prefix="rope: ")
    kind = rope.text("rope_type", default=rope.text("type", default="default"))
    if kind not in _KINDS:
        refuse(rope, "rope_type", f"one of {', '.join(_KINDS)}", kind)
    if number(rope, "partial_rotary_factor", 1.0) != 1.0:
        refuse(rope, "partial_rotary_factor", "1", fields["partial_rotary_factor"])
    theta = np.float32(number(rope, "rope_theta", _THETA))
    powers = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    frequencies, factor = np.float32(1) / theta**powers, 1.0
    if kind == "linear":
        frequencies = frequencies / np.float32(number(rope, "factor", None))
    elif kind == "llama3":
        frequencies = _llama3(rope, frequencies, config.optional_integer("max_position_embeddings"))
    elif kind == "yarn":
        frequencies, factor = _yarn(rope, frequencies, config.optional_integer("max_position_embeddings"))
    return Rope(tuple(float(each) for each in frequencies), factor)


def _llama3(rope: Config, frequencies: Any, context_limit: int | None) -> Any:
    """Llama 3.1's: long waves are stretched by the factor, short ones kept, those between blended.

    Source: the rope of Meta's `llama-models` for 3.1, by way of transformers' `rope_type: llama3`.
    """
    factor = np.float32(number(rope, "factor", None))
    low, high = number(rope, "low_freq_factor", None), number(rope, "high_freq_factor", None)
    if high <= low:
        rope.refuse("high_freq_factor", f"expected more than low_freq_factor ({low:g})", high)
    context = rope.integer("original_max_position_embeddings", default=context_limit)
    waves = np.float32(2 * math.pi) / frequencies
    stretched = frequencies / factor
    blend = (np.float32(context) / waves - np.float32(low)) / np.float32(high - low)
    blended = (1 - blend) * stretched + blend * frequencies
    return np.where(waves > context / low, stretched, np.where(waves < context / high, frequencies, blended))


def _yarn(rope: Config, frequencies: Any, context_limit: int | None) -> tuple[Any, float]:
    """YaRN: pairs that turn seldom within the original context are stretched, fast ones kept, those between blended.

    Source: Peng et al., "YaRN" (arXiv 2309.00071), by way of transformers' `rope_type: yarn`.
    """
    context = rope.integer("original_max_position_embeddings", default=context_limit)
    if rope.fields.get("factor") is None and context_limit:
        factor = context_limit / context
    else:
        factor = number(rope, "factor", None)
    theta, dims = number(rope, "rope_theta", _THETA), 2 * len(frequencies)
    if theta <= 1:
        rope.refuse("rope_theta", "expected a number above 1", theta)

    def dimension(turns: float) -> float:
        return dims * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = dimension(number(rope, "beta_fast", _YARN_FAST))
    high = dimension(number(rope, "beta_slow", _YARN_SLOW))
    if rope.flag("truncate", default=True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    width = np.float32(high - low if high != low else 0.001)
    stretch = np.clip((np.arange(len(frequencies), dtype=np.float32) - np.float32(low)) / width, 0, 1)
    stretched = frequencies / np.float32(factor)
    return stretched * stretch + frequencies * (1 - stretch), _yarn_factor(rope, factor)


def _yarn_factor(rope: Config, factor: float) -> float:
    if rope.fields.get("attention_factor") is not None:
        return number(rope, "attention_factor", None)
    if rope.fields.get("mscale") and rope.fields.get("mscale_all_dim"):
        whole, all_dims = (number(rope, name, None) for name in ("mscale", "mscale_all_dim"))
        return _warmth(factor, whole) / _warmth(factor, all_dims)
    return _warmth(factor, 1.0)


def _warmth(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0
