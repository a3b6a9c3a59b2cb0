"""Types of data as C++, generated names and libraries write them, in one vocabulary.

Sources: CUDA, HIP, CUTLASS, PyTorch and Triton headers. 8-bit unsigned integers, half of complex and opaque storage
types (`OpaqueType<2>`) show a size, not a type: they have no entry.
"""

from collections.abc import Iterable
from functools import lru_cache

from inferometer.patterns import late_re

TYPES = {
    **dict.fromkeys(
        ("__nv_bfloat16", "nv_bfloat16", "__hip_bfloat16", "hip_bfloat16", "BFloat16", "bfloat16_t", "bfloat16",
         "__bf16", "bf16", "bhalf_t", "bf16_t", "bf16_raw_t", "Bfloat16", "hip_bf16", "__hip_bfloat16_raw",
         "DF16b", "__nv_bfloat162", "nv_bfloat162", "__hip_bfloat162"), "bf16"),
    **dict.fromkeys(
        ("__half", "half", "Half", "half_t", "_Float16", "fp16", "f16", "Fp16", "float16", "fp16_t", "__fp16",
         "nv_half", "__half2", "half2"), "fp16"),
    **dict.fromkeys(("float", "fp32", "f32", "Fp32", "float32", "Float32"), "fp32"),
    **dict.fromkeys(("tf32", "tfloat32_t"), "tf32"),
    **dict.fromkeys(("double", "fp64", "f64"), "fp64"),
    **dict.fromkeys(
        ("__nv_fp8_e4m3", "Float8_e4m3fn", "Float8_e4m3fnuz", "float_e4m3_t", "e4m3", "E4m3", "fp8e4nv", "fp8e4b8",
         "__hip_fp8_e4m3", "__hip_fp8_e4m3_fnuz", "float8e4m3fn", "__nv_fp8x4_e4m3"), "fp8_e4m3"),
    **dict.fromkeys(
        ("__nv_fp8_e5m2", "Float8_e5m2", "Float8_e5m2fnuz", "float_e5m2_t", "e5m2", "E5m2", "fp8e5",
         "__hip_fp8_e5m2", "__hip_fp8_e5m2_fnuz", "bf8_t"), "fp8_e5m2"),
    **dict.fromkeys(("signed char", "int8_t", "std::int8_t", "int8", "i8", "Int8", "s8", "char"), "int8"),
    **dict.fromkeys(("int", "int32_t", "std::int32_t", "int32", "i32"), "int32"),
    **dict.fromkeys(("long", "long long", "int64_t", "std::int64_t", "int64", "i64"), "int64"),
    "bool": "bool",
    **dict.fromkeys(("float2", "cuComplex", "cuFloatComplex", "complex<float>"), "complex64"),
}  # fmt: skip
FLOATS = frozenset({"bf16", "fp16", "fp32", "tf32", "fp64", "fp8_e4m3", "fp8_e5m2", "mxfp8", "mxfp4", "nvfp4"})
NARROW = FLOATS - {"fp32", "tf32", "fp64"}

_SCALED = (  # an element type next to the type of its block's scale
    (late_re(r"nv_float4_t|float_e2m1_t.*float_ue4m3_t"), "nvfp4"),
    (late_re(r"mx_float4_t|float_e2m1_t.*float_ue8m0_t"), "mxfp4"),
    (late_re(r"mx_float8_t|float_e[45]m[32]_t.*float_ue8m0_t"), "mxfp8"),
)


@lru_cache(maxsize=65_536)
def dtype_of(text: str) -> str | None:
    """The type that a C++ type's text means; None for one that isn't a known number."""
    text = _without_qualifiers(text)
    if text.endswith("complex<float>"):
        return "complex64"
    if "<" in text:
        return next((dtype for pattern, dtype in _SCALED if pattern.search(text)), None)
    return TYPES.get(text) or TYPES.get(text.rsplit("::", 1)[-1])


def first_dtype(arguments: Iterable[str], among: frozenset[str] | None = None) -> str | None:
    """The first argument that is a type (of those wanted)."""
    for argument in arguments:
        dtype = dtype_of(argument)
        if dtype is not None and (among is None or dtype in among):
            return dtype
    return None


def product(activation: str | None, weight: str | None) -> str | None:
    """`a*b` where a matrix product reads two types, `a` where they are one; None where one isn't known."""
    if activation is None or weight is None:
        return None
    return activation if activation == weight else f"{activation}*{weight}"


def _without_qualifiers(text: str) -> str:
    end, before = len(text), -1
    while end != before:
        before = end
        end -= text.endswith(("*", "&"), 0, end) or len(" const") * text.endswith(" const", 0, end)
    return text[:end]
