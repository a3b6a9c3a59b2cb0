"""Llama, and Mistral, which differs by a window over all its layers.

Source: the published `config.json` of Llama 3 and Mistral 7B; class defaults of `LlamaConfig` and `MistralConfig`.
"""

from collections.abc import Iterator

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, with_window
from inferometer.architectures.model import Model


def _read(config: Config) -> Model:
    model = read_decoder(config, tied=False)
    model = msgspec.structs.replace(model, ffn_bias=config.flag("mlp_bias", default=False))
    if model.architecture != "mistral":  # Llama's class has no window, whatever a file says
        return model
    sliding = config.sliding_layers(model.layers)
    layers = range(model.layers) if sliding is None else sliding
    return with_window(model, config.optional_integer("sliding_window"), layers)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return pre_norm_decoder(model, step, grouped_query_attention)


ARCHITECTURE = Architecture(name="llama", model_types=("llama", "mistral"), read=_read, calls=_calls)
