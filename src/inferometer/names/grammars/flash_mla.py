"""FlashMLA: attention over a compressed KV cache, dense or sparse, and what prepares and combines it.

Source: FlashMLA's headers, and the names compiled into vLLM 0.33 and sgl-kernel 0.3. `[legacy::]<sm90|sm100|smxx>::
[decode|prefill]::…::flash_fwd_splitkv_mla_kernel<Traits<…>>`; earlier without namespace, or in `flash`. Split-KV
kernels are its decode, unless they stand in a namespace of prefill. The library has no word of its own: `other`.
"""

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, arguments_of, numbers
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_FUNCTION = late_re(
    r"(?P<combine>flash_fwd_(?:splitkv_)?mla_combine_kernel)|(?P<split>flash_fwd_splitkv_mla_(?:\w+_)?kernel)|"
    r"(?P<sparse>sparse_attn_fwd_(?:\w+_)?kernel)|(?P<metadata>get_mla_metadata_kernel\w*)|(?P<core>fwd_kernel)"
)
_ARCH = late_re(r"sm\d{2,3}")


def read(name: ParsedName) -> KernelName | None:
    """A kernel of FlashMLA."""
    match = _FUNCTION.fullmatch(name.function)
    if match is None or (match["core"] and "core_attn" not in name.namespaces):
        return None
    kind = str(match.lastgroup)
    family = _family(kind, name.namespaces)
    arch = next((space for space in name.namespaces if _ARCH.fullmatch(space)), None)
    traits = arguments_of("Flash_fwd_kernel_traits_mla", name.text)
    sizes = [*numbers(traits[:3]), None, None, None]
    dtype = first_dtype((*traits, *arguments_of("Traits", name.text[:400]), *name.arguments[:1]), FLOATS)
    phase = family.partition("_")[2] if family in ("attention_decode", "attention_prefill") else ""
    words = {"split": "fwd", "core": "fwd", "sparse": "fwd sparse"}.get(kind, kind)
    sparse = ("sparse",) if "sparse" in name.function else ()
    return KernelName(
        family=family,
        dtype=dtype,
        tile_m=sizes[1],
        tile_n=sizes[2],
        arch=arch,
        head_dim=sizes[0],
        flags=sparse,
        short_name=short(
            *("flash_mla", words, phase, arch, dtype, f"d{sizes[0]}" if sizes[0] else "", size(sizes[1], sizes[2])),
            "sparse" if sparse and kind == "split" else "",
        ),
        evidence=Evidence("FlashMLA function", "D"),
    )


def _family(kind: str, namespaces: tuple[str, ...]) -> Family:
    if kind == "combine":
        return "attention_combine"
    if kind == "metadata":
        return "attention_metadata"
    if "prefill" in namespaces:
        return "attention" if kind == "split" else "attention_prefill"
    return "attention_decode" if kind == "split" or "decode" in namespaces else "attention"


GRAMMAR = Grammar("flash_mla", "form", read, spaces=r"flash|legacy|sm\d+|smxx", letters="fgs")
