"""ggml, the library under llama.cpp: pipelines of Vulkan, kernels of Metal and templates of HIP and CUDA.

`<op>_<types>[_…]` (Vulkan), `kernel_<op>_<types>` (Metal, and ports of it to HIP, which have parameters),
`mul_mat_vec_q<(ggml_type)12,…>` (CUDA and HIP). Source: ggml's public repository, ggml-cuda above all. SGLang and vLLM
carry older copies of the templates, without the type `ggml_type` among their arguments.
"""

import re

from inferometer.names.dtypes import FLOATS, TYPES, dtype_of
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, split_template
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_OPS: tuple[tuple[str, Family], ...] = (
    ("dequantize_mul_mat", "gemm"), ("mul_mat", "gemm"), ("mul_mm", "gemm"),
    ("mul_mv", "gemm"), ("matmul", "gemm"), ("flash_attn", "attention"),
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
_TYPED = late_re(
    r"(?:kernel_)?(?P<op>[a-z][a-z0-9_]*?)_(?:i?q[1-8]_\w+|mxfp4\w*|(?:f32|f16|bf16)(?:_\w+)?|f32acc\w*)", re.IGNORECASE
)
_TYPE = late_re(r"_(f32|f16|bf16|i?q[1-8]_\w+|mxfp4)(?=_|$)", re.IGNORECASE)
_TEMPLATES: dict[str, Family] = {  # of its CUDA backend, as C++ writes them
    **dict.fromkeys(
        ("mul_mat_vec_q", "mul_mat_vec_f", "mul_mat_f", "mul_mat_f_ids", "mul_mat_vec", "mul_mat_q",
         "mul_mat_vec_p021_f16_f32", "mul_mat_vec_nc_f16_f32", "dequantize_mul_mat_vec"), "gemm"),
    "mul_mat_vec_q_moe": "grouped_gemm",
    "mul_mat_q_stream_k_fixup": "gemm_epilogue",
    **dict.fromkeys(
        ("flash_attn_ext_f16", "flash_attn_ext_vec", "flash_attn_tile", "flash_attn_vec_ext_f16",
         "flash_attn_vec_ext_f32", "flash_attn_tile_ext_f16", "flash_attn_tile_ext_f32"), "attention"),
    **dict.fromkeys(
        ("flash_attn_stream_k_fixup", "flash_attn_stream_k_fixup_uniform", "flash_attn_stream_k_fixup_general",
         "flash_attn_combine_results"), "attention_combine"),
    "flash_attn_mask_to_KV_max": "attention_metadata",
    **dict.fromkeys(
        ("gated_delta_net_cuda", "gated_linear_attn_f32", "ssm_conv_f32", "ssm_conv_long_token_f32", "ssm_scan_f32",
         "ssm_scan_f32_group", "rwkv_wkv_f32", "rwkv_wkv7_f32"), "linear_attention"),
    **dict.fromkeys(
        ("rms_norm_f32", "rms_norm_back_f32", "norm_f32", "group_norm_f32", "l2_norm_f32"), "norm"),
    **dict.fromkeys(("rope_norm", "rope_neox", "rope_multi", "rope_vision"), "rope"),
    **dict.fromkeys(("soft_max_f32", "soft_max_back_f32"), "softmax"),
    **dict.fromkeys(
        ("unary_op_kernel", "k_bin_bcast", "k_bin_bcast_unravel", "scale_f32", "add_id_kernel", "op_clamp_kernel",
         "arange_f32", "acc_f32"), "elementwise"),
    **dict.fromkeys(("unary_gated_op_kernel", "swiglu_oai_kernel"), "activation"),
    **dict.fromkeys(
        ("k_get_rows", "k_get_rows_float", "k_get_rows_float_vec", "k_get_rows_back_float", "k_set_rows",
         "k_set_rows_quant"), "gather_scatter"),
    **dict.fromkeys(
        ("cpy_scalar", "cpy_scalar_contiguous", "cpy_scalar_transpose", "cpy_flt", "cpy_f32_f16", "cpy_f32_q",
         "cpy_q_f32", "convert_unary", "concat_cont", "concat_non_cont", "concat_f32_cont", "concat_f32_non_cont",
         "concat_f32_dim0", "concat_f32_dim1", "concat_f32_dim2", "pad_f32", "k_repeat_back"), "copy"),
    **dict.fromkeys(("quantize_q8_1", "quantize_mmq_q8_1", "quantize_mmq_mxfp4", "quantize_mmq_nvfp4"), "quantize"),
    **dict.fromkeys(("reduce_rows_f32", "k_sum_rows_f32", "argmax_f32"), "reduction"),
    "k_argsort_f32_i32": "scan_sort",
    **dict.fromkeys(("topk_moe_cuda", "mm_ids_helper"), "moe_routing"),
}  # fmt: skip
_SHARED = frozenset({"quantize_q8_1", "quantize_mmq_q8_1", "mul_mat_q", "mul_mat_vec_q"})  # with copies in engines
_UNARY = late_re(r"&op_(\w+)")
_GATES = frozenset({"gelu", "gelu_erf", "gelu_quick", "silu", "relu", "leaky_relu", "hardswish", "elu", "xielu"})
_CASTS = frozenset({"cpy_f32_f16", "convert_unary", "cpy_scalar", "cpy_flt", "cpy_scalar_contiguous", "k_set_rows"})


def read(name: ParsedName) -> KernelName | None:
    """A kernel of ggml, by the types of its operands after the operator, or the type `ggml_type`."""
    function = name.function
    is_port = function.startswith(("kernel_", "mul_mat_")) and not name.arguments and not name.namespaces
    if name.is_bare or is_port:
        if function in _TEMPLATES and function.startswith("k_"):
            return _read_template(name)
        if function.removeprefix("kernel_") in _NAMES and function.startswith("kernel_"):
            return _answer(function, function.removeprefix("kernel_"))
        match = _TYPED.fullmatch(function) if len(function) < 200 and "kernel" not in function[1:] else None
        if match is not None or name.is_bare:
            return _answer(function, match["op"]) if match is not None else None
    if name.namespaces or function not in _TEMPLATES:
        return None
    return _read_template(name) if _is_ours(name) else None


def _is_ours(name: ParsedName) -> bool:
    if name.function in _SHARED:
        return "ggml_type)" in name.text or (not name.arguments and name.function == "quantize_q8_1")
    return True


def _read_template(name: ParsedName) -> KernelName:
    function = name.function
    family, words = _TEMPLATES[function], function.removeprefix("k_").replace("_", " ")
    operator = _UNARY.search(name.text)
    if operator is not None:
        words = f"{words.removesuffix(' kernel')} {operator[1]}"
        if function == "unary_op_kernel" and operator[1] in _GATES:
            family = "activation"
    dtype = _template_type(name)
    return KernelName(
        family=family,
        dtype=dtype,
        short_name=short("ggml", words, dtype),
        evidence=Evidence("ggml kernel", "D"),
    )


def _template_type(name: ParsedName) -> str | None:
    """The first type among the arguments, or in the function's name; of a copy both, where they differ."""
    inner = [part for argument in name.arguments if "cpy_1_" in argument for part in split_template(argument)[1]]
    found = (dtype_of(argument) for argument in (*inner, *name.arguments))
    types = [dtype for dtype in found if dtype in FLOATS]
    types = types or [dtype for word in _TYPE.findall(name.function) if (dtype := TYPES.get(word.lower()))]
    if not types:
        return None
    is_cast = name.function in _CASTS and types[0] != types[-1]
    return f"{types[0]}>{types[-1]}" if is_cast else types[0]


def _answer(function: str, op: str) -> KernelName | None:
    family = next((family for word, family in _OPS if op.startswith((word, f"k_{word}"))), None)
    if family == "elementwise" and (fused := find_family(op)) in ("norm", "activation", "gemm", "rope"):
        family = fused  # `add_rmsnorm_f32`, by a fork
    if family is None:
        return None
    types = [TYPES.get(found.lower()) for found in _TYPE.findall(function)]
    dtype = types[0] if len(set(types)) == 1 else None
    if len(types) == 2 and op == "cpy" and None not in types and types[0] != types[1]:
        dtype = f"{types[0]}>{types[1]}"
    return KernelName(
        family=family,
        dtype=dtype,
        short_name=short("ggml", op.replace("_", " "), dtype),
        evidence=Evidence("ggml kernel", "D"),
    )


GRAMMAR = Grammar("ggml", "form", read, spaces="")
