"""What a kernel does, from the words of its function's name: the last resort, for libraries without a grammar or list.

Only the function's own name is read, never its arguments. The order matters: what an operator is fused into comes
before what it is made of (a quantising norm is a norm), and the parts of an algorithm after the algorithm.

A bare identifier in lower case that ends in `_kernel` or begins with `_`, and is no function of a C++ library that a
list knows, is taken for one of Triton, whose names have neither namespace nor parameters: inferred.
"""

import re
from functools import cache, lru_cache

import msgspec

from inferometer.names.function_lists import cpp_functions
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EDGE = r"(?:(?<![a-z])(?=[a-z])|(?<=[a-z])(?![a-z]))"  # of a word: `_` and digits are outside, unlike for \b
_TRITON = re.compile(r"_[a-z][a-z0-9_]*|[a-z][a-z0-9_]*(?:_kernel(?:_[a-z0-9_]+)?|_triton\w*)")


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


def read(name: ParsedName) -> KernelName | None:
    """A name that no grammar and no list knows: the family by its words; of the library nothing is said."""
    family = find_family(name.function)
    if name.is_bare and _TRITON.fullmatch(name.function) and name.function not in cpp_functions():
        return KernelName(
            library="triton",
            family=family or "other",
            short_name=short(name.function.strip("_").replace("_", " ")[:50], "(triton)"),
            evidence=Evidence("identifier in the style of Triton", "I"),
        )
    if family is None:
        return None
    return KernelName(
        family=family,
        short_name=short(name.function.strip("_")[:60]),
        evidence=Evidence("words of the function's name", "I"),
    )


GRAMMAR = Grammar("words", "words", read)
