"""A transformers model with the weights of a GGUF file, widened as they are read. No code is run.

transformers can read such files too; this way needs no second reading of the header, refuses what it leaves out (Llama
3.1's rope, biases), and gives both engines the same numbers. Left out: models that aren't in `gguf.families`.
"""

import math
from collections.abc import Mapping
from typing import Any

from inferometer.architectures.limits import require_sizes
from inferometer.engines.gguf.model import GgufModel
from inferometer.engines.hf.loading import ITEM_BYTES, build_blank, materialise, require_layers
from inferometer.engines.hf.weight_files import require_fit
from inferometer.engines.memory import memory_for, require_memory

_BLOCK = 2**20  # numbers widened at once


def load_gguf(model: GgufModel, *, device: str, dtype: str) -> Any:
    """The model of a file, in `dtype` on `device`.

    Raises:
        InputError: Weights that don't fit the metadata, or that transformers refuses.
        FormatError: The metadata has a size that can't be right.
        Unavailable: transformers or the gguf library isn't there, or too little memory.
    """
    where = str(model.path)
    require_sizes(model.fields, where)
    require_layers(where, model.fields, model.tensors)
    what = f"{model.path.name}: weights in {dtype}"
    weight_bytes = sum(math.prod(tensor.shape) for tensor in model.tensors.values()) * ITEM_BYTES[dtype]
    require_memory(what, weight_bytes, device)
    built = build_blank(where, model.fields, device, dtype)
    _require_fit(model, dict(built.named_parameters()))
    with memory_for(what, weight_bytes, device):
        materialise(built, device)
        built.tie_weights()
        for name, weight in built.named_parameters():
            _fill(model, name, weight)
    return built


def _require_fit(model: GgufModel, wanted: Mapping[str, Any]) -> None:
    """Every weight is in the file, in its shape, and the file has no other."""
    found = {name: list(tensor.shape) for name, tensor in model.tensors.items()}
    require_fit(
        model.path,
        missing=wanted.keys() - found.keys(),
        unexpected=sorted(found.keys() - wanted.keys()),
        of_another_shape=[
            f"{name} {found[name]} for {list(weight.shape)}"
            for name, weight in wanted.items()
            if name in found and found[name] != list(weight.shape)
        ],
    )


def _fill(model: GgufModel, name: str, weight: Any) -> None:
    import torch

    rows = weight.shape[0]
    step = max(1, _BLOCK // max(1, weight.numel() // rows))
    with torch.no_grad():
        for at in range(0, rows, step):
            end = min(at + step, rows)
            weight[at:end].copy_(torch.from_numpy(model.floats(name, at, end)))
