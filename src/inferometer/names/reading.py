"""A kernel's name taken apart: namespaces, function, template arguments; and what a naming family declares.

Works on canonical names (`canonical.py`), in time that grows linearly with the name, and never fails: what isn't closed
in a name that was cut short ends where the name ends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from inferometer.names.canonical import Canonical
from inferometer.names.kernel_name import KernelName

_BRACKET = re.compile(r"[<>(){},]|::")
_OPENING = "<({"
_CLOSING = {">": "<", ")": "(", "}": "{"}


class ParsedName(msgspec.Struct, frozen=True, gc=False):
    """A canonical name and its parts.

    `path` is the function with its namespaces, both without template arguments; `namespaces` leaves out anonymous ones;
    `arguments` are the function's template arguments as text. `is_bare`: the name had neither template, namespace nor
    parameters, as names of Triton and of `extern "C"` functions; `is_amd`: only AMD's tools write it so.
    """

    text: str
    path: str
    namespaces: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]
    is_bare: bool
    is_amd: bool


@dataclass(frozen=True, slots=True)
class Grammar:
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


def parse(name: Canonical, *, is_bare: bool, is_amd: bool = False) -> ParsedName:
    """The parts of a canonical name."""
    text, path, arguments = name
    if "::" not in path:
        return ParsedName(text, path, (), path, arguments, is_bare and not arguments, is_amd)
    *spaces, function = path.split("::")
    if "@anon" in spaces or "" in spaces:
        spaces = [space for space in spaces if space and space != "@anon"]
        path = "::".join([*spaces, function])
    return ParsedName(text, path, tuple(spaces), function, arguments, False, is_amd)


def split_template(text: str) -> tuple[str, tuple[str, ...]]:
    """A type or function and its template arguments: `A<B<1>,2>` gives `A` and (`B<1>`, `2`)."""
    if "<" not in text:
        return text, ()
    pieces, arguments = _walk(text)
    return "::".join(piece for piece in pieces if piece), arguments


def arguments_of(template: str, text: str) -> tuple[str, ...]:
    """The arguments of the first use of a template inside a type; none where it doesn't occur."""
    at = text.find(f"{template}<")
    if at < 0:
        return ()
    cuts, end = _inside(text, at + len(template))
    return _cut(text, cuts, end)


def last_word(path: str) -> str:
    """What stands after the last `::`."""
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
            cuts, end = _inside(text, at)
            begin = end + 1
            if mark == "<":
                arguments = _cut(text, cuts, end)
            elif end < len(text):
                pieces[-1] += text[at:begin]
        else:
            pieces[-1] += text[begin : match.end()]
            begin = match.end()
    pieces[-1] += text[begin:]
    return pieces, arguments


def _inside(text: str, at: int) -> tuple[list[int], int]:
    """Where the pieces between the bracket at `at` and its partner begin, and where the partner stands, or the end."""
    stack, cuts = [text[at]], [at + 1]
    for match in _BRACKET.finditer(text, at + 1):
        mark = match[0]
        if mark in _OPENING:
            stack.append(mark)
        elif mark == ",":
            if len(stack) == 1:
                cuts.append(match.end())
        elif mark != "::" and stack[-1] == _CLOSING[mark]:
            stack.pop()
            if not stack:
                return cuts, match.start()
    return cuts, len(text)


def _cut(text: str, cuts: list[int], end: int) -> tuple[str, ...]:
    ends = [*(cut - 1 for cut in cuts[1:]), end]
    return tuple(text[cut:stop] for cut, stop in zip(cuts, ends, strict=True)) if end > cuts[0] else ()


def numbers(arguments: tuple[str, ...]) -> list[int | None]:
    """The arguments that are numbers, as such; None in the place of others."""
    return [int(argument) if argument.isdecimal() and len(argument) < 10 else None for argument in arguments]


def tuple_numbers(text: str) -> list[int]:
    """The numbers of a CuTe shape: `cute::tuple<cute::C<128>,cute::C<64>>` gives 128 and 64."""
    return [int(number[:9]) for number in re.findall(r"(?:C<|constant<[a-z ]+,|(?<=[<,])|^)(\d+)(?=[>,]|$)", text)]
