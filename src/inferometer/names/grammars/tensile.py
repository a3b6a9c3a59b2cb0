"""Tensile, the generator behind hipBLASLt and rocBLAS: `Cijk_<A>_<B>_<types>_…_MT<M>x<N>x<DepthU>_…_ISA<arch>_…`.

Source: Tensile's public generator. `UserArgs` is hipBLASLt's; `AlikC` is conjugated. `GSU0`, or none, means that the
split is chosen at run time. Tools cut these names: every field is optional.
"""

import re

from inferometer.names.dtypes import product
from inferometer.names.kernel_name import Evidence, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_HEAD = late_re(r"(?:Custom_)?Cijkl?m?_(?P<a>A[a-z]+C?)_(?P<b>B[a-z]+C?)_(?P<types>\w+)")
_TYPES = (
    ("F8", "fp8_e4m3"), ("B8", "fp8_e5m2"), ("I8", "int8"), ("4xi8", "int8"), ("X", "tf32"), ("B", "bf16"),
    ("H", "fp16"), ("S", "fp32"), ("D", "fp64"), ("C", "complex64"),
)  # fmt: skip
_TILE = late_re(r"_MT(\d+)x(?:(\d+)(?=[x_])(?:x(\d+))?)?")  # the number at the end of a cut name may be cut too
_MI = late_re(r"_MI(\d+)x(\d+)x(\d+)")
_ISA = late_re(r"_(?:ISA|gfx)([0-9a-f]{3,4})(?=_|$)")
_GSU = late_re(r"_GSU(\d+)(?=_|$)")
_FUSED = (("bias", "_Bias"), ("activation", r"_H?A_[BHSD](?:_|$)|_HA_"), ("scale", "_SAB|_SCD|_SAV"))  # in the flags


def read(name: ParsedName) -> KernelName | None:
    """A matrix product that Tensile generated, or its conversion kernel."""
    function = name.function
    if not function.startswith(("Cijk", "Custom_Cijk")):
        return None
    match = _HEAD.match(function)
    library = _library(function)
    if match is None:
        return KernelName(
            library=library,
            family="gemm_epilogue" if re.match(r"Cijkl?_[A-Z0-9]", function) else "gemm",
            short_name=short("tensile", "post-GSU" if "PostGSU" in function or "GA" in function else "helper"),
            evidence=Evidence("Tensile helper", "I"),
        )
    rest = f"_{match['types']}"
    flags_at = rest.split("_MT", 1)[0]
    tile, isa, gsu, mi = _TILE.search(rest), _ISA.search(rest), _GSU.search(rest), _MI.search(rest)
    m, n, k = (int(number[:6]) if number else None for number in tile.groups()) if tile else (None, None, None)
    split = int(gsu[1][:4]) if gsu and gsu[1].strip("0") else None
    dtype = _dtype(match["types"])
    layout = ("N" if match["a"].startswith("Ai") else "T") + ("N" if match["b"].startswith("Bl") else "T")
    grouped = "_GG_" in f"{flags_at}_"
    fused = tuple(word for word, pattern in _FUSED if re.search(pattern, flags_at))
    arch = f"gfx{isa[1]}" if isa else None
    return KernelName(
        library=library,
        family="grouped_gemm" if grouped else "gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        split_k=split,
        arch=arch,
        layout=layout,
        instruction=f"{mi[1]}x{mi[2]}x{mi[3]}" if mi else None,
        flags=(*(["grouped"] if grouped else []), *(["stream_k"] if re.search(r"_GSUAMBSK|_SK[1-9]", rest) else [])),
        fused=fused,
        short_name=short(
            *("tensile", "grouped gemm" if grouped else "gemm", dtype, layout, size(m, n, k)),
            *(f"splitK{split}" if split and split > 1 else "", "bias" if "bias" in fused else "", arch),
        ),
        evidence=Evidence("Tensile name", "D"),
    )


def _library(function: str) -> Library:
    if "UserArgs" in function or "_Bias" in function or "_SAV" in function or "_HA_" in function:
        return "hipblaslt"
    return "rocblas"


def _dtype(types: str) -> str | None:
    """The letters before the first flag: of A and B, or of both when they differ (`F8B8`), then of the result."""
    word, *flags = types.split("_", maxsplit=2)
    if flags[:1] in (["MX"], ["X"]):  # how fp32 is multiplied: as tf32
        return "tf32"
    first = next(((code, dtype) for code, dtype in _TYPES if word.startswith(code)), None)
    if first is None:
        return None
    after = word[len(first[0]) :].removeprefix("N")
    if first[0] in ("F8", "B8"):
        second = next((dtype for code, dtype in _TYPES[:2] if after.startswith(code)), first[1])
        return product(first[1], second)
    return first[1]


GRAMMAR = Grammar("tensile", "form", read, spaces="", letters="C")
