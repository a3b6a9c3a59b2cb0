"""AITER's assembly and generated kernels: plain names whose words show type, tile and phase.

`fmoe_[stage1_]<out>_<quantisation><type>_…_<M>x<N>`, `pa_<type>_…`, `mla_{dec,pfl}_…`, `fmha_{fwd,bwd}_hd<d>_…`,
`f4gemm_…_<M>x<N>`, `hgemm_<type>_<M>x<N>x<K>x<stages>_SPK<split of K>_…`, and FlyDSL's two products of a layer of
experts: `mfma_moe{1,2}_[<activation>_]a<type>_w<type>_…_t<M>x<N>x<K>`, `gemm{1,2}_a<bits>w<bits>_…_bm<M>_bn<N>_bk<K>`.
Source: the code objects in the package amd-aiter 0.1.7 and AITER's public repository. Some stand in the namespace
`aiter`.
"""

import re

from inferometer.names.dtypes import TYPES, product
from inferometer.names.kernel_name import Evidence, Family, KernelName, Mark
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_SHORT_TYPES = TYPES | {
    "fp8": "fp8_e4m3", "fp4": "mxfp4", "mxfp4": "mxfp4", "h": "fp16", "b": "bf16", "f": "fp32", "i8": "int8",
}  # fmt: skip
_HGEMM = late_re(
    r"hgemm_(?P<type>[a-z0-9]+?)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:x(?P<s>\d+))?"
    r"(?:_(?:\w*?_)?SPK(?P<split>\d+)(?=_|$)\w*|_\w*)?"
)
_MOE = late_re(
    r"mfma_moe(?P<stage>[12])_(?:\w*?_)?a(?P<a>[a-z]+\d+)_w(?P<w>[a-z]+\d+)_(?:\w*?_)?t(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_\w*)?"
)
_MOE_TYPES = late_re(r"_a([a-z]+\d+)_w([a-z]+\d+)_")
_FAMILIES: tuple[tuple[str, Family, Mark], ...] = (
    (r"fmoe(?:_|$)", "grouped_gemm", "D"),
    (r"moe_(?:ck2stages|stage[12]|gemm)|mfma_moe[12]_|gemm[12]_a\d+w\d+_", "grouped_gemm", "I"),
    (r"moe_reduction_kernel_", "moe_routing", "I"),
    (r"mla_(?:pfl|prefill)_", "attention_prefill", "D"),
    (r"mla_dec_|mla_stage1", "attention_decode", "D"),
    (r"mla_a\d+w\d+_", "attention", "D"),
    (r"mla_reduce", "attention_combine", "D"),
    (r"pa_\w*reduce", "attention_combine", "I"),
    (r"pa_(?:bf16|fp16|fp8|a16w16|a16w8|a8w8|mqa|decode)|PA_A\d+W\d+_", "attention_decode", "D"),
    (r"fmha_(?:fwd|bwd)_|fmha_v3|_?fwd_hd\d|bwd_hd\d", "attention", "D"),
    (r"(?:f4gemm|f8_block_scale|[iI]8gemm|bf16gemm|fp8gemm|a8w8_|a4w4_|flatmm_uk_)", "gemm", "D"),
    (r"topksoftmax_\d", "moe_routing", "D"),
    (r"allreduce_(?:rmsnorm|layernorm)_\w*N\d", "collective", "D"),
)
_FAMILIES_COMPILED = tuple((late_re(pattern), family, mark) for pattern, family, mark in _FAMILIES)
_QUANTIZED = late_re(r"_(?:per[tT]oken|blockscale|noquant|per1x32)(Int8|I8|Fp8|MXfp4|Fp4|Bf16|Fp16)(?=_)")
_TYPED = late_re(r"(?:_|^)(bf16|fp16|fp8|int8|mxfp4)(?=_|gemm|$)")
_TILE = late_re(r"_(\d{1,4})x(\d{1,4})(?:x(\d{1,4}))?(?=_|$)")
_BLOCKS = late_re(r"_bm(\d{1,4})_bn(\d{1,4})_bk(\d{1,4})(?=_|$)")
_CHIPS = {"mi300": "gfx942", "mi350": "gfx950"}
_CHIP = late_re(r"_(mi3[05]0|gfx[0-9a-f]{3,4})_")


