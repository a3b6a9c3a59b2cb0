"""MLX, Apple's array library: Metal kernels whose types and tile stand in the name.

`steel_gemm_fused_nt_<a>_<b>_bm<M>_bn<N>_bk<K>_…`, `affine_qmv_fast_<type>_gs_<group>_b_<bits>_…`,
`sdpa_vector_<type>_<d>_<d>`, `rms<type>`, `rope_<type>`. Source: MLX's public repository.
"""

from inferometer.names.dtypes import TYPES
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"steel_gather_mm", "grouped_gemm"),
    (r"affine_gather_q|mxfp4_gather_q|fp_gather_q", "grouped_gemm"),
    (r"steel_gemm|(?:affine|mxfp4|fp)_q[mv][mv]|gemv_(?:t_|gather_)?(?:float|bfloat)", "gemm"),
    (r"steel_conv|winograd_conv|naive_(?:un)?fold", "conv"),
    (r"sdpa_vector_2pass_2", "attention_combine"),
    (r"sdpa_vector|steel_attention", "attention"),
    (r"affine_(?:de)?quantize", "quantize"),
    (r"(?:rms|layer_norm|vjp_rms)_?(?:looped)?_?(?:float|bfloat)", "norm"),
    (r"(?:looped|block)_softmax_", "softmax"),
    (r"rope_(?:single_)?(?:freqs_)?(?:float|bfloat)", "rope"),
)
_FAMILIES_COMPILED = tuple((late_re(pattern), family) for pattern, family in _FAMILIES)
_TYPE = late_re(r"(bfloat16|float16|float32)(?=_|$)")
_TILE = late_re(r"_bm(\d+)_bn(\d+)_bk(\d+)(?=_|$)")


def read(name: ParsedName) -> KernelName | None:
    """A kernel of MLX."""
    function = name.function
    family = (
        next((family for pattern, family in _FAMILIES_COMPILED if pattern.match(function)), None)
        if name.is_bare
        else None
    )
    if family is None:
        return None
    typed, tile = _TYPE.search(function), _TILE.search(function)
    m, n, k = (int(number[:6]) for number in tile.groups()) if tile else (None, None, None)
    dtype = TYPES.get(typed[1]) or TYPES.get(f"{typed[1]}_t") if typed else None
    words = function.split("float")[0].removesuffix("b").strip("_").replace("_", " ")
    return KernelName(
        family=family,
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        short_name=short("mlx", words, dtype, size(m, n, k)),
        evidence=Evidence("MLX kernel", "D"),
    )


GRAMMAR = Grammar("mlx", "form", read, spaces="", letters="samfgnwvlbr")
