"""Kernels that TVM compiles for MLC and WebLLM: `[fused_…]<op><n>_<op><n>_…_kernel[_<part>]`.

Source: TVM's fusion of operators and MLC's public repository. Only names in which an operator is TVM's own, or numbered
as TVM numbers functions of one name (`rms_norm2_kernel`), are taken for its, and what its compilers call by themselves
(`tvmgen_default_…`, `fused_nn_…_kernel0`, `default_function_kernel`): others may be anybody's.
"""

import re

from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_FAMILIES: tuple[tuple[Family, str], ...] = (  # what a fused kernel is named after comes first
    ("gemm", "NT_matmul|matmul|dequantize_gemv|gemv"),
    ("conv", "conv1d|conv2d"),
    ("norm", "rms_norm|layer_norm|group_norm"),
    ("softmax", "softmax"),
    ("activation", "silu|gelu|relu|sigmoid|tanh"),
    ("gather_scatter", "take|scatter_nd|gather"),
    ("quantize", r"dequantize|quantize|decode(?=\d)"),  # as it was called before
    ("reduction", "sum|max|mean"),
    ("elementwise", "add|subtract|multiply|divide|clip|power|exp"),
    ("copy", "transpose|reshape|cast|concatenate|split|strided_slice|broadcast_to|expand_dims|squeeze|full|zeros"),
)
_OPS = "|".join(ops for _, ops in _FAMILIES)
_NAME = late_re(rf"(?P<ops>(?:(?:{_OPS})\d*_|fused_)+)kernel(?:_\d+)?")
_OWN = late_re(r"NT_matmul|_dequantize|dequantize_gemv|[a-z]\d+_")
_COMPILED = late_re(r"tvmgen_\w+|(?:fused_)?nn_\w+?_kernel\d*|default_function(?:_kernel)?(?:_?\d+)?|main_kernel\d*")
_PRODUCT = late_re(r"nn_(?:contrib_)?(?:dense|batch_matmul)")
_FUNCTIONS: dict[str, Family] = {
    **dict.fromkeys(
        ("batch_decode_paged_kv_kernel", "batch_decode_paged_kv_sliding_window_kernel"), "attention_decode"),
    **dict.fromkeys(
        ("batch_prefill_paged_kv_kernel", "batch_prefill_paged_kv_sliding_window_kernel",
         "batch_prefill_ragged_kv_kernel"), "attention_prefill"),
    "batch_tree_attn_kernel": "attention",
    "merge_state_inplace_kernel": "attention_combine",
    **dict.fromkeys(
        ("tir_kv_cache_transpose_append_kernel", "tir_kv_cache_debug_get_kv_kernel", "copy_single_page_kernel",
         "compact_kv_copy_kernel"), "kv_cache"),
    **dict.fromkeys(("chunk_lse_kernel", "softmax_with_chunked_sum_kernel"), "softmax"),
    **dict.fromkeys(
        ("batch_verify_on_gpu_single_kernel", "sampler_take_probs_tir_kernel", "apply_bitmask_inplace_kernel",
         "apply_penalty_inplace_kernel", "apply_logit_bias_inplace_kernel", "get_index_from_sorted_kernel"),
        "sampling"),
}  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A function that TVM compiled: fused from operators, or one of MLC's own."""
    function = name.function
    if not name.is_bare or len(function) > 300:
        return None
    if _COMPILED.fullmatch(function):
        is_product = _PRODUCT.search(function) is not None
        return _answer(
            function, "gemm" if is_product else find_family(function.removeprefix("tvmgen_default_")) or "other"
        )
    if "_kernel" not in function:
        return None
    family = _FUNCTIONS.get(re.sub(r"_\d+$", "", function)) or _family(function)
    return None if family is None else _answer(function, family)


def _answer(function: str, family: Family) -> KernelName:
    return KernelName(
        family=family,
        short_name=short("tvm", function.replace("_kernel", "").replace("_", " ")),
        evidence=Evidence("TVM function", "I"),
    )


def _family(function: str) -> Family | None:
    match = _NAME.fullmatch(function)
    if match is None or _OWN.search(function) is None:
        return None
    return next((family for family, ops in _FAMILIES if re.search(rf"(?:^|_)(?:{ops})\d*_", match["ops"])), None)


GRAMMAR = Grammar("mlc", "form", read, spaces="", letters="fNmrlgstdqacpebcz")
