"""Gemma 2: norms around both halves of a layer, capped scores and logits, a window in every other layer.

Source: the published `config.json` of Gemma 2; the class `Gemma2Config`, by which the even layers have the window.
"""

from collections.abc import Iterator

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, sandwich_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, with_window
from inferometer.architectures.model import Model

_WINDOW = 4096


def _read(config: Config) -> Model:
    model = msgspec.structs.replace(
        read_decoder(config, tied=True, defaults={"head_dim": 256}),
        attention_softcap=config.is_number("attn_logit_softcapping", default=True),
        logit_softcap=config.is_number("final_logit_softcapping", default=True),
    )
    sliding = config.sliding_layers(model.layers)
    layers = range(0, model.layers, 2) if sliding is None else sliding
    window = config.optional_integer("sliding_window") if "sliding_window" in config.fields else _WINDOW
    return with_window(model, window, layers)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return sandwich_decoder(model, step, grouped_query_attention)


ARCHITECTURE = Architecture(name="gemma2", model_types=("gemma2",), read=_read, calls=_calls)
