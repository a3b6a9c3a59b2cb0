"""cuBLAS before nvjet, and what surrounds a product of cuBLASLt: names of the older generators and skinny kernels.

Three generators: `ampere_bf16_s16816gemm_bf16_64x64_…_stages_64x6_tn`, `sm90_xmma_gemm_…_tilesize128x128x64_…_cublas`
(cuDNN's convolutions are named by the same two: their library stands in the name), and C++ templates such as
`gemv2T_kernel_val<…>`. Undocumented: read from recorded names. `sliced1x2` splits K inside a block: it is no split-K.
"""

import re

from inferometer.names.dtypes import FLOATS, NARROW, TYPES, dtype_of, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

ARCHES = {"maxwell": "sm50", "volta": "sm70", "turing": "sm75", "ampere": "sm80", "hopper": "sm90"}
INSTRUCTIONS = {
    "16816": "16x8x16", "1688": "16x8x8", "884": "8x8x4", "8816": "8x8x16", "16832": "16x8x32", "8832": "8x8x32",
    "161616": "16x16x16", "16864": "16x8x64", "168128": "16x8x128", "168256": "16x8x256",
}  # fmt: skip
_COMPLEX = ("c", "z", "gc", "gz")
_LETTERS = {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex64", "gc": "complex64", "i": "int8"}
_OLD = late_re(
    r"(?:cudnn_|trt_)?(?:infer_|train_)?(?P<arch>maxwell|pascal|volta|turing|ampere|hopper|ada)_"
    r"(?:(?P<out>bf16|fp16|fp32|tf32|fp8|u?int\d+)(?:x\d+)?_)?(?P<letter>g[cz]|[shdczi])(?P<mma>\d*)(?P<kind>gemm|cudnn)"
    r"(?:_(?P<type>bf16|fp16|tf32|fp8|u?int8)(?:x\d+)?(?=_))?(?P<rest>_\w+)?"
)
_TILE = late_re(r"_(\d+)x(\d+)(?=_|$)")
_STAGES = late_re(r"_stages_(\d+)x(\d+)")
_LAYOUT = late_re(r"_([nt]{2,3})(?=_|$)")
_XMMA = late_re(r"sm(?P<arch>\d+)_xmma_(?P<op>[a-z]+(?:\dk)?)(?P<rest>_\w+)")
_XMMA_TILE = late_re(r"_tile(?:size)?(\d+)x(\d+)x(\d+)(?!_\dx)")
_XMMA_TYPES = late_re(r"_(c?tf32|c?bf16|c?f16|c?f32|f64|e4m3|e5m2|c?i8|s8|u8)[a-z0-9]*(?:_(tf32)f32)?(?=_)")
_XMMA_COMPLEX = {"cf32": "complex64"}
_XMMA_CONV = late_re(r"fprop|dgrad|wgrad|conv")
_SKINNY: dict[str, tuple[Family, str]] = {
    "gemv2T_kernel_val": ("gemm", "gemv T"),
    "gemv2T_kernel_ref": ("gemm", "gemv T"),
    "gemv2N_kernel": ("gemm", "gemv N"),
    "gemv2N_kernel_ref": ("gemm", "gemv N"),
    "gemvNSP_kernel": ("gemm", "gemv"),
    "gemvNSP_kernel_tn": ("gemm", "gemv"),
    "internal::gemvx::kernel": ("gemm", "gemv"),
    "gemmk1_kernel": ("gemm", "gemm k=1"),
    "gemm_kernel1x1": ("gemm", "gemm 1x1"),
    "gemm_kernel2x2_core": ("gemm", "gemm 2x2"),
    "sgemm_largek_lds64": ("gemm", "gemm large k"),
    "sgemm_largek": ("gemm", "gemm large k"),
    "internal::region_transform_ABC": ("gemm_epilogue", "pad or unpad A, B, C"),
    "dot_kernel": ("gemm", "dot"),
    "reduce_1Block_kernel": ("gemm_epilogue", "dot reduce"),
    "scal_kernel": ("gemm_epilogue", "scale C (beta)"),
    "scal_kernel_val": ("gemm_epilogue", "scale C (beta)"),
    "scal_64addr_kernel": ("gemm_epilogue", "scale C (beta)"),
    "ger_kernel": ("gemm", "rank-1 update"),
    "trsm_left_kernel": ("gemm", "triangular solve"),
    "trsm_right_kernel": ("gemm", "triangular solve"),
    "trsv_kernel": ("gemm", "triangular solve"),
}
_VIEW = late_re(r"cublasGemvTensor\w{0,40}<([\w:]+)")
_ADDRESSES = late_re(r"_64addr(?=_|$)|_(?:ref|val)$")
_BARE = frozenset({"gemv2T_kernel_val", "gemv2N_kernel", "gemvNSP_kernel", "gemmk1_kernel", "sgemm_largek_lds64"})


def read(name: ParsedName) -> KernelName | None:
    """One of cuBLAS's older names, or of cuDNN's made by the same generator."""
    function = name.function
    if function.startswith("sm") and "_xmma_" in function:
        return _read_xmma(function)
    if not name.namespaces and "_" in function and function[0] in "cmpvtah":
        match = _OLD.match(function)
        if match is not None:
            return _read_old(match)
    return _read_function(name)


def _read_old(match: re.Match[str]) -> KernelName:
    rest = match["rest"] or ""
    mma, letter, kind = match["mma"], match["letter"], match["kind"]
    plain = "tf32" if letter == "s" and mma else _LETTERS.get(letter)
    named = match["type"] or match["out"]  # of the operands; else of the result
    dtype = plain if not named or letter == "i" else None if letter in _COMPLEX else TYPES.get(named)
    tile, stages, layout = _TILE.search(rest), _STAGES.search(rest), _LAYOUT.search(rest)
    m, n = (int(tile[1]), int(tile[2])) if tile else (None, None)
    k, depth = (int(stages[1]), int(stages[2])) if stages else (None, None)
    sliced = re.search(r"_sliced(\d+x\d+)", rest)
    fused = ("relu",) if "_relu" in rest else ()
    is_conv, split = kind == "cudnn", "splitK" in rest
    return KernelName(
        library="cudnn" if is_conv else "cublas",
        family="conv" if is_conv else "gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=depth,
        split_k="yes" if split else None,
        arch=ARCHES.get(match["arch"]),
        instruction=INSTRUCTIONS.get(mma),
        layout=layout[1] if layout else None,
        flags=(f"sliced{sliced[1]}",) if sliced else (),
        fused=fused,
        short_name=short(
            *("cudnn conv" if is_conv else f"cublas {match['arch']} gemm", dtype, size(m, n, k)),
            *(f"s{depth}" if depth else "", f"slicedK{sliced[1]}" if sliced else "", "splitK" if split else ""),
            *(*fused, layout[1] if layout and not is_conv else ""),
        ),
        evidence=Evidence("cuBLAS name with architecture and tile", "I"),
    )


def _read_xmma(function: str) -> KernelName | None:
    match = _XMMA.match(function)
    if match is None:
        return None
    rest, is_conv = match["rest"], _XMMA_CONV.search(f"{match['op']}{match['rest']}"[:60]) is not None
    library: Library = "cudnn" if rest.endswith("cudnn") else "cublas" if rest.endswith("cublas") else "other"
    if library == "other" and not rest.endswith("_trt"):
        library = "cudnn" if is_conv else "cublas"
    tile, stages = _XMMA_TILE.search(rest), re.search(r"_stage(\d+)", rest)
    types = _XMMA_TYPES.search(rest)
    layout, mma = _LAYOUT.search(rest), re.search(r"_tensor(\d+x\d+x\d+)", rest)
    m, n, k = (int(tile[1]), int(tile[2]), int(tile[3])) if tile else (None, None, None)
    depth = int(stages[1]) if stages else None
    split = re.search(r"_split_?k_?(?:on|\d|kernel)|_splitK(?!_off)|segment_k_on", rest)
    fused = tuple(word for word in ("bias", "relu", "gelu") if f"_{word}" in rest)
    words = f"cudnn implicit-gemm conv {match['op']}" if is_conv else f"{library} xmma gemm"
    type_name = (TYPES.get(types[2] or types[1]) or _XMMA_COMPLEX.get(types[1])) if types else None
    return KernelName(
        library=library,
        family="conv" if is_conv else "gemm",
        dtype=type_name,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=depth,
        split_k="yes" if split else None,
        arch=f"sm{match['arch']}",
        layout=layout[1] if layout and not is_conv else None,
        instruction=mma[1] if mma else None,
        fused=fused,
        short_name=short(
            *(words, type_name, size(m, n, k), f"s{depth}" if depth else "", "splitK" if split else "", *fused),
            layout[1] if layout and not is_conv else "",
        ),
        evidence=Evidence("xmma name", "I"),
    )


def _read_function(name: ParsedName) -> KernelName | None:
    function, space = name.function, name.namespaces
    if function == "splitKreduce_kernel" and space in ((), ("cublasLt",)):
        dtype = first_dtype(name.arguments, NARROW) or first_dtype(name.arguments, FLOATS)
        return _helper("cublaslt", "gemm_epilogue", "splitK reduce", dtype)
    if space[-2:] == ("epilogue", "impl") and function == "globalKernel":
        dtype = first_dtype(name.arguments, NARROW) or first_dtype(name.arguments, FLOATS)
        return _helper("cublaslt", "gemm_epilogue", "gemm bias epilogue", dtype)
    if space[:1] == ("cublasLt",):
        return _helper("cublaslt", "gemm_epilogue", f"cublasLt {function}", first_dtype(name.arguments, FLOATS))
    if space and "cublas" in space[0]:
        words = "weight reorder" if "reorder" in function else function
        return _helper(
            "cublas", find_family(function) or "other", f"cublas {words}", first_dtype(name.arguments, FLOATS)
        )
    known = _SKINNY.get(name.path) or _SKINNY.get(_ADDRESSES.sub("", name.path))
    if known is None and not space and function.startswith("gemmSN_"):
        known = ("gemm", "gemm small n")
    if known is None or (name.is_bare and function not in _BARE and not function.startswith("gemmSN_")):
        return None
    return _helper("cublas", known[0], f"cublas {known[1]}", _operand_type(name))


def _operand_type(name: ParsedName) -> str | None:
    """The first type among the arguments, else that of the first operand's view, else the letter of `sgemm_…`."""
    dtype = first_dtype(name.arguments, FLOATS | {"complex64"})
    if dtype is None and (view := _VIEW.search(",".join(name.arguments)[:2_000])) is not None:
        return dtype_of(view[1])
    letter = _LETTERS.get(name.function[0]) if name.function[1:].startswith("gemm_") else None
    return dtype or letter


def _helper(library: Library, family: Family, words: str, dtype: str | None) -> KernelName:
    return KernelName(
        library=library,
        family=family,
        dtype=dtype,
        short_name=short(words, dtype),
        evidence=Evidence("cuBLAS function", "I"),
    )


GRAMMAR = Grammar("cublas", "form", read, spaces="cublasLt|internal|epilogue|.*cublas", letters="cmpvtahsgdr")
