"""Composable Kernel: `ck::kernel_<operator>_<pipeline><Gridwise…<…>>` and `ck_tile::kentry<n,<operator>Kernel<…>>`.

Source: the public headers (`ck/tensor_operation/gpu/grid`, `ck_tile/ops`). A Gridwise template lists layouts, types of
A and B, element operators and, after the size of the block of threads, the tile M, N, K. A ck_tile kernel has its
types in a `…Problem<…>`. CK stores bf16 as `unsigned short`; `unsigned char` shows only 8 bits.
"""

import re

from inferometer.names.dtypes import NARROW, dtype_of, product
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, last_word, numbers, split_template
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_TYPES = {
    "unsigned short": "bf16", "ushort": "bf16", "f8_t": "fp8_e4m3", "f8_fnuz_t": "fp8_e4m3", "f8_ocp_t": "fp8_e4m3",
    "fp8_t": "fp8_e4m3", "bf8_t": "fp8_e5m2", "bf8_fnuz_t": "fp8_e5m2", "bf8_ocp_t": "fp8_e5m2", "f4x2_pk_t": "mxfp4",
    "pk_fp4_t": "mxfp4", "signed char": "int8", "int8_t": "int8", "DF16b": "bf16", "half_t": "fp16",
}  # fmt: skip
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"Fmha\w*Comb", "attention_combine"),
    (r"FmhaFwdAppendKV", "kv_cache"),
    (r"Fmha|gemm_softmax_gemm|_attention_", "attention"),
    (r"[Mm]oe_?[Ss]ort|[Tt]opk", "moe_routing"),
    (r"[Qq]uant(?!_?\w*[Gg]emm)(?!\w*norm)", "quantize"),
    (r"[Mm]oe|[Gg]rouped_?(?:[Gg]emm|Flatmm)", "grouped_gemm"),
    (r"[Cc]onv|_bwd_(?:weight|data)", "conv"),
    (r"[Gg]emm|[Ff]latmm|[Cc]ontraction|StreamK", "gemm"),
    (r"[Nn]ormalization|[Nn]orm2d|batchnorm|layernorm|[Ww]elford", "norm"),
    (r"[Pp]ool", "reduction"),
)
_FAMILIES_COMPILED = tuple((late_re(pattern), family) for pattern, family in _FAMILIES)
_INSTRUCTION = late_re(r"_(?:xdl|xdlops|dl|dlops|wmma|multiple_[abd]{1,3})(?=_|$)")
_THREADS = frozenset({64, 128, 192, 256, 512, 1024})
_PROBLEM = late_re(r"Problem(?:Ex)?<([^<>]{1,300})")
_SEQUENCE = late_re(r"sequence<(\d+),(\d+),(\d+),(\d+),(\d+),(\d+)>")


def read(name: ParsedName) -> KernelName | None:
    """A kernel of Composable Kernel: the operator, for products also the types and the tile."""
    if not name.namespaces and not _is_bare_kernel(name):
        return None
    inner = _inner(name.arguments)
    is_tile = name.function.startswith(("kentry", "kernel_entry"))
    kind = last_word(split_template(inner)[0]) if is_tile else name.function
    family = (
        next((family for pattern, family in _FAMILIES_COMPILED if pattern.search(kind)), None)
        or find_family(kind)
        or "other"
    )
    inside = split_template(inner)[1]
    dtype = _tile_type(inner, family) if is_tile else _grid_type(inside, family)
    m, n, k = _tile_shape(inner) if is_tile else _grid_tile(inside, family)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removesuffix("Kernel").removeprefix("kernel_")).replace("_", " ")
    return KernelName(
        library="ck",
        family=family,
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        short_name=short("ck", words.lower(), dtype, size(m, n, k) if not is_tile else ""),
        evidence=Evidence("Composable Kernel", "D"),
    )


def _inner(arguments: tuple[str, ...]) -> str:
    """The kernel's own template; of a name that was cut before its arguments, what isn't a number."""
    words = [argument for argument in arguments if not argument.isdecimal()]
    return next((argument for argument in words if "<" in argument), "".join(words[:1]))


def _is_bare_kernel(name: ParsedName) -> bool:
    """Whether it is a kernel without its namespace: `kernel_gemm_xdl_cshuffle_v3`."""
    begin, _, rest = name.function.partition("kernel_")
    is_one_word = not begin and re.fullmatch(r"\w+", rest) is not None
    return name.is_bare and is_one_word and _INSTRUCTION.search(rest) is not None


def _type(text: str) -> str | None:
    return _TYPES.get(text) or _TYPES.get(last_word(text)) or dtype_of(text)


def _grid_type(arguments: tuple[str, ...], family: Family) -> str | None:
    """Of A and B: the first two arguments of a Gridwise template that are no layouts; of attention, one for both."""
    if family not in ("gemm", "grouped_gemm", "attention"):
        return None
    types = [argument for argument in arguments[:8] if "layout::" not in argument and "Tuple<" not in argument][:2]
    if family == "attention" and types:
        return _type(types[0])
    return product(_type(types[0]), _type(types[1])) if len(types) == 2 else None


def _grid_tile(arguments: tuple[str, ...], family: Family) -> tuple[int | None, ...]:
    """The three numbers after the size of the block of threads."""
    if family not in ("gemm", "grouped_gemm"):
        return (None, None, None)
    ints = numbers(arguments)
    at = next((at for at, value in enumerate(ints) if value in _THREADS), None)
    tile = ints[at + 1 : at + 4] if at is not None else []
    return tuple(tile) if len(tile) == 3 and None not in tile else (None, None, None)


def _tile_type(text: str, family: Family) -> str | None:
    """The first type of the problem; where partial results in fp32 come first, the first that is narrower."""
    problem = _PROBLEM.search(text)
    if problem is None or family in ("moe_routing", "copy"):
        return None
    types = [_type(argument) for argument in problem[1].split(",")]
    return next((found for found in types if found in NARROW), None) or next((found for found in types if found), None)


def _tile_shape(text: str) -> tuple[int | None, ...]:
    shape = _SEQUENCE.search(text) if "Fmha" in text else None
    return (int(shape[1][:5]), int(shape[2][:5]), None) if shape else (None, None, None)


GRAMMAR = Grammar("ck", "namespace", read, spaces="ck|ck_tile", letters="k")
