"""Folders of models for tests, written without torch or the safetensors library."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inferometer.engines.bundled import require_config
from inferometer.engines.random_weights import numbers, spread
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots

DTYPES = {"<f2": "F16", "<u2": "BF16", "<f4": "F32", "<f8": "F64", "|i1": "I8"}
"""BF16 is given as its bits, uint16."""


def bfloat16(values: Any) -> Any:
    """The bits of numbers that BF16 holds exactly."""
    wide = np.asarray(values, np.float32).view(np.uint32)
    assert not (wide & 0xFFFF).any()
    return (wide >> 16).astype(np.uint16)


def header_of(tensors: Mapping[str, Any]) -> dict[str, Any]:
    header, at = {}, 0
    for name, array in tensors.items():
        offsets = [at, at := at + array.nbytes]
        header[name] = {"dtype": DTYPES[array.dtype.str], "shape": list(array.shape), "data_offsets": offsets}
    return header


def write_safetensors(path: Path, tensors: Mapping[str, Any], header: object = None, pad: int = 0) -> None:
    """A file; `header` in place of the right one, `pad` blanks behind it."""
    text = json.dumps(header_of(tensors) if header is None else header, ensure_ascii=False).encode() + b" " * pad
    path.write_bytes(
        b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in tensors.values())])
    )


def random_tensors(name: str, seed: int = 0) -> dict[str, Any]:
    """A bundled model's numbers under the names in files, float32."""
    return tensors_of(open_checkpoint(name).spec, seed)


def tensors_of(spec: ModelSpec, seed: int = 0) -> dict[str, Any]:
    """The same of any model."""
    found = {}
    for slot in weight_slots(spec).values():
        is_head = slot.tensor == "lm_head.weight" or (spec.tied and "embed_tokens" in slot.tensor)
        mean, deviation = spread(slot.tensor, slot.shape[-1], is_head=is_head, is_gemma=spec.sandwich)
        key, first = (slot.tensor, 0) if slot.joined is None else (slot.joined.tensor, slot.joined.first)
        last = first + int(np.prod(slot.shape))
        found[slot.tensor] = numbers(f"{seed} {key}", mean, deviation, first, last).reshape(slot.shape)
    return found


def save_model(folder: Path, name: str, tensors: Mapping[str, Any] | None = None, **fields: object) -> Path:
    """A bundled model as a folder with one file; `fields` go over its configuration's."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**require_config(name).config, **fields}))
    write_safetensors(folder / "model.safetensors", random_tensors(name) if tensors is None else tensors)
    return folder
