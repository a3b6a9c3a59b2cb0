"""Gemma 3, its language model: Gemma 2 with norms over heads instead of caps, and a window in five of six layers.

Source: the published `config.json` of Gemma 3; the class `Gemma3TextConfig`, whose defaults the multimodal models'
configurations leave out (their `text_config` has no number of heads).
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import grouped_query_attention, sandwich_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, with_window
from inferometer.architectures.model import Model

_DEFAULTS = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}
_PATTERN = 6  # every sixth layer sees everything
_WINDOW = 4096


def _read(config: Config) -> Model:
    model = msgspec.structs.replace(
        read_decoder(config, tied=True, defaults=_DEFAULTS),
        attention_softcap=config.is_number("attn_logit_softcapping", default=False),
        logit_softcap=config.is_number("final_logit_softcapping", default=False),
    )
    sliding = config.sliding_layers(model.layers)
    if sliding is None:
        pattern = config.optional_integer("sliding_window_pattern")
        pattern = pattern or config.optional_integer("_sliding_window_pattern") or _PATTERN
        sliding = tuple(layer for layer in range(model.layers) if (layer + 1) % pattern)
    window = config.optional_integer("sliding_window") if "sliding_window" in config.fields else _WINDOW
    return with_window(model, window, sliding)


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return sandwich_decoder(model, step, partial(grouped_query_attention, head_norms=True))


ARCHITECTURE = Architecture(name="gemma3", model_types=("gemma3_text", "gemma3"), read=_read, calls=_calls)
