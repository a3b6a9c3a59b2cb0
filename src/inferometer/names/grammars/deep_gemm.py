"""DeepGEMM: `deep_gemm::sm90_fp8_gemm_1d2d_impl<…M,N,K,groups,BM,BN,BK,…>`; N and K of the weight stand in the name.

Source: DeepGEMM's headers. The order of arguments moves between releases: the block is the first run of three numbers
that look like one after the groups, the stages the first small number after the swizzles; else they stay empty.
"""

import re

from inferometer.names.dtypes import TYPES, dtype_of, product
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, numbers
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_GROUPED = late_re(r"GemmType\)[12345]|GemmType::(?:M?Grouped|KGrouped)")
_SWIZZLES = (0, 16, 32, 64, 128)
_TYPE_WORD = late_re(r"_(fp8|bf16|fp32)(_fp\d)?(?=_|$)")
_WORDS = {"fp8": "fp8_e4m3", "bf16": "bf16", "fp32": "fp32"}
_ARCH = late_re(r"sm(\d{2,3})_")


def read(name: ParsedName) -> KernelName | None:
    """A kernel in the namespace `deep_gemm`."""
    if name.namespaces[:1] != ("deep_gemm",):
        return None
    function = name.function
    arch = _ARCH.match(function)
    arch_name = f"sm{arch[1]}" if arch else None
    if "gemm" not in function or "logits" in function or "metadata" in function:
        family = _family_of_helper(function)
        word = _TYPE_WORD.search(function)
        words = short("deep_gemm", function.replace("_impl", ""))
        return KernelName(
            library="deep_gemm",
            family=family,
            dtype=_WORDS[word[1]] if word and not word[2] else None,
            arch=arch_name,
            short_name=words,
            evidence=Evidence("DeepGEMM function", "D"),
        )
    grouped = bool(_GROUPED.search(name.text)) or "grouped" in function
    m, n, k, stages = _block(name)
    kind = re.search(r"(fp8|bf16|fp4|tf32)(?:_(fp8|fp4|bf16))?_", function)
    dtype = None
    if kind and not kind[2] and kind[1] != "fp4":
        dtype = "fp8_e4m3" if kind[1] == "fp8" else TYPES.get(kind[1])
    elif kind:  # which of the two types each operand has stands among the arguments
        types = [dtype_of(argument) for argument in name.arguments if "::float_e" in argument]
        dtype = product(*types[:2]) if len(types) > 1 else None
    return KernelName(
        library="deep_gemm",
        family="grouped_gemm" if grouped else "gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=stages,
        arch=arch_name,
        short_name=short(
            *("deep_gemm", "grouped" if grouped else "", "gemm", arch_name, dtype, size(m, n, k)),
            *(f"s{stages}" if stages else "", _weight(name)),
        ),
        evidence=Evidence("DeepGEMM template", "I"),
    )


def _family_of_helper(function: str) -> Family:
    if "metadata" in function:
        return "attention_metadata"
    if "logits" in function:
        return "attention"
    if "transpose" in function or "pack" in function or "layout" in function:
        return "copy"
    return find_family(function) or "other"


def _block(name: ParsedName) -> tuple[int | None, int | None, int | None, int | None]:
    values = numbers(name.arguments)
    shapes = next((i for i, value in enumerate(values) if value is not None), 0)
    is_old = name.function.startswith("fp8_gemm")  # N, K, then the block, groups and stages
    is_new = name.function.startswith("sm1")  # the groups follow the block
    begin = shapes + (2 if is_old else 3 if is_new else 4)
    for i in range(begin, len(values) - 2):
        block = values[i : i + 3]
        if all(value is not None and 16 <= value <= 256 and value % 8 == 0 for value in block):
            padded = is_old and values[i + 3] == 0  # then padding, swizzle and groups follow
            after = values[i + 3 + (3 if padded else is_old or is_new) : i + 10]
            stages = next((value for value in after if value is None or value not in _SWIZZLES or is_old), None)
            return block[0], block[1], block[2], stages if stages is not None and 1 <= stages <= 32 else None
    return None, None, None, None


def _weight(name: ParsedName) -> str:
    values = [value for value in numbers(name.arguments)[:5] if value is not None]
    is_old = name.function.startswith("fp8_gemm")
    shape = values[0:2] if is_old else values[1:3]
    return f"n{shape[0]} k{shape[1]}" if len(shape) == 2 and all(shape) else ""


GRAMMAR = Grammar("deep_gemm", "form", read, spaces="deep_gemm", letters="")
