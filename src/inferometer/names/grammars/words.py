"""What a kernel does, from the words of its function's name: the last resort, for libraries without a grammar or list.

Only the function's own name is read, never its arguments. `words.json` holds the rules, and the first that fits
answers. The order matters: what an operator is fused into comes before what it is made of (a quantising norm is a
norm), and the parts of an algorithm after the algorithm. `whole` words count only where the name says nothing else.
`weak` words mean something else in many names (`_pack_qkv` writes a cache, `transform_forces` is no copy): they count
only where all other words are `plain` ones, which say how or on what data, or other general operations, since a wrong
family costs more than none. `unless` are words that forbid a rule. A rule that `yields` doesn't count where the name
ends in one of the `operations` (`_mla_kv_update` writes a cache, it computes no attention), nor where it only
quantises. `parts` of a model give a general family its meaning there: what sorts or copies for experts is routing.

A bare identifier that ends in `_kernel`, begins with `_` or `kernel_`, or names Gluon (Triton's lower layer), and is no
function of a C++ library that a list knows, is taken for one of Triton, whose names have neither namespace nor
parameters: inferred. So is one of four lower-case words or more whose family they say, except on AMD's devices, where
assembly has such names too. Constants that some libraries write after it (`_BLOCK_SIZE_M_16_…`) are no words of its
name.
"""

import re
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from inferometer.names.dtypes import FLOATS, dtype_of, first_dtype
from inferometer.names.function_lists import cpp_functions
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, split_template
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EDGE = r"(?:(?<![a-z])(?=[a-z])|(?<=[a-z])(?![a-z]))"  # of a word: `_` and digits are outside, unlike for \b
_ARCH = re.compile(r"(?:(?<![A-Za-z0-9])sm|Sm)(\d{2,3})(?!\d)")
_TRITON = re.compile(
    r"_[A-Za-z]\w*|(?=[a-z])(?:[a-z0-9_]|[A-Z](?![a-z]))*(?:_kernel(?:_\w*)?|_triton\w*)"
    r"|(?:\w*_)?gluon_\w*|\w+_gluon|kernel_[a-z]\w*|triton_(?!softmax|gemm)[a-z]\w*"
    r"|[a-z]\w*_(?:fwd|bwd|forward|backward)"
)
_SNAKE = re.compile(r"(?!mlir_|wrapped_|triton_)(?!.*fusion)[a-z][a-z0-9]*(?:_[a-z0-9]+){3,}(?<!_[fi]\d\d)")
_WHOLE = (  # a name that says no more than this word, but for how it is done
    r"^_+(?:(?:special|vector|optimi[sz]ed|fused|fast|naive|simple|efficient|custom|triton|tiled|basic|my)_+)*(?:{})_+"
    r"(?:(?:kernel|func|forward|real|complex|inplace|tensor|scalar|fp|tt|ts|st|rank|out|(?=\d))\d*_+)*$"
)
_LAST = r"(?:{})(?:_(?:kernel|fwd|forward|bwd|backward|triton|gluon|inplace|impl|v|rows?|tile))*_?\d*_$"
_ONLY_QUANTISES = r"^(?!.*(?:decode|fwd|bwd|prefill|attn|attention|stage_?1|score|logits)).*(?<!turbo)(?<!turbo_)quant"
_CONSTANTS = re.compile(r"_[A-Z]{2}[A-Z_]*_\d\w*$")


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    family: Family
    words: tuple[str, ...]
    weak: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    yields: bool = False


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: tuple[str, ...]
    changes: dict[Family, Family]


class _Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    operations: tuple[str, ...]
    rules: tuple[_Rule, ...]
    parts: tuple[_Part, ...]
    plain: frozenset[str]


class _Words(NamedTuple):
    """A rule as patterns: of words that decide, of weak ones, and of those that forbid it."""

    family: Family
    strong: re.Pattern[str]
    weak: re.Pattern[str] | None
    forbidden: re.Pattern[str] | None

    def fit(self, words: str, *, is_cut: bool) -> bool:
        if self.strong.search(words) is None and (
            is_cut or self.weak is None or self.weak.search(words) is None or not _is_plain(words)
        ):
            return False
        return self.forbidden is None or self.forbidden.search(words) is None


