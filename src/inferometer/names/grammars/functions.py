"""Functions of a list, and functions in a namespace that belongs to one library: there, words show the family."""

import re
from functools import lru_cache

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.function_lists import (
    bare_functions,
    base_functions,
    completed,
    inside_functions,
    known_prefixes,
    known_spaces,
    template_functions,
)
from inferometer.names.grammars.words import data_type, find_arch, find_family, type_of_traits
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_SPACE_FAMILIES: dict[str, dict[Family, Family]] = {  # what a word means in these namespaces
    "marlin_moe_wna16": {"gemm": "grouped_gemm"},
    "moe": {
        "copy": "moe_routing",
        "gather_scatter": "moe_routing",
        "sampling": "moe_routing",
        "softmax": "moe_routing",
        "scan_sort": "moe_routing",
        "reduction": "moe_routing",
    },
    "routing": {"other": "moe_routing", "scan_sort": "moe_routing", "gather_scatter": "moe_routing"},
    "finalize": {"other": "moe_routing"},
    "permute": {"copy": "moe_routing", "other": "moe_routing"},
    "moe_prepare": {"copy": "moe_routing", "other": "moe_routing", "scan_sort": "moe_routing"},
    "weight_only": {"other": "gemm"},
    "fpA_intB_gemv": {"other": "gemm"},
}
_UNTYPED = frozenset({"scan_sort", "attention_metadata"})  # their types are those of indices
_FP8 = frozenset({"fp8_e4m3", "fp8_e5m2"})
_LONGEST_FUNCTION = 500
_NO_SPACE = frozenset({"detail", "impl", "kernels"})
_TRITON_SUFFIX = late_re(r"(?:_0d1d\w*|(?<=kernel)_\d+|_[0-9a-f]{8,}|_[A-Z]{2}\w*)$")  # arguments, constants, hashes
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (late_re(pattern), phrase)
    for pattern, phrase in (
        (r"fused_?add_?rms_?norm(?!.*quant)", "add + rms_norm"),
        (r"^(?:void_)?rms_?norm(?:_kernel)?$", "rms_norm"),
        (r"apply_rotary_pos_ids_cos_sin_cache.*head_parallel", "rope qk cos-sin cache head-parallel"),
        (r"apply_rotary_pos_ids_cos_sin_cache", "rope qk cos-sin cache"),
        (r"^rotary_embedding", "rope"),
        (r"reshape_and_cache|^store_kv_?cache", "kv cache write"),
        (r"cat_array_batched_copy", "concat"),
        (r"index_select_(small|large)", r"index_select \1"),
        (r"layer_norm_forward|vectorized_layer_norm", "layer_norm forward"),
        (r"cunn_soft_max_forward", "softmax forward"),
        (r"cunn_soft_max_backward", "softmax backward"),
        (r"softmax_warp_(forward|backward)", r"softmax \1 warp"),
    )
)


def read(name: ParsedName) -> KernelName | None:
    """A function of a list, or one whose namespace belongs to one library."""
    library = _library_of_space(name)
    if library is not None:
        return _read_inside(name, library)
    if any(space not in _NO_SPACE for space in name.namespaces):
        return None
    if name.is_bare:
        known = bare_functions().get(name.function)
        if known is None and len(name.function) < _LONGEST_FUNCTION:
            known = bare_functions().get(_TRITON_SUFFIX.sub("", name.function))
    else:
        known = template_functions().get(name.function)
    known = known or next((known for prefix, known in known_prefixes() if name.function.startswith(prefix)), None)
    known = known or (base_functions().get(name.function) if name.is_bare else None)
    return None if known is None else _answer(name, *known, is_listed=True)


def _library_of_space(name: ParsedName) -> Library | None:
    """The library of the outermost namespace that is known, or of two together such as `moe::dev`."""
    spaces = known_spaces()
    for i, space in enumerate(name.namespaces):
        library = spaces.get("::".join(name.namespaces[i : i + 2])) or spaces.get(space)
        if library is not None:
            return library
    return None


def _read_inside(name: ParsedName, library: Library) -> KernelName:
    known = inside_functions(library).get(name.function)
    if known is None and name.is_cut:
        known = completed(library, name.function)
    family = known[1] if known else find_family(name.intact, is_cut=name.is_cut) or "other"
    for space, changes in _SPACE_FAMILIES.items():
        if space in name.namespaces:
            family = changes.get(family, family)
    return _answer(name, library, family, is_listed=known is not None)


def _answer(name: ParsedName, library: Library, family: Family, *, is_listed: bool) -> KernelName:
    dtype = _dtype(name, library, family)
    first = name.arguments[0] if name.arguments else ""
    vector = int(first) if library == "flashinfer" and family == "norm" and re.fullmatch(r"\d\d?", first) else None
    return KernelName(
        library=library,
        family=family,
        dtype=dtype,
        arch=find_arch(name.function),
        vector=vector,
        short_name=short(
            _words(name), dtype, f"v{vector}" if vector else "", "(triton)" if library == "triton" else ""
        ),
        evidence=Evidence(
            f"list of {library} functions" if is_listed else f"namespace of {library}", "D" if is_listed else "I"
        ),
    )


def _dtype(name: ParsedName, library: Library, family: Family) -> str | None:
    """The first type among the template arguments, where it is that of the data."""
    if name.function.startswith("Marlin") or library in ("triton", "fla"):
        return None
    if family in _UNTYPED and library != "pytorch":
        return None
    among = _FP8 if name.function.startswith("wvSplitKQ") else FLOATS  # its result is named first
    dtype = first_dtype(name.arguments, among) if library != "other" else data_type(name.arguments, family)
    if library == "cudnn" and family == "copy":
        return first_dtype(name.arguments[:1])
    if dtype is None and library == "pytorch" and family in ("copy", "gather_scatter", "reduction", "scan_sort"):
        return first_dtype(argument for argument in name.arguments[:1] if argument not in ("char", "bool"))
    if dtype is None and library == "sgl_kernel" and family == "other" and len(name.arguments) == 1:
        return first_dtype(name.arguments) or type_of_traits(name.arguments)
    if library == "fbgemm" and dtype is not None and "FP8" in name.function:
        return f"fp8>{dtype}" if "_to_float" in name.function else _to_fp8(dtype, name.function)
    return dtype


def _to_fp8(dtype: str, function: str) -> str:
    return f"{dtype}>fp8" if "uantize" in function and "QuantizeScale" not in function else dtype


def _words(name: ParsedName) -> str:
    if "act_and_mul" in name.function:
        act = re.search(r"silu|gelu_tanh|gelu|swiglu|relu", name.text)
        return f"{act[0] if act else 'act'}_and_mul"
    return _plain_words(name.function)


@lru_cache(maxsize=4_096)
def _plain_words(function: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", function).lower().strip("_")
    for pattern, phrase in _PHRASES:
        match = pattern.search(words)
        if match:
            return match.expand(phrase)
    words = re.sub(r"_(?:cuda_)?kernel(?=_|$)", "", words).removesuffix("_triton").replace("_", " ")
    return words.replace("rms norm", "rms_norm").replace("layer norm", "layer_norm") or function


GRAMMAR = Grammar("functions", "list", read)