def read(name: ParsedName) -> KernelName | None:
    """A kernel in assembly, or one that AITER generated under a plain name."""
    if name.arguments or name.namespaces not in ((), ("aiter",)):
        return None
    function = name.function
    if (match := _HGEMM.fullmatch(function)) is not None:
        stages = int(match["s"][:3]) if match["s"] else None
        dtype = _SHORT_TYPES.get(match["type"]) or None
        split = int(match["split"][:4]) if match["split"] else None
        tile = tuple(int(match[axis][:6]) for axis in "mnk")
        return _answer("gemm", "hgemm", dtype, tile, stages=stages, split=split)
    if (match := _MOE.fullmatch(function)) is not None:
        dtype = product(_SHORT_TYPES.get(match["a"]) or None, _SHORT_TYPES.get(match["w"]) or None)
        tile = tuple(int(match[axis][:6]) for axis in "mnk")
        return _answer("grouped_gemm", f"moe stage {match['stage']}", dtype, tile)
    for pattern, family, mark in _FAMILIES_COMPILED:
        if pattern.match(function):
            return _read_words(function, family, mark)
    return None


def _read_words(function: str, family: Family, mark: Mark) -> KernelName:
    sized = family in ("gemm", "grouped_gemm")
    tile = (_TILE.search(function) or _BLOCKS.search(function)) if sized else None
    chip, head = _CHIP.search(function), re.search(r"_hd(\d{2,3})(?=_|$)", function)
    return KernelName(
        library="aiter",
        family=family,
        dtype=_dtype(function),
        tile_m=int(tile[1]) if tile else None,
        tile_n=int(tile[2]) if tile else None,
        tile_k=int(tile[3]) if tile and tile[3] else None,
        split_k="yes" if sized and "_splitk" in function.lower() else None,
        arch=_CHIPS.get(chip[1], chip[1]) if chip else None,
        head_dim=int(head[1]) if head else None,
        flags=tuple(flag for flag, word in (("causal", "_causal"), ("varlen", "_group")) if word in function),
        short_name=short(f"aiter {function[:50]}"),
        evidence=Evidence("AITER assembly", mark),
    )


def _dtype(function: str) -> str | None:
    """What the product multiplies, which comes after the quantisation; else the type that the name begins with."""
    quantized = None if function.startswith("pa_") else _QUANTIZED.search(function)
    if quantized is not None:
        return _SHORT_TYPES.get(quantized[1].lower().removeprefix("mx"))
    if function.startswith(("f4gemm", "f8_block", "flatmm_uk")):
        return "mxfp4" if function.startswith("f4") else "fp8_e4m3" if "f8" in function else None
    if function.startswith("mfma_moe") and (types := _MOE_TYPES.search(function)) is not None:  # cut before the tile
        return product(_SHORT_TYPES.get(types[1]) or None, _SHORT_TYPES.get(types[2]) or None)
    typed = _TYPED.search(function)
    return _SHORT_TYPES.get(typed[1]) if typed else None


def _answer(
    family: Family,
    words: str,
    dtype: str | None,
    tile: tuple[int, ...],
    *,
    stages: int | None = None,
    split: int | None = None,
) -> KernelName:
    return KernelName(
        library="aiter",
        family=family,
        dtype=dtype,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        stages=stages,
        split_k=split,
        short_name=short(
            *("aiter", words, dtype, size(*tile), f"s{stages}" if stages else ""),
            f"splitK{split}" if split and split > 1 else "",
        ),
        evidence=Evidence(f"AITER {words}", "D"),
    )


GRAMMAR = Grammar("aiter_assembly", "form", read, spaces="aiter", letters="_abfghiImpPt")
