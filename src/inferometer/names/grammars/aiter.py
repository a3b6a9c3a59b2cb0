"""AITER's C++ kernels, and ROCm's paged attention. Sources: their public repositories; names as recorded.

AITER's templates stand in its namespace (its assembly is in `aiter_assembly.py`), or outside of all with a name that
begins with `kn_`, or with `opus` in it or in the traits that are its first argument. Paged attention belongs to vLLM
unless a `ck_tile` variant is an argument.
"""

import re

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName, numbers
from inferometer.names.short_names import short

_STARTS: tuple[tuple[str, Family], ...] = (
    ("kn_entry_", "rope"),
    ("kn_get_mla_metadata", "attention_metadata"),
    ("local_device_load_rmsnorm", "collective"),
    ("allgather_", "collective"),
    ("operator_", "elementwise"),
    ("unary_operator", "elementwise"),
    ("initializeScale", "quantize"),
    ("data_to_scale", "quantize"),
)
_HEADS = frozenset({64, 80, 96, 112, 120, 128, 192, 256})


def read(name: ParsedName) -> KernelName | None:
    """A template of AITER, or a paged attention of ROCm."""
    if name.namespaces[:1] == ("aiter",) or _is_aiters_own(name):
        return _read_norm(name) if name.function.startswith("add_rmsnorm") else _read_template(name)
    return _read_paged(name) if name.function.startswith("paged_attention_ll4mi_") else None


def _is_aiters_own(name: ParsedName) -> bool:
    first = name.arguments[0] if name.arguments else ""
    return not name.is_bare and (name.path.startswith(("kn_", "opus_")) or first.lower().startswith("opus_"))


def _read_template(name: ParsedName) -> KernelName:
    function = name.function
    family = next((family for start, family in _STARTS if function.startswith(start)), None)
    family = family or find_family(function) or find_family("_".join(name.namespaces[1:])) or "other"
    if family in ("scan_sort", "sampling", "reduction") and any("moe" in space for space in name.namespaces):
        family = "moe_routing"
    dtype = _dtype(name, family)
    words = function.removesuffix("_kernel").replace("_", " ")
    return KernelName(
        library="aiter",
        family=family,
        dtype=dtype,
        short_name=short(words, dtype),
        evidence=Evidence("AITER function", "D"),
    )


def _dtype(name: ParsedName, family: Family) -> str | None:
    """That of the data: the reduction of MLA names that of its statistics first."""
    if family == "attention_combine":
        return first_dtype(reversed(name.arguments), FLOATS)
    return first_dtype(name.arguments, FLOATS)


def _read_norm(name: ParsedName) -> KernelName:
    """Flags come after two types and two sizes; the first is whether the residual is added."""
    adds, quantizes = (name.arguments[at : at + 1] == ("1",) for at in (4, 5))
    has_flags = any(argument in ("0", "1") for argument in name.arguments)
    dtype = first_dtype(name.arguments, FLOATS)
    words = f"{'add + ' if adds or not has_flags else ''}rms_norm{' + quant' if quantizes else ''}"
    return KernelName(
        library="aiter",
        family="norm",
        dtype=dtype,
        fused=(*(["residual"] if adds else []), *(["quant"] if quantizes else [])),
        short_name=short(words, dtype),
        evidence=Evidence("AITER function", "D"),
    )


def _read_paged(name: ParsedName) -> KernelName:
    library: Library = "aiter" if "ck_tile::" in name.text or "aiter::" in name.text else "vllm"
    reduces = "reduce" in name.function
    dtype, ints = first_dtype(name.arguments, FLOATS), numbers(name.arguments)
    depth = next((value for value in ints if value is not None), None) if reduces else _head_dim(ints)
    kind = re.search(r"mfma\d+", name.function)
    words = "reduce" if reduces else kind[0] if kind else ""
    return KernelName(
        library=library,
        family="attention_combine" if reduces else "attention_decode",
        dtype=dtype,
        head_dim=depth,
        short_name=short("paged attention", words, dtype, f"d{depth}" if depth else ""),
        evidence=Evidence("ROCm paged attention", "D"),
    )


def _head_dim(ints: list[int | None]) -> int | None:
    """Behind the types and the block size, which is 16 or left out."""
    sizes = [value for value in ints[4:] if value is not None and value > 1]
    if sizes[:1] == [16] and len(sizes) > 1:
        return sizes[1]
    return sizes[0] if sizes and sizes[0] in _HEADS else None


GRAMMAR = Grammar("aiter", "namespace", read, spaces=r"aiter|vllm|opus_\w+", letters="gkop")
