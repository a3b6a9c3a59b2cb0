"""FlashInfer's attention: `Batch{Prefill,Decode}With…Kernel<KernelTraits<…>,…>`, read as its headers declare them.

"Prefill" in a name is the algorithm: tensor-core decode runs it too. Its other kernels are in the list of functions.
"""

import re

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, numbers, split_template
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_ATTENTION = late_re(
    r"(?:Batch|Single)?(?P<kind>Prefill|Decode|POD|MLA|Cascade)\w*Kernel\w*|PersistentKernel|POD\w+Kernel\w*"
)
_COMBINE = late_re(r"\w*(?:MergeState|AttentionSum)\w*")
_MASKS = {"0": "nomask", "1": "causal", "2": "custom mask", "3": "multi-item"}
_MODE = late_re(r"\(.*MaskMode\)(\d)")


def read(name: ParsedName) -> KernelName | None:
    """An attention kernel in the namespace `flashinfer`."""
    if name.namespaces[:1] != ("flashinfer",):
        return None
    if _COMBINE.fullmatch(name.function):
        dtype = first_dtype(name.arguments, FLOATS)
        words = "attention sum" if "Sum" in name.function else "merge states"
        return _answer("attention_combine", dtype, short("flashinfer", words, dtype))
    match = _ATTENTION.fullmatch(name.function)
    if match is None:
        return None
    function, arguments = name.function, name.arguments
    traits = split_template(arguments[0])[1] if arguments else ()
    if traits and (mode := _MODE.fullmatch(traits[0])):
        return _read_traits(name, traits, _MASKS.get(mode[1], ""))
    inner = [part for text in arguments if "Params<" in text for part in split_template(text)[1]]
    dtype = first_dtype((*traits, *arguments, *inner), FLOATS)
    family: Family = "attention_decode" if "Decode" in function else "attention"
    words = " ".join(re.findall(r"Batch|Single|Prefill|Decode|Paged|Ragged|MLA|POD|Persistent", function)).lower()
    return _answer(family, dtype, short("flashinfer", words, dtype))


def _read_traits(name: ParsedName, traits: tuple[str, ...], mask: str) -> KernelName:
    dtype = first_dtype(traits, FLOATS)
    ints = numbers(traits)
    query = ints[1] if len(ints) > 1 else None
    keys = head_dim = None
    if len(ints) > 7 and all(ints[i] is not None for i in (3, 5, 7)):
        keys, head_dim = 16 * (ints[3] or 0) * (ints[7] or 0), 16 * (ints[5] or 0)
    words = " ".join(re.findall(r"Batch|Single|Prefill|Paged|Ragged", name.function)).lower()
    flags = tuple(word for word in (mask, "paged" if "Paged" in name.function else "") if word)
    return KernelName(
        library="flashinfer",
        family="attention",
        dtype=dtype,
        tile_m=query,
        tile_n=keys,
        head_dim=head_dim,
        flags=flags,
        short_name=short(
            *("flashinfer", words, dtype, f"d{head_dim}" if head_dim else "", mask, f"ctaq{query}" if query else ""),
            size(query, keys) if not query else "",
        ),
        evidence=Evidence("FlashInfer KernelTraits", "D"),
    )


def _answer(family: Family, dtype: str | None, words: str) -> KernelName:
    return KernelName(
        library="flashinfer",
        family=family,
        dtype=dtype,
        short_name=words,
        evidence=Evidence("FlashInfer function", "D"),
    )


GRAMMAR = Grammar("flashinfer", "form", read, spaces="flashinfer", letters="")
