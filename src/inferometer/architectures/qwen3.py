"""Qwen 3, dense: a norm over each query and key head instead of Qwen 2's biases; heads of 128.

Source: the published `config.json` of Qwen3; the class `Qwen3Config`.
"""

from collections.abc import Iterator
from functools import partial

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, with_upper_window
from inferometer.architectures.model import Model


def _read(config: Config) -> Model:
    return with_upper_window(config, read_decoder(config, tied=False, defaults={"head_dim": 128}))


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return pre_norm_decoder(model, step, partial(grouped_query_attention, head_norms=True))


ARCHITECTURE = Architecture(name="qwen3", model_types=("qwen3",), read=_read, calls=_calls)
