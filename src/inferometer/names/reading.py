"""A kernel's name taken apart: namespaces, function, template arguments; and what a naming family declares.

Works on canonical names (`canonical.py`), in time that grows linearly with the name, and never fails: what isn't closed
in a name that was cut short ends where the name ends.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import msgspec

from inferometer.names.kernel_name import KernelName
from inferometer.names.rewriting import Canonical
from inferometer.patterns import late_re

_BRACKET = late_re(r"[<>(){}]|::")
_BRACKET_OR_COMMA = late_re(r"[<>(){},]")
_OPENING = "<({"
_CLOSING = {">": "<", ")": "(", "}": "{"}
_LAST_WORD = late_re("[A-Z]?[a-z0-9]*$")
_LONGEST_WORD = 40
_SHAPE_NUMBER = late_re(r"(?:C<|constant<[a-z ]+,|(?<=[<,])|^)(\d+)(?=[>,]|$)")


class ParsedName(msgspec.Struct, frozen=True, gc=False):
    """A canonical name and its parts.

    `path` is the function with its namespaces, both without template arguments; `namespaces` leaves out anonymous ones;
    `arguments` are the function's template arguments as text. `is_bare`: the name had neither template, namespace nor
    parameters, as names of Triton and of `extern "C"` functions; `is_amd`: only AMD's tools write it so. `intact` is
    the function without a last word that was cut; `is_cut`: what stood after it isn't known.
    """

    text: str
    path: str
    namespaces: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]
    is_bare: bool
    is_amd: bool
    intact: str
    is_cut: bool


class Grammar(msgspec.Struct, frozen=True):
    """One naming family. `read` answers None for a name that isn't of the family.

    Grammars that know a `form` (an exact pattern of the whole name, or a template) are asked first, then those that
    know a `namespace` or a `list` of functions, and last those that go by the `words` in a function's name. `spaces` is
    a pattern of the outermost namespaces, `letters` the first letters of functions without any, that it may know; None
    stands for all.
    """

    name: str
    reads: Literal["form", "namespace", "list", "words"]
    read: Callable[[ParsedName], KernelName | None]
    spaces: str | None = None
    letters: str | None = None

    def may_read(self, space: str, letter: str) -> bool:
        """Whether a name in this namespace, or one without whose function begins with this letter, can be ours."""
        if space:
            return self.spaces is None or re.fullmatch(self.spaces, space) is not None
        return self.letters is None or letter in self.letters


def parse(name: Canonical, *, is_bare: bool, is_amd: bool = False, is_cut: bool = False) -> ParsedName:
    """The parts of a canonical name; `is_cut`: the last word of its function may be half of another."""
    text, path, arguments = name.text, name.path, name.arguments
    if " " in path and "::" in path:  # a return type, where the name was cut before its end
        path = path.rpartition(" ")[2]
    *spaces, function = path.split("::")
    if "@anon" in spaces or "" in spaces:
        spaces = [space for space in spaces if space and space != "@anon"]
        path = "::".join([*spaces, function])
    intact, is_cut = _without_cut_word(function) if is_cut else (function, False)
    is_bare = is_bare and not arguments and "::" not in name.path
    return ParsedName(text, path, tuple(spaces), function, arguments, is_bare, is_amd, intact, is_cut)


def _without_cut_word(function: str) -> tuple[str, bool]:
    """The function up to the word that was cut, and whether more than `kernel` may have stood after it."""
    match = _LAST_WORD.search(function[-_LONGEST_WORD:])
    word = match[0].lower() if match else ""
    return function[: len(function) - len(word)], not (word and "kernel".startswith(word))


@lru_cache(maxsize=4_096)
def split_template(text: str) -> tuple[str, tuple[str, ...]]:
    """A type or function and its template arguments: `A<B<1>,2>` gives `A` and (`B<1>`, `2`)."""
    at = text.find("<")
    if at < 0:
        return text, ()
    pieces, arguments = text[:at].split("::"), tuple[str, ...]()
    if "(" not in text[:at] and "{" not in text[:at]:
        arguments, end = _inside(text, at)
    else:
        end = 0
    if end < len(text) - 1:
        pieces, arguments = _walk(text)
    return "::".join([piece for piece in pieces if piece]), arguments


def arguments_of(template: str, text: str) -> tuple[str, ...]:
    """The arguments of the first use of a template inside a type; none where it doesn't occur."""
    at = text.find(f"{template}<")
    return () if at < 0 else _inside(text, at + len(template))[0]


def last_word(path: str) -> str:
    """What is after the last `::`."""
    return path.rsplit("::", 1)[-1]


def _walk(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The words between the `::` of `text`, without templates, and the arguments of the last word's template."""
    pieces: list[str] = [""]
    arguments: tuple[str, ...] = ()
    begin = 0
    while match := _BRACKET.search(text, begin):
        mark, at = match[0], match.start()
        if mark == "::":
            pieces[-1] += text[begin:at]
            pieces.append("")
            arguments, begin = (), match.end()
        elif mark in _OPENING:
            pieces[-1] += text[begin:at]
            inner, end = _inside(text, at)
            begin = end + 1
            if mark == "<":
                arguments = inner
            elif end < len(text):
                pieces[-1] += text[at:begin]
        else:
            pieces[-1] += text[begin : match.end()]
            begin = match.end()
    pieces[-1] += text[begin:]
    return pieces, arguments


def _inside(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The pieces between the bracket at `at` and its partner, and where the partner stands, or the end."""
    pieces, begin, opened = list[str](), at + 1, [text[at]]
    for match in _BRACKET_OR_COMMA.finditer(text, begin):
        mark, end = match[0], match.start()
        if mark in _OPENING:
            opened.append(mark)
        elif len(opened) > 1:
            if mark != "," and opened[-1] == _CLOSING[mark]:
                opened.pop()
        else:
            pieces.append(text[begin:end])
            if mark != ",":
                break
            begin = match.end()
    else:
        end = len(text)
        pieces.append(text[begin:])
    return (tuple(pieces) if end > at + 1 else ()), end


def numbers(arguments: tuple[str, ...]) -> list[int | None]:
    """The arguments that are numbers, as such; None in the place of others."""
    return [int(argument) if argument.isdecimal() and len(argument) < 10 else None for argument in arguments]


def tuple_numbers(text: str) -> list[int]:
    """The numbers of a CuTe shape: `cute::tuple<cute::C<128>,cute::C<64>>` gives 128 and 64."""
    return [int(number[:9]) for number in _SHAPE_NUMBER.findall(text)]
