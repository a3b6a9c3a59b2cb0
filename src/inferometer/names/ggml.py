"""ggml, the library under llama.cpp: pipelines of Vulkan, kernels of Metal and templates of HIP and CUDA.

`<op>_<types>[_…]` (Vulkan), `kernel_<op>_<types>` (Metal, and ports of it to HIP, which have parameters),
`mul_mat_vec_q<(ggml_type)12,…>`: source: ggml's public repository. SGLang and vLLM carry older copies of the templates,
without the type `ggml_type` among their arguments.
"""

import re

from inferometer.names.dtypes import TYPES
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short

_OPS: tuple[tuple[str, Family], ...] = (
    ("mul_mat", "gemm"), ("mul_mm", "gemm"), ("mul_mv", "gemm"), ("matmul", "gemm"), ("flash_attn", "attention"),
    ("rms_norm", "norm"), ("group_norm", "norm"), ("l2_norm", "norm"), ("norm", "norm"), ("rope", "rope"),
    ("soft_max", "softmax"), ("get_rows", "gather_scatter"), ("set_rows", "gather_scatter"), ("cpy", "copy"),
    ("contig_cpy", "copy"), ("concat", "copy"), ("repeat", "copy"), ("pad", "copy"), ("argsort", "scan_sort"),
    ("argmax", "reduction"), ("sum_rows", "reduction"), ("mean", "reduction"), ("silu", "activation"),
    ("gelu", "activation"), ("swiglu", "activation"), ("geglu", "activation"), ("relu", "activation"),
    ("quantize", "quantize"), ("dequant", "quantize"), ("ssm_conv", "linear_attention"),
    ("ssm_scan", "linear_attention"), ("im2col", "copy"), ("add", "elementwise"), ("mul", "elementwise"),
    ("div", "elementwise"), ("scale", "elementwise"), ("clamp", "elementwise"), ("topk_moe", "moe_routing"),
)  # fmt: skip
_NAMES = frozenset(op for op, _ in _OPS)
_TYPED = re.compile(
    r"(?:kernel_)?(?P<op>[a-z][a-z0-9_]*?)_(?:i?q[1-8]_\w+|mxfp4\w*|(?:f32|f16|bf16)(?:_\w+)?|f32acc\w*)", re.IGNORECASE
)
_TYPE = re.compile(r"_(f32|f16|bf16|i?q[1-8]_\w+|mxfp4)(?=_|$)", re.IGNORECASE)
_TEMPLATES = (
    "mul_mat",
    "flash_attn",
    "quantize_",
    "cpy_",
    "k_get_rows",
    "k_set_rows",
    "rope_",
    "rms_norm_f32",
    "soft_max_f32",
)


def read(name: ParsedName) -> KernelName | None:
    """A kernel of ggml, by the types of its operands behind the operator, or the type `ggml_type`."""
    function = name.function
    is_port = function.startswith(("kernel_", "mul_mat_")) and not name.arguments and not name.namespaces
    if name.is_bare or is_port:
        if function.removeprefix("kernel_") in _NAMES and function.startswith("kernel_"):
            return _answer(function, function.removeprefix("kernel_"))
        match = _TYPED.fullmatch(function) if len(function) < 200 and "kernel" not in function[1:] else None
        if match is not None or name.is_bare:
            return _answer(function, match["op"]) if match is not None else None
    if "ggml_type)" in name.text or (not name.arguments and function == "quantize_q8_1") or "cpy_1_" in name.text:
        return _answer(function, function) if function.startswith(_TEMPLATES) else None
    return None


def _answer(function: str, op: str) -> KernelName | None:
    family = next((family for word, family in _OPS if op.startswith((word, f"k_{word}"))), None)
    if family is None:
        return None
    types = {TYPES.get(found.lower()) for found in _TYPE.findall(function)}
    dtype = types.pop() if len(types) == 1 else None
    return KernelName(
        family=family,
        dtype=dtype,
        short_name=short("ggml", op.replace("_", " "), dtype),
        evidence=Evidence("ggml kernel", "D"),
    )


GRAMMAR = Grammar("ggml", "form", read, spaces="")
