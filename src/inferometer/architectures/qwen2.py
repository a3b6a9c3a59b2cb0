"""Qwen 2 and 2.5: as Llama, with a bias on queries, keys and values.

Source: the published `config.json` of Qwen2.5; the class `Qwen2Config`, whose window begins at `max_window_layers`.
"""

from collections.abc import Iterator

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, with_upper_window
from inferometer.architectures.model import Model


def _read(config: Config) -> Model:
    model = msgspec.structs.replace(read_decoder(config, tied=False), qkv_bias=True, o_bias=False)
    return with_upper_window(config, model)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return pre_norm_decoder(model, step, grouped_query_attention)


ARCHITECTURE = Architecture(name="qwen2", model_types=("qwen2",), read=_read, calls=_calls)
