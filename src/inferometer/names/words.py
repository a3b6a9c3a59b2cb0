"""What a kernel does, from the words of its function's name: the last resort, for libraries without a grammar or list.

Only the function's own name is read, never its arguments. The order matters: what an operator is fused into comes
before what it is made of (a quantising norm is a norm), and the parts of an algorithm after the algorithm.

A bare identifier that ends in `_kernel`, begins with `_` or `kernel_`, or names Gluon (Triton's lower layer), and is no
function of a C++ library that a list knows, is taken for one of Triton, whose names have neither namespace nor
parameters: inferred. Constants that some libraries write behind it (`_BLOCK_SIZE_M_16_…`) are no words of its name.
"""

import re
from functools import cache, lru_cache

import msgspec

from inferometer.names.dtypes import FLOATS, dtype_of, first_dtype
from inferometer.names.function_lists import cpp_functions
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EDGE = r"(?:(?<![a-z])(?=[a-z])|(?<=[a-z])(?![a-z]))"  # of a word: `_` and digits are outside, unlike for \b
_ARCH = re.compile(r"(?:(?<![A-Za-z0-9])sm|Sm)(\d{2,3})(?!\d)")
_TRITON = re.compile(
    r"_[A-Za-z]\w*|(?=[a-z])(?:[a-z0-9_]|[A-Z](?![a-z]))*(?:_kernel(?:_\w*)?|_triton\w*)"
    r"|(?:\w*_)?gluon_\w*|\w+_gluon|kernel_[a-z]\w*"
)
_CONSTANTS = re.compile(r"_[A-Z]{2}[A-Z_]*_\d\w*$")


class _Rule(msgspec.Struct, frozen=True):
    family: Family
    words: tuple[str, ...]


class _Rules(msgspec.Struct, frozen=True):
    source: str
    rules: tuple[_Rule, ...]


@cache
def _rules() -> tuple[tuple[Family, re.Pattern[str]], ...]:
    """Families in the order of asking, each with a pattern of its words."""
    from importlib.resources import files

    text = (files("inferometer.names") / "words.json").read_bytes()
    rules = msgspec.json.decode(text, type=_Rules).rules
    return tuple((rule.family, re.compile("|".join(rule.words).replace(r"\b", _EDGE))) for rule in rules)


@lru_cache(maxsize=65_536)
def find_family(function: str) -> Family | None:
    """The family that the words of a function's name tell; None where they tell nothing."""
    words = f"_{_CAMEL.sub('_', function[:300]).lower()}_"
    return next((family for family, pattern in _rules() if pattern.search(words)), None)


def find_arch(function: str) -> str | None:
    """The architecture of NVIDIA that a function's name tells, as `gemm_4bit_sm80_m16n8k16` does."""
    match = _ARCH.search(function[:300])
    return f"sm{match[1]}" if match else None


def is_triton_style(name: ParsedName) -> bool:
    """Whether nothing but the style of an identifier speaks, and that for Triton."""
    return name.is_bare and _TRITON.fullmatch(name.function) is not None and name.function not in cpp_functions()


def data_type(arguments: tuple[str, ...], family: Family | None) -> str | None:
    """The first type of floats; of a cast or quantisation that ends in fp8, the last two."""
    if family not in ("quantize", "copy") or len(arguments) < 2:
        return first_dtype(arguments, FLOATS)
    types = [dtype for argument in arguments if (dtype := dtype_of(argument)) in FLOATS]
    is_cast = len(types) > 1 and str(types[-1]).startswith("fp8") and types[-2] != types[-1]
    return f"{types[-2]}>{types[-1]}" if is_cast else types[0] if types else None


def read(name: ParsedName) -> KernelName | None:
    """A name that no grammar and no list knows: the family by its words; of the library nothing is said."""
    is_triton = is_triton_style(name)
    family = find_family(_CONSTANTS.sub("", name.function[:300]) if is_triton else name.function)
    if is_triton:
        return KernelName(
            library="triton",
            family=family or "other",
            short_name=short(name.function.strip("_").replace("_", " ")[:50], "(triton)"),
            evidence=Evidence("identifier in the style of Triton", "I"),
        )
    dtype, arch = data_type(name.arguments, family), find_arch(name.function)
    if not (family or dtype or arch):
        return None
    return KernelName(
        family=family or "other",
        dtype=dtype,
        arch=arch,
        short_name=short(name.function.strip("_")[:60], dtype),
        evidence=Evidence("words of the function's name", "I"),
    )


GRAMMAR = Grammar("words", "words", read)
