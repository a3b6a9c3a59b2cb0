"""GGUF files for tests, written without the gguf library: any metadata and tensors, and the bundled models as such."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines.webgpu.model_folders import random_tensors

from inferometer.engines.bundled import require_config

ALIGNMENT = 32
KINDS = {"<f4": 0, "<f2": 1, "<u2": 30}
"""ggml's number of a type by NumPy's; BF16 is given as its bits."""

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}
_NORMS = {
    False: {"post_attention_layernorm": "ffn_norm"},
    True: {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
    },
}


class Raw(tuple[int, tuple[int, ...], bytes]):
    """A tensor as it lies: type, shape with the rows first, bytes."""


class Wide(int):
    """A whole number that is written in 64 bits, with a sign."""


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value(found: Any) -> bytes:
    """A value with its type in front."""
    if isinstance(found, bytes):  # ready
        return found
    if isinstance(found, str):
        return struct.pack("<I", 8) + text(found)
    if isinstance(found, bool):
        return struct.pack("<I?", 7, found)
    if isinstance(found, Wide):
        return struct.pack("<Iq", 11, found)
    if isinstance(found, int):
        return struct.pack("<II", 4, found)
    if isinstance(found, float):
        return struct.pack("<If", 6, found)
    if found and isinstance(found[0], str):
        return struct.pack("<IIQ", 9, 8, len(found)) + b"".join(map(text, found))
    array = np.asarray(found)
    kind = {"i": 5, "f": 6, "b": 7}[array.dtype.kind]
    data = array.astype({5: "<i4", 6: "<f4", 7: "?"}[kind]).tobytes()
    return struct.pack("<IIQ", 9, kind, len(found)) + data


def gguf_bytes(
    metadata: Mapping[str, Any], tensors: Mapping[str, Any], *, version: int = 3, counts: tuple[int, int] | None = None
) -> bytes:
    """A file; `counts` of tensors and keys in place of the right ones."""
    head = [b"GGUF", struct.pack("<IQQ", version, *(counts or (len(tensors), len(metadata))))]
    head += [text(key) + value(found) for key, found in metadata.items()]
    data = b""
    for name, tensor in tensors.items():
        kind, shape, content = tensor if isinstance(tensor, Raw) else _plain(tensor)
        data += b"\0" * (-len(data) % ALIGNMENT)
        head.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(data)))
        data += content
    found = b"".join(head)
    return found + b"\0" * (-len(found) % ALIGNMENT) + data


def tiny_model(
    name: str, *, half: bool = False, weights: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata and tensors of a bundled model as a conversion of llama.cpp writes them.

    `half`: matrices in float16; `weights`: by transformers' names, of a family that the WebGPU engine doesn't know.
    """
    config = require_config(name).config
    kind = config["model_type"].removesuffix("_text")
    is_gemma = kind.startswith("gemma")
    prefix = {
        f"{kind}.{key}": config[field]
        for key, field in (
            ("block_count", "num_hidden_layers"),
            ("context_length", "max_position_embeddings"),
            ("embedding_length", "hidden_size"),
            ("feed_forward_length", "intermediate_size"),
            ("attention.head_count", "num_attention_heads"),
            ("attention.head_count_kv", "num_key_value_heads"),
            ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
            ("attention.key_length", "head_dim"),
            ("attention.value_length", "head_dim"),
            ("rope.freq_base", "rope_theta"),
            ("attention.sliding_window", "sliding_window"),
            ("attention.sliding_window_pattern", "sliding_window_pattern"),
            ("rope.freq_base_swa", "rope_local_base_freq"),
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
        )
        if config.get(field) is not None
    }
    metadata = {"general.architecture": kind, **prefix}
    tensors = {}
    for module, numbers in (weights or random_tensors(name)).items():
        heads = config["num_attention_heads" if ".q_proj" in module else "num_key_value_heads"]
        if kind == "llama" and (".q_proj" in module or ".k_proj" in module):
            numbers = in_pairs(numbers, heads)
        if is_gemma and module.endswith("norm.weight"):
            numbers = numbers + np.float32(1)
        is_half = half and numbers.ndim > 1
        tensors[_name(module, is_gemma=is_gemma)] = numbers.astype(np.float16 if is_half else np.float32)
    scaling = config.get("rope_scaling")
    if scaling:
        metadata[f"{kind}.rope.scaling.original_context_length"] = scaling["original_max_position_embeddings"]
        tensors["rope_freqs.weight"] = _llama3_factors(config, scaling)
    return metadata, tensors


def save_gguf(path: Path, name: str, *, more: Mapping[str, Any] | None = None, **options: Any) -> Path:
    """A bundled model as one file; `more` goes over its metadata, None takes a key away; `options` of `tiny_model`."""
    metadata, tensors = tiny_model(name, **options)
    whole = {key: found for key, found in {**metadata, **(more or {})}.items() if found is not None}
    path.write_bytes(gguf_bytes(whole, tensors))
    return path


def in_pairs(rows: Any, heads: int) -> Any:
    """Each head's first half of rows, one after the other with its second half: row i of either is 2i and 2i + 1."""
    width = len(rows) // heads
    found = np.empty_like(rows)
    for head in range(heads):
        for i in range(width // 2):
            found[head * width + 2 * i] = rows[head * width + i]
            found[head * width + 2 * i + 1] = rows[head * width + width // 2 + i]
    return found


def _name(module: str, *, is_gemma: bool) -> str:
    stem, _, kind = module.rpartition(".")
    names = {**_NAMES, **_NORMS[is_gemma]}
    if not stem.startswith("model.layers."):
        return f"{names[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{names[part]}.{kind}"


def _plain(array: Any) -> tuple[int, tuple[int, ...], bytes]:
    return KINDS[array.dtype.str], array.shape, array.tobytes()


def _llama3_factors(config: Mapping[str, Any], scaling: Mapping[str, Any]) -> Any:
    """By what each frequency is divided: the loop of llama.cpp's conversion, from Meta's formula."""
    found = []
    context, low, high = (
        scaling[key] for key in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor")
    )
    for i in range(0, config["head_dim"], 2):
        wave = 2 * np.pi * config["rope_theta"] ** (i / config["head_dim"])
        if wave < context / high:
            found.append(1.0)
        elif wave > context / low:
            found.append(scaling["factor"])
        else:
            blend = (context / wave - low) / (high - low)
            found.append(1 / ((1 - blend) / scaling["factor"] + blend))
    return np.array(found, np.float32)
