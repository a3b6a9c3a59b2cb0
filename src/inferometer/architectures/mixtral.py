"""Mixtral: Mistral with a mixture of experts in every layer.

Source: the published `config.json` of Mixtral 8x7B; the class `MixtralConfig`. `intermediate_size` is an expert's.
"""

from collections.abc import Iterator

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, read_mixture, with_window
from inferometer.architectures.model import Model


def _read(config: Config) -> Model:
    model = read_decoder(config, tied=False)
    every = range(model.layers)
    model = with_window(model, config.optional_integer("sliding_window"), every)
    mixture = read_mixture(config, experts="num_local_experts", width="intermediate_size", layers=every)
    return msgspec.structs.replace(model, intermediate=None, mixture=mixture)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return pre_norm_decoder(model, step, grouped_query_attention)


ARCHITECTURE = Architecture(name="mixtral", model_types=("mixtral",), read=_read, calls=_calls)
