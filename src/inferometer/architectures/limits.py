"""How large a model's folder may say that it is; no size of a file is counted to or made room for before that.

Each figure is far above every published model, so that what is refused is a mistake or malice. Below them a size may
still be too much for a machine: weights are compared with memory, and `config.json` against the tensors of its folder.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferometer.errors import FormatError

LAYERS = 4_096
"""A step has some twenty calls per layer. Llama 3.1 405B has 126."""
EXPERTS = 8_192
"""Experts of a layer. DeepSeek V3 has 256."""
HEADS = 65_536
"""Gemma 3 27B has 32, DeepSeek V3 128."""
HEAD_DIM = 65_536
"""A table of rope has half as many numbers. DeepSeek's latents, the widest, have 576."""
WIDTH = 1 << 22
"""Of hidden and feed-forward layers. Llama 3.1 405B has 53,248."""
VOCABULARY = 1 << 24
"""Gemma 3 has 262,208."""
TENSORS = 1 << 18
"""Of a file of weights. DeepSeek V3 has some 91,000 in all: 59 layers of 256 experts, each three weights and scales."""
INTEGER = 1 << 32
"""Of anything else, positions too: Llama 4 has 10 million."""

FIELDS: Mapping[str, int] = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "num_nextn_predict_layers"), LAYERS),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts"), EXPERTS),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads"), HEADS),
    **dict.fromkeys(("head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank"), HEAD_DIM),
    **dict.fromkeys(("hidden_size", "intermediate_size", "moe_intermediate_size", "q_lora_rank"), WIDTH),
    **dict.fromkeys(("shared_expert_intermediate_size", "query_pre_attn_scalar", "image_size", "patch_size"), WIDTH),
    **dict.fromkeys(("vocab_size", "num_labels", "pad_token_id", "image_token_index"), VOCABULARY),
}
"""The largest value of each field, wherever it is in a configuration."""


def most_of(field: str) -> int:
    """The largest whole number that this field may have."""
    return FIELDS.get(field, INTEGER)


def require_sizes(config: Mapping[str, Any], where: str) -> None:
    """Hold every field of a configuration against its limit, those of inner objects too.

    Args:
        config: As decoded.
        where: Begins the message of an error.

    Raises:
        FormatError: One is above it; the message names the field.
    """
    for prefix, fields in _objects(config):
        for field, value in fields.items():
            if type(value) is int and value > most_of(field):
                found = f"{value:,}" if value < 10**24 else f"a number of {len(str(value))} digits"
                raise FormatError(f"{where}: {prefix}{field}: expected at most {most_of(field):,}, found {found}")
        padding, vocabulary = fields.get("pad_token_id"), fields.get("vocab_size")
        if type(padding) is int and type(vocabulary) is int and padding >= vocabulary:
            raise FormatError(
                f"{where}: {prefix}pad_token_id: expected a token below vocab_size ({vocabulary:,}), found {padding:,}"
            )


def _objects(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """It and every object in it, with where it is. Without recursion, since files may nest deeply."""
    waiting: list[tuple[str, Mapping[str, Any]]] = [("", config)]
    while waiting:
        prefix, fields = waiting.pop()
        yield prefix, fields
        waiting += [(f"{prefix}{field}.", value) for field, value in fields.items() if isinstance(value, dict)]
