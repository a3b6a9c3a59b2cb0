"""Which ops can't be replayed, and which libraries register those that PyTorch doesn't bring along.

Sources of the libraries: the torch bindings of vLLM, SGLang's sgl-kernel, AITER and flash-attention. A script says
what is missing where an import doesn't register the op.
"""

import re
from collections.abc import Mapping
from typing import Final

from inferometer.errors import InputError, clean

LIBRARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "aten": (),
    "prims": (),
    **dict.fromkeys(("_C", "_C_cache_ops"), ("vllm._C",)),
    "_moe_C": ("vllm._moe_C",),
    "_rocm_C": ("vllm._rocm_C",),
    "_vllm_fa2_C": ("vllm.vllm_flash_attn",),
    "_vllm_fa3_C": ("vllm.vllm_flash_attn",),
    "vllm": ("vllm", "vllm.model_executor.layers.utils", "vllm.model_executor.layers.fused_moe"),
    "sgl_kernel": ("sgl_kernel",),
    "sglang": ("sglang",),
    "aiter": ("aiter",),
    "flash_attn": ("flash_attn",),
    "flash_attn_3": ("flash_attn_interface",),
    "flashinfer": ("flashinfer",),
    "torchvision": ("torchvision",),
    "xformers": ("xformers.ops",),
}
"""Modules that register the ops of a namespace when they are imported."""

_OP: Final = re.compile(r"(?P<namespace>[A-Za-z_][A-Za-z0-9_]{0,99})::[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_COMPILED: Final = re.compile(r"triton_[a-z]+_|CompiledFunction|CompiledFxGraph|Torch-Compiled")
_NO_OPS: Final = {
    "sglang_profiler": "it is a function in Python that SGLang's profiler names, not a registered op",
    **dict.fromkeys(("c10d", "nccl", "symm_mem", "_C_custom_ar"), "it needs the group of processes that it ran in"),
}
_INDICES: Final = "the profiler doesn't record its list of index tensors"
_STATE: Final = "it works on what the engine keeps for a layer, which no argument holds"
_REASONS: Final = {
    **{f"aten::{name}": _INDICES for name in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")},
    **dict.fromkeys(
        (
            *("vllm::unified_attention", "vllm::unified_attention_with_output", "vllm::unified_kv_cache_update"),
            *("vllm::moe_forward", "vllm::moe_forward_shared", "vllm::all_reduce", "vllm::all_gather"),
        ),
        _STATE,
    ),
}


def check_op(op: str) -> tuple[str, ...]:
    """The libraries to import for this op.

    Raises:
        InputError: It can't be replayed; the message says why.
    """
    if reason := _reason(op):
        raise InputError(f"{clean(op):.200} can't be replayed: {reason}")
    return LIBRARIES.get(op.partition("::")[0], ())


def _reason(op: str) -> str | None:
    if _COMPILED.match(op):
        return "it is compiled code, which the file doesn't hold"
    match = _OP.fullmatch(op)
    if match is None:
        return "that isn't the name of a registered op, such as aten::mm"
    return _REASONS.get(op) or _NO_OPS.get(match["namespace"])
