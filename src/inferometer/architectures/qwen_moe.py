"""Qwen's mixtures of experts: Qwen2-MoE with a shared expert and its gate, Qwen3-MoE with neither.

Source: the published `config.json` of Qwen1.5-MoE-A2.7B and Qwen3-30B-A3B; the classes `Qwen2MoeConfig` and
`Qwen3MoeConfig`. Attention is that of the dense models. A window without `layer_types` is refused: the
classes' rules for it have changed, and no published model uses one.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, read_mixture, with_window
from inferometer.architectures.model import Model


def _read(config: Config) -> Model:
    model = read_decoder(config, tied=False)
    layers = _expert_layers(config, model.layers)
    mixture = read_mixture(config, experts="num_experts", width="moe_intermediate_size", layers=layers)
    if model.architecture == "qwen2_moe":
        model = msgspec.structs.replace(model, qkv_bias=config.flag("qkv_bias", default=True), o_bias=False)
        shared = config.integer("shared_expert_intermediate_size")
        mixture = mixture and msgspec.structs.replace(mixture, shared_width=shared, shared_gate=True)
    return _with_window(config, msgspec.structs.replace(model, mixture=mixture))


def _expert_layers(config: Config, layers: int) -> tuple[int, ...]:
    """Every layer whose number from 1 is a multiple of the step, but not those listed as dense."""
    every, dense = config.optional_integer("decoder_sparse_step") or 1, frozenset(config.integers("mlp_only_layers"))
    return tuple(layer for layer in range(layers) if (layer + 1) % every == 0 and layer not in dense)


def _with_window(config: Config, model: Model) -> Model:
    if not config.flag("use_sliding_window", default=False):
        return model
    layers = config.sliding_layers(model.layers)
    if layers is None:
        config.refuse("layer_types", "expected it given where use_sliding_window is true", None)
    return with_window(model, config.integer("sliding_window"), layers)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    attention = partial(grouped_query_attention, head_norms=model.architecture == "qwen3_moe")
    return pre_norm_decoder(model, step, attention)


ARCHITECTURE = Architecture(name="qwen_moe", model_types=("qwen2_moe", "qwen3_moe"), read=_read, calls=_calls)
