"""nvjet: what cuBLAS and cuBLASLt since 12.x run on Hopper and Blackwell, generated at run time.

`nvjet_[sm<NN>_]<types>_<M>x<N>_<K>x<stages>_<c1>x<c2>[_2cta]_<h|v>_<bz|badd>[_coopA|_coopB][_splitK][_…]_<XYZ>`. NVIDIA
documents none of it. Tile, stages, split and the third letter of the types are verified on recorded names; clusters,
raster and the other letters are inferred, the words of options stand in cuBLASLt 13's own text. `2cta` means Blackwell,
but not which one: the architecture stays empty.
"""

from functools import lru_cache
from typing import NamedTuple

from inferometer.names.dtypes import product
from inferometer.names.kernel_name import Evidence, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_NAME = late_re(
    r"nvjet_(?:(?P<arch>sm\d+)a?_)?(?P<types>[a-z]{3,6})(?P<tf32>_tf32)?_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)"
    r"(?:_(?P<cluster>\d+x\d+))?(?P<rest>(?:_\w+)?)"
)
_LETTERS = {"t": "bf16", "h": "fp16", "s": "fp32", "q": "fp8_e4m3", "r": "fp8_e5m2", "b": "int8", "d": "fp64"}
_LAYOUT = late_re(r"[NT]{2,3}[nt]?")
_FOUR_BITS = {"Avec16UE4M3": "nvfp4", "Avec32UE8M0": "mxfp4"}  # letter `o`, distinguished by the scales of its blocks
_EIGHT_BITS = late_re(r"Avec32(?:MnK4)?UE8M0")
_FUSED = late_re(r"(relu|gelu)?(aux)?(bias)?")
_PLAIN = {"h", "v", "bz", "badd", "splitK", "coopA", "coopB", "bias", ""}


def read(name: ParsedName) -> KernelName | None:
    """The fields of an nvjet name; a prefix is enough, for tools that cut names."""
    if not name.function.startswith("nvjet_"):
        return None
    match = _NAME.match(name.function)
    if match is None:
        return KernelName(
            library="cublas", family="gemm", short_name="nvjet gemm", evidence=Evidence("nvjet prefix", "I")
        )
    words = match["rest"].split("_")
    options = _options(match["rest"])
    layout = options.layout
    tile = (int(match["m"]), int(match["n"]), int(match["k"]))
    dtype = _dtype(match["types"], words, is_tf32=bool(match["tf32"]) or "tf32" in words)
    cluster, stages = match["cluster"], int(match["stages"])
    return KernelName(
        library="cublas",
        family="gemm",
        dtype=dtype,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        stages=stages,
        split_k="yes" if options.is_split else None,
        arch=match["arch"],
        cluster=cluster,
        layout=layout,
        coop=options.coop,
        flags=options.flags,
        fused=options.fused,
        short_name=short(
            *("nvjet gemm", match["arch"], dtype, size(*tile), f"s{stages}", f"cl{cluster}" if cluster else ""),
            *("splitK" if options.is_split else "", options.coop, *options.fused, layout),
        ),
        evidence=Evidence("nvjet", "V"),
    )


class _Options(NamedTuple):
    """What is after the cluster, in its own words; names share most of these."""

    layout: str | None
    is_split: bool
    coop: str | None
    flags: tuple[str, ...]
    fused: tuple[str, ...]


@lru_cache(maxsize=4_096)
def _options(rest: str) -> _Options:
    words = rest.split("_")
    layout = words[-1] if _LAYOUT.fullmatch(words[-1]) else None
    raster = [word for word in words if word in ("h", "v", "bz", "badd")]
    others = [word for word in words if word not in _PLAIN and word != layout]
    return _Options(
        layout=layout,
        is_split="splitK" in words,
        coop=next((word for word in words if word in ("coopA", "coopB")), None),
        flags=(*raster, *others),
        fused=_fused(words),
    )


def _dtype(letters: str, words: list[str], *, is_tf32: bool) -> str | None:
    """Three letters: of A and B, of the computation, of C and D. Five: A and B have one each."""
    if letters.startswith("oo"):
        return next((dtype for word, dtype in _FOUR_BITS.items() if word in words), None)
    if letters[0] in "qr" and any(_EIGHT_BITS.fullmatch(word) for word in words):
        return "mxfp8"
    if is_tf32:
        return "tf32"
    second = letters[1] if len(letters) >= 5 else letters[0]
    return product(_LETTERS.get(letters[0]), _LETTERS.get(second))


def _fused(words: list[str]) -> tuple[str, ...]:
    """What the epilogue does besides the product: `reluauxbias` is bias, then relu whose mask is kept."""
    match = next((match for word in words if word and (match := _FUSED.fullmatch(word))), None)
    return () if match is None else tuple(word for word in (match[3], match[1]) if word)


GRAMMAR = Grammar("nvjet", "form", read, spaces="", letters="n")
