"""One text for one kernel, whichever tool wrote its name.

Nsight Systems, CUPTI (so PyTorch's profiler) and ROCm print a C++ name differently: casts before numbers, spaces,
`const` before or after the type, lambdas, anonymous namespaces, return types, parameters. The canonical form has none
of these differences: no spaces but between words, `const` after the type, plain numbers, `@anon`, `{lambda(T)#1}`, and
neither parameters nor return types. Enum values keep their cast, `(MaskMode)0`. Names that aren't C++ stay the same.

Source: captures of one model in both tools, and the Itanium C++ ABI. Left out: `std::array` against `at::detail::Array`
and the like, which are different types of different versions.
"""

import re
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from inferometer.names.demangle import demangle, read_beginning, strip_suffixes
from inferometer.names.rewriting import Canonical, rewrite, rewrite_part
from inferometer.names.spellings import CALL, CALLED, CALLED_CONST, unify_spellings, unmark
from inferometer.patterns import late_re

_LONGEST = 1 << 15  # the longest that a compiler was seen to make have some 10,000 characters
_LONGEST_WORD = 2_000  # compilers cut those that they make themselves below 500

_ANY_WORD = late_re(r"\w++")
_IS_CPP = late_re(r"\w::|[\w~>})\]]\(|\w<|^void ")
_IS_COPY = late_re(r"\[?(?:CUDA )?mem(?:cpy|set)", re.IGNORECASE)
_INDUCTOR = late_re(r"triton_[a-z]+_fused_(?=\w*+$)[^A-Za-z]*+[A-Za-z]")
_PATH = late_re(r"(?!(?:true|false|const|void)\b)[A-Za-z_@][\w@~$.]*+(?:::[A-Za-z_@~][\w@~$.]*+)*+", re.ASCII)
_BRACKET = late_re(r"[<>(){}\[\]]")
_OPENING = {">": "<", ")": "(", "}": "{", "]": "["}
_ODD_SPACE = late_re(r" (?!(?:const|int|long|char|short)\b)(?<![<,(]const )(?<!^const )")
_WORD = r"(?!true|false|const)[A-Za-z_@][\w@]*+"
_UNCHANGED = late_re(
    rf"(?:{_WORD}|\d++(?!\w)|::|[<>,*&]|[{CALL}{CALLED}{CALLED_CONST}]|(?<![^<,])\({_WORD}(?:::{_WORD})*+\)(?=\d)"
    rf"|\{{lambda\((?:{_WORD}|::|[,*&]| const(?=[,*&)]))*+\)\#\d++\}}| const(?=[>,*&]|$))*+",
    re.ASCII,
)
_NUMBER = late_re(r" ?(?:\((?:unsigned )?(?:int|long|bool)\))?(\d+)[uUlL]*(>*+)", re.ASCII)
_PARAMETERS = late_re(r"(?<=[\w>])\([^(){}<>]*\)(?=::)")
_LEADING_CONST = late_re(r"(?:^|[<,(])const\b")


def canonical_name(name: str) -> str:
    """The text that all spellings of one kernel's name share.

    Time grows linearly with the name. Applied to its own answer for a name that a compiler made, it changes nothing.
    """
    return canonical_parts(name).text


@lru_cache(maxsize=65_536)
def canonical_parts(name: str) -> Canonical:
    """The canonical name, taken apart."""
    name = strip_suffixes(name)
    if is_too_long(name) or (name[:1] in "[Mm" and _IS_COPY.match(name)):
        return Canonical(name, name)
    if name.startswith("_Z"):
        mangled, name = name, _demangle(name)
        if name.startswith("_Z") or is_too_long(name):
            return replace(_rewrite(read_beginning(mangled)), text=mangled)
    if ("(" in name or "<" in name or "::" in name) and _IS_CPP.search(name):
        found = _rewrite(name)
        text = strip_suffixes(found.text) if found.text[-1:] != ">" else found.text
        if text != found.text or not found.arguments:
            return _plain_name(text) if found.path == found.text else replace(found, text=text)
        return found
    return _plain_name(name)


def is_too_long(name: str) -> bool:
    """Whether a text is no kernel's name, for its length or for that of a word in it; such a text stays as it is."""
    if len(name) <= _LONGEST_WORD or (name.startswith("_Z") and len(name) <= _LONGEST):
        return False
    return len(name) > _LONGEST or any(word.end() - word.start() > _LONGEST_WORD for word in _ANY_WORD.finditer(name))


def _demangle(name: str) -> str:
    """The readable name, without its real parameters where these can be left out: they take a third of the time."""
    at = name.rfind("Ev")  # the end of a template's arguments, and a return type
    readable = demangle(f"{name[:at]}Evv") if at > 0 else name
    return demangle(name) if readable.startswith("_Z") else readable


