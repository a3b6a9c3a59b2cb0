"""CUTLASS's generated names: `cutlass_80_tensorop_s16816gemm_…` (CUTLASS 2), `cutlass3x_sm100_tensorop_…` (CUTLASS 3).

Source: CUTLASS's profiler documentation; the names compiled into cuBLAS and cuDNN. The kernels of CUTLASS 2 are usually
launched by cuBLAS; the name can't say.
"""

import re

import msgspec

from inferometer.names.dtypes import TYPES, product
from inferometer.names.grammars.cublas import INSTRUCTIONS
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_V2 = late_re(
    r"cutlass(?:_(?P<arch>\d+))?_(?P<unit>simt|tensorop|wmma_tensorop)_(?P<names>\w*?)(?P<letter>[shdcziq]?)"
    r"(?P<mma>\d*)(?P<math>bf16|f16)?(?P<op>gemm|fprop|dgrad|wgrad|gemv|symm|syrk|trmm|hemm|herk|syr2k|her2k)(?P<rest>\w*)"
)
_V2_TILE = late_re(r"_(\d+)x(\d+)_(\d+)x(\d+)")
_V3 = late_re(
    r"cutlass3x_sm(?P<arch>\d+)a?_(?P<unit>(?:bs|sp|wmma_)?tensorop|simt)_(?:[a-z]{1,2}(?P<mma>\d+x\d+x\d+|\d+)?)?(?:_\dx[a-z]+\d+)?"
    r"_?(?:sp)?(?P<op>gemm|(?:implicit_gemm_)?(?:strided_|grouped_)?(?:fprop|dgrad|wgrad|deconv))(?P<rest>\w*)"
)
_V3_TILE = late_re(r"_(\d+)x(\d+)x(\d+)(?=_)(?:_(\d+x\d+x\d+))?(?:_(\d+)_([a-z]{3}))?")
_V3_TYPES = late_re(r"_((?:ue\d+m\d+x)?e\dm\d|u?[sf]\d+|bf16|tf32|c\w?f\d+)(?=_)")
_V3_TYPED = {
    "ue4m3xe2m1": "nvfp4", "ue8m0xe2m1": "mxfp4", "ue8m0xe4m3": "mxfp8", "ue8m0xe5m2": "mxfp8", "cf32": "complex64",
}  # fmt: skip
_V2_CUT = late_re(r"cutlass(?P<arch>_\d+)?_(?:simt|tensorop|wmma_tensorop)_\w*$")
_TYPE_WORD = late_re(r"_(bf16|f16|f32|tf32|f64|e4m3|e5m2|s8|u8|s32)(?=_)")
_LETTERS = {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex64", "i": "int8"}
_CONVOLUTIONS = ("fprop", "dgrad", "wgrad", "deconv")


class _Shape(msgspec.Struct, frozen=True):
    """What the two generations of names write in ways of their own."""

    dtype: str | None
    layout: str | None
    instruction: str | None
    tile: tuple[int | None, int | None, int | None] = (None, None, None)
    stages: int | None = None
    cluster: str | None = None


def read_procedural(text: str, *, is_cudnn: bool) -> KernelName | None:
    """The fields of a generated name; None for any other."""
    if match := _V3.match(text):
        shape = _shape_3(match)
    elif match := _V2.match(text):
        shape = _shape_2(match)
    else:
        return None
    rest = match["rest"]
    is_conv = match["op"].endswith(_CONVOLUTIONS)
    is_grouped = not is_conv and ("_grouped" in rest or "_ptr_array" in rest)
    fused = tuple(word for word in ("bias", "relu", "gelu", "silu") if f"_{word}" in rest)
    schedule = tuple(word for word in ("pingpong", "cooperative") if word in rest)
    arch = f"sm{match['arch']}" if match["arch"] else None
    family: Family = "conv" if is_conv else "grouped_gemm" if is_grouped else "gemm"
    m, n, k = shape.tile
    return KernelName(
        library="cudnn" if is_cudnn else "cutlass",
        family=family,
        dtype=shape.dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=shape.stages,
        split_k="yes" if re.search(r"split_?k", rest, re.IGNORECASE) else None,
        arch=arch,
        cluster=shape.cluster,
        layout=shape.layout,
        instruction=shape.instruction,
        flags=schedule,
        fused=fused,
        short_name=short(
            *("cutlass", family.replace("_", " "), arch if text.startswith("cutlass3x") else "", shape.dtype),
            *(match["unit"], size(m, n, k), f"s{shape.stages}" if shape.stages else "", *schedule, *fused),
            shape.layout,
        ),
        evidence=Evidence("CUTLASS procedural name", "D"),
    )


def _shape_3(match: re.Match[str]) -> _Shape:
    rest, mma = match["rest"], match["mma"] or ""
    dtype, instruction = _types_3(rest), mma if "x" in mma else INSTRUCTIONS.get(mma)
    if (tile := _V3_TILE.search(rest)) is None:
        return _Shape(dtype, None, instruction)
    return _Shape(dtype, tile[6], instruction, _tile(tile), int(tile[5] or 0) or None, tile[4])


def _shape_2(match: re.Match[str]) -> _Shape:
    found = re.search(r"_([nt]{2})(?=_|$)", match["rest"])
    dtype, layout, instruction = _type_2(match), found[1] if found else None, INSTRUCTIONS.get(match["mma"])
    if (tile := _V2_TILE.search(match["rest"])) is None:
        return _Shape(dtype, layout, instruction)
    return _Shape(dtype, layout, instruction, _tile(tile), int(tile[4]) or None)


def _tile(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match[1]), int(match[2]), int(match[3])


def read_cut(text: str, *, is_cudnn: bool) -> KernelName | None:
    """A name that was cut before its operation: cuDNN launches convolutions, and names with a number are cuBLAS's."""
    match = _V2_CUT.match(text)
    if match is None or not (is_cudnn or match["arch"]):
        return None
    return KernelName(
        library="cudnn" if is_cudnn else "cutlass",
        family="conv" if is_cudnn else "gemm",
        arch=f"sm{match['arch'][1:]}" if match["arch"] else None,
        short_name=short("cutlass", "conv" if is_cudnn else "gemm", text.rsplit("tensorop_", 1)[-1]),
        evidence=Evidence("CUTLASS procedural name, cut", "I"),
    )


def _types_3(rest: str) -> str | None:
    """The types of A and B, the first two of five or six; block-scaled ones name the scale's type too."""
    types = [_V3_TYPED.get(word) or TYPES.get(word) for word in _V3_TYPES.findall(rest)[:2]]
    return product(*types) if len(types) == 2 else None


def _type_2(match: re.Match[str]) -> str | None:
    """The type named before or after the operation, else its letter; `s1688gemm` multiplies fp32 as tf32."""
    if match["math"]:
        return None  # fp32 in memory, multiplied in a narrower type
    types = _TYPE_WORD.findall(match["rest"] + "_")
    prefix = match["names"].strip("_").split("_")[0]
    plain = "tf32" if match["letter"] == "s" and match["mma"] else _LETTERS.get(match["letter"])
    return TYPES.get(prefix) or (TYPES.get(types[0]) if types else None) or plain