@cache
def _file() -> _Rules:
    from importlib.resources import files

    return msgspec.json.decode((files("inferometer.names") / "words.json").read_bytes(), type=_Rules)


@cache
def _rules() -> tuple[_Words, ...]:
    """The rules in the order of asking."""
    file = _file()
    yields = (_LAST.format("|".join(file.operations)), _ONLY_QUANTISES)
    rules = []
    for rule in file.rules:
        words = (*rule.words, _WHOLE.format("|".join(rule.whole))) if rule.whole else rule.words
        unless = (*rule.unless, *yields) if rule.yields else rule.unless
        weak = _pattern(rule.weak) if rule.weak else None
        rules.append(_Words(rule.family, _pattern(words), weak, _pattern(unless) if unless else None))
    return tuple(rules)


@cache
def _general() -> re.Pattern[str]:
    """All words of the rules that have weak ones: general operations, which may stand next to each other."""
    return _pattern(tuple(word for rule in _file().rules if rule.weak for word in (*rule.words, *rule.weak)))


def _is_plain(words: str) -> bool:
    """Whether the name says no more than general operations, and how and on what data they work."""
    others = re.split(r"[\d_]+", _general().sub("_", words))
    return all(len(word) < 2 or word in _file().plain for word in others)


@cache
def _parts() -> tuple[tuple[re.Pattern[str], dict[Family, Family]], ...]:
    """Patterns of the parts of a model that give a general family another meaning."""
    return tuple((_pattern(part.words), part.changes) for part in _file().parts)


def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return late_re("|".join(words).replace(r"\b", _EDGE))


@lru_cache(maxsize=65_536)
def find_family(function: str, *, is_cut: bool = False) -> Family | None:
    """The family that the words of a function's name say; None where they show nothing.

    Of a name that was cut, weak words show nothing: what stood beside them isn't known.
    """
    words = f"_{_CAMEL.sub('_', function[:300]).lower()}_"
    family = next((rule.family for rule in _rules() if rule.fit(words, is_cut=is_cut)), None)
    if family is None:
        return None
    return next((changes[family] for part, changes in _parts() if family in changes and part.search(words)), family)


def find_arch(function: str) -> str | None:
    """The architecture of NVIDIA that a function's name says, as `gemm_4bit_sm80_m16n8k16` does."""
    match = _ARCH.search(function[:300])
    return f"sm{match[1]}" if match else None


def is_triton_style(name: ParsedName) -> bool:
    """Whether nothing but the style of an identifier speaks, and that for Triton."""
    if not name.is_bare or name.function in cpp_functions():
        return False
    if _TRITON.fullmatch(name.function):
        return True
    return not name.is_amd and _SNAKE.fullmatch(name.function) is not None and _family(name) is not None


def type_of_traits(arguments: tuple[str, ...]) -> str | None:
    """The first type that the traits of a kernel hold: `KernelTraits<16,7,__nv_bfloat16>`."""
    traits = next((argument for argument in arguments if "raits<" in argument), None)
    return None if traits is None else first_dtype(split_template(traits)[1], FLOATS)


def data_type(arguments: tuple[str, ...], family: Family | None) -> str | None:
    """The first type of floats; of a cast or quantisation that ends in fp8, the last two."""
    if family not in ("quantize", "copy") or len(arguments) < 2:
        return first_dtype(arguments, FLOATS) or type_of_traits(arguments)
    types = [dtype for argument in arguments if (dtype := dtype_of(argument)) in FLOATS]
    is_cast = len(types) > 1 and str(types[-1]).startswith("fp8") and types[-2] != types[-1]
    return f"{types[-2]}>{types[-1]}" if is_cast else types[0] if types else None


def read(name: ParsedName) -> KernelName | None:
    """A name that no grammar and no list knows: the family by its words; of the library nothing is reported."""
    is_triton = is_triton_style(name)
    family = _family(name, is_triton=is_triton)
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


def _family(name: ParsedName, *, is_triton: bool = False) -> Family | None:
    return find_family(_CONSTANTS.sub("", name.intact[:300]) if is_triton else name.intact, is_cut=name.is_cut)


GRAMMAR = Grammar("words", "words", read)