def _plain_name(name: str) -> Canonical:
    name = name.removeprefix("void ")  # before a function that a tool wrote without parameters
    if name.startswith("triton_"):
        head, _, index = name.rpartition("_")
        name = head if index.isdecimal() and _INDUCTOR.match(head) else name
    return Canonical(name, name)


def _rewrite(name: str) -> Canonical:
    head = _without_parameters(name)
    is_function = len(head) < len(name)
    if head.startswith("void "):
        head, is_function = head[5:], True
    for spelling in ("(anonymous namespace)", "<unnamed>", "{anonymous}"):
        if spelling in head:
            head = head.replace(spelling, "@anon")
    return _rewrite_by_pieces(head) or _rewrite_whole(head, is_function=is_function)


def _rewrite_whole(head: str, *, is_function: bool) -> Canonical:
    found = rewrite(unify_spellings(head), is_function=is_function)
    if found.text.isascii():
        return found
    return Canonical(unmark(found.text), unmark(found.path), tuple(map(unmark, found.arguments)))


def _rewrite_by_pieces(head: str) -> Canonical | None:
    """The quick way, for `path<arguments>`: names share most of what is between their commas. None for others."""
    path, bracket, inside = head.partition("<")
    path = _read_path(path)
    if not bracket and path:
        return Canonical(path, path)
    if not path or inside[-1:] != ">" or inside[-2:] == "->" or not head.isascii():
        return None
    texts, held, depth, unclosed = list[str](), list[str](), 0, 0
    for piece in inside[:-1].split(","):
        read = _read_piece(piece)
        if held or read.parens:  # parameters of a function: to be read together
            held.append(piece)
            unclosed += read.parens
            if unclosed:
                continue
            read = _read_piece(",".join(held))
            held = []
        if read.text is None or depth < read.closes:
            return None
        texts.append(read.text if depth else f"\n{read.text}")  # a line for each argument
        depth += read.opens - read.closes
    if held or depth:
        return None
    text = ",".join(texts)[1:]
    arguments = tuple(text.split(",\n")) if text else ()
    return Canonical(f"{path}<{','.join(arguments)}>", path, arguments)


class _Piece(msgspec.Struct, frozen=True, gc=False):
    """What is between two commas: how many templates it closes and opens, and how many more `(` than `)` it has.

    `text` is its canonical form, None where that depends on the rest of the name.
    """

    text: str | None
    closes: int = 0
    opens: int = 0
    parens: int = 0


@lru_cache(maxsize=65_536)
def _read_piece(piece: str) -> _Piece:
    number = _NUMBER.fullmatch(piece)  # what differs most between names
    if number:
        return _Piece(number[1] + number[2], len(number[2]))
    parens = piece.count("(") - piece.count(")")
    if parens:
        return _Piece(None, parens=parens)
    text = unify_spellings(piece.strip())
    templates = _unpaired_templates(text)
    if templates is None or text.endswith("operator"):
        return _Piece(None)
    closes, opens = templates
    if (opens or closes) and " " in text and _needs_the_rest(text, opens):
        return _Piece(None)
    plain = _PARAMETERS.sub("", text)
    if not _UNCHANGED.fullmatch(plain):
        plain = rewrite_part("<" * closes + text)[closes:]
    return _Piece(unmark(plain), closes, opens)


def _unpaired_templates(text: str) -> tuple[int, int] | None:
    """How many templates `text` closes and opens; None where other brackets have no partner in it."""
    closes, opened = 0, list[str]()
    for bracket in _BRACKET.findall(text):
        if bracket not in _OPENING:
            opened.append(bracket)
        elif opened:
            if opened.pop() != _OPENING[bracket]:
                return None
        elif bracket == ">":
            closes += 1
        else:
            return None
    return (closes, len(opened)) if opened.count("<") == len(opened) else None


def _needs_the_rest(text: str, opens: int) -> bool:
    """Whether a return type may end in `text`, or a `const` in it comes before a type that ends outside it."""
    return _ODD_SPACE.search(text) is not None or (opens > 0 and _LEADING_CONST.search(text) is not None)


@lru_cache(maxsize=65_536)
def _read_path(path: str) -> str:
    """A plain path, without what versions of a library add to it; empty for any other."""
    path = unify_spellings(path)
    return path if _PATH.fullmatch(path) and not path.endswith("operator") else ""


def _without_parameters(name: str) -> str:
    """`name` up to the parameters at its end, by far the longest part; all of it where there are none."""
    if not name.endswith(")"):
        return name
    depth, at = 1, len(name) - 1
    while depth:  # brackets that still have to open, from the end
        closed, at = at, name.rfind("(", 0, at)
        if at < 0:
            return name
        depth += name.count(")", at, closed) - 1
    head = name[:at]
    is_call = head.endswith(("_", ">", "}", "operator()", "operator ()")) or head[-1:].isalnum()
    return head if is_call and not head.endswith("operator") else name
