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
from typing import NamedTuple

from inferometer.names.demangle import demangle, read_beginning, strip_suffixes

LONGEST = 100_000  # no kernel's name is longer; such a text stays as it is

_IS_CPP = re.compile(r"\w::|[\w~>})\]]\(|\w<|^void ")
_IS_COPY = re.compile(r"\[?(?:CUDA )?mem(?:cpy|set)", re.IGNORECASE)
_INDUCTOR_INDEX = re.compile(r"(triton_[a-z]+_fused_\w*?[A-Za-z]\w*?)_\d+")
_CAST = re.compile(
    r"\((?:(?:(?:un)?signed )?(?:int|long long|long|short|char|__int128)(?: int)?|unsigned|bool|(?:std::)?size_t"
    r"|u?int(?:8|16|32|64)_t)\)(?=-?\d)"
)
_COMMON_CASTS = ("(int)", "(unsigned int)", "(unsigned long)", "(bool)")
_FLAT_CALL = re.compile(r"([<,])(?:void )?((?:(?!lambda|decltype)[\w@]++(?:::(?=\w|@))?)++)\([^(){}<>]*\)(?=::)")
_ANONYMOUS = re.compile(r"\b_GLOBAL__N_\w*|\b_INTERNAL_[0-9a-f]+_\w*")  # as compilers write it
_LLVM_LAMBDA = re.compile(r"'lambda(\d*)'(\([^()]*\))")
_OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|->\*?|<=>|<<=?|>>=?|&&|\|\||[-+*/%^&|~!=<>]=?|,)")
_VERSION = re.compile(r"\b(?:(?:CUB|THRUST|ROCPRIM|HIPCUB)_\d\w*|_V_\d\w*|_V\d+|__cxx11|__\d+)::|\[abi:\w+\]")
_CHARS = r"[\w@~$.#'\ue000-\uefff]"
_PLAIN_TYPE = r"(?:(?!true|false|const)[A-Za-z_@]\w*+(?:::\w++)*+[*&]*+|\d++(?=[,>]))"
_PIECE = rf"(?:{_CHARS}++(?:<{_PLAIN_TYPE}(?:,{_PLAIN_TYPE})*+>)?|\{{lambda\((?:(?!const)[\w:]++[*&]*+,?)*+\)#\d++\}})"
_TOKEN = re.compile(
    rf"const(?!\w)|{_PIECE}(?:::{_PIECE})*+|::|\s++|.", re.DOTALL | re.ASCII
)  # what needs no change is one token
_FLAT_TEMPLATE = re.compile(r"(?<=\w)<[^<>]*>")
_SIGN = re.compile("[\ue000-\uefff]")
_SIGNS = (
    *("()", "[]", "->", "->*", "<=>", "<", "<=", "<<", "<<=", ">", ">=", ">>", ">>=", "&&", "||", ","),
    *(sign + equals for sign in "-+*/%^&|~!=" for equals in ("", "=")),
)
_TO_MARK = {sign: chr(0xE000 + i) for i, sign in enumerate(_SIGNS)}  # so that no bracket is mistaken for a template's
_FROM_MARK = {mark: sign for sign, mark in _TO_MARK.items()}
_CALLED, _CALLED_CONST = chr(0xEF00), chr(0xEF01)  # the brackets of a call operator, which are kept
_FROM_MARK |= {_CALLED: "()", _CALLED_CONST: "()const"}
_CALL, _ARROW = _TO_MARK["()"], _TO_MARK["->"]
_MARKED_CALL = f"operator{_CALL}"
_KEEPS_ITS_BRACKETS = ("lambda", "decltype", "sizeof", "alignof", "noexcept")
_OPEN = {")": "(", ">": "<", "}": "{", "]": "["}


class Canonical(NamedTuple):
    """A canonical name; its function with namespaces but without templates; the arguments of the last template."""

    text: str
    path: str
    arguments: tuple[str, ...] = ()


def canonical_name(name: str) -> str:
    """The text that all spellings of one kernel's name share.

    Time grows linearly with the name. Applied to its own answer for a name that a compiler made, it changes nothing.
    """
    return canonical_parts(name).text


@lru_cache(maxsize=65_536)
def canonical_parts(name: str) -> Canonical:
    """The canonical name, taken apart."""
    name = strip_suffixes(name)
    if len(name) > LONGEST or (name[:1] in "[Mm" and _IS_COPY.match(name)):
        return Canonical(name, name)
    if name.startswith("_Z"):
        name = demangle(name)
        if name.startswith("_Z"):
            return _rewrite(read_beginning(name))._replace(text=name)
    if ("(" in name or "<" in name or "::" in name) and _IS_CPP.search(name):
        found = _rewrite(name)
        text = strip_suffixes(found.text)
        if text != found.text or not found.arguments:
            return _plain_name(text) if found.path == found.text else found._replace(text=text)
        return found
    return _plain_name(name)


def _plain_name(name: str) -> Canonical:
    if name.startswith("triton_"):
        match = _INDUCTOR_INDEX.fullmatch(name)
        name = match[1] if match else name
    return Canonical(name, name)


def _rewrite(name: str) -> Canonical:
    for spelling in ("(anonymous namespace)", "<unnamed>", "{anonymous}"):
        if spelling in name:
            name = name.replace(spelling, "@anon")
    head = _without_parameters(name)
    is_function = len(head) < len(name)
    if head.startswith("void "):
        head, is_function = head[5:], True
    found = _join(_TOKEN.findall(_without_spellings(head)), is_function=is_function)
    if found.text.isascii():
        return found
    return Canonical(_unmark(found.text), _unmark(found.path), tuple(map(_unmark, found.arguments)))


def _unmark(text: str) -> str:
    if text.isascii():
        return text
    text = text.replace(_CALL, "()").replace(_CALLED_CONST, "()const").replace(_CALLED, "()")
    return text if text.isascii() else _SIGN.sub(lambda mark: _FROM_MARK.get(mark[0], ""), text)


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
    if name.endswith("operator", 0, at):
        return name
    before = name[max(0, at - 1) : at]
    is_call = before.isalnum() or (before and before in "_>}") or name[:at].endswith(("operator()", "operator ()"))
    return name[:at] if is_call else name


def _without_spellings(name: str) -> str:
    """What differs between tools in places that a pattern finds."""
    if not name.isascii():
        name = _SIGN.sub("", name)
    if "  " in name or not name.isprintable():
        name = " ".join(name.split())
    name = name.replace(", ", ",").replace("> >", ">>").replace(" *", "*").replace(" &", "&")
    if "operator" in name:
        name = _mark_operators(name)
    if "->" in name:
        name = name.replace("->", _ARROW)
    if "lambda" in name:
        if "'lambda" in name:
            name = _LLVM_LAMBDA.sub(lambda m: f"{{lambda{m[2]}#{int(m[1][:9]) + 2 if m[1] else 1}}}", name)
        if " (instance " in name:
            name = name.replace("[lambda(", "{lambda(").replace(" (instance ", "#").replace(")]", "}")
    if "_GLOBAL_" in name or "_INTERNAL_" in name:
        name = _ANONYMOUS.sub("@anon", name)
    if ")" in name:
        for cast in _COMMON_CASTS:
            if cast in name:
                name = name.replace(f"<{cast}", "<").replace(f",{cast}", ",")
        name = _CAST.sub("", name)
        if ")::" in name:
            name = _FLAT_CALL.sub(_without_call, name)
    if "CUB_" in name or "_NS::" in name or "THRUST_" in name or "::_" in name or "[abi:" in name:
        name = _VERSION.sub("", name)
    return name


def _without_call(match: re.Match[str]) -> str:
    return match[1] + match[2]


def _mark_operators(name: str) -> str:
    name = name.replace("operator ()", _MARKED_CALL).replace("operator()", _MARKED_CALL)
    if name.count("operator") > name.count(_MARKED_CALL):
        name = _OPERATOR.sub(lambda match: f"operator{_TO_MARK[match[1]]}", name)
    name = name.replace(f"{_CALL}() const", _CALL + _CALLED_CONST).replace(f"{_CALL}()const", _CALL + _CALLED_CONST)
    return name.replace(f"{_CALL}()::", f"{_CALL}{_CALLED}::")


class _Frame:
    """What stands between one pair of brackets: the text so far, and where its last argument and last word begin."""

    __slots__ = ("begin", "const", "function", "keep", "opening", "parts", "word")

    def __init__(self, opening: str, keep: bool) -> None:
        self.opening = opening
        self.keep = keep
        self.parts: list[str] = []
        self.begin = self.word = 0
        self.const = self.function = False

    def end_function(self) -> None:
        """Its parameters have ended: what stood before the last word was the return type."""
        parts = self.parts
        if self.word > self.begin:
            begin = self.begin + (parts[self.begin] == "&")
            if self.word > begin:
                del parts[begin : self.word]
        self.word, self.const, self.function = self.begin, False, True
        if parts and parts[-1].endswith(_CALL):
            parts.append(_CALLED)

    def text(self) -> str:
        """All of it; a `const` that stood before the last type comes after it."""
        if self.const:
            self.parts.append(" const")
            self.const = False
        return "".join(self.parts)

    def split(self) -> tuple[str, ...]:
        """The pieces between the commas that stand by themselves."""
        if not self.parts and not self.const:
            return ()
        if self.const:
            self.parts.append(" const")
            self.const = False
        return tuple("".join(["\0" if part == "," else part for part in self.parts]).split("\0"))


def _join(tokens: list[str], *, is_function: bool) -> Canonical:
    """The tokens in canonical order. Brackets that don't match, as in a name cut short, are kept as they come."""
    frame, outer, space, parens = _Frame("", True), list[_Frame](), False, 0
    parts = frame.parts
    arguments: tuple[str, ...] = ()  # of the last template outside all brackets
    for token in tokens:
        if token not in _MARKS:
            if token == "const":
                _place_const(frame, after_space=space)
            else:
                if space and len(parts) > frame.begin:
                    _place_space(frame)
                if token[0] in "0123456789":
                    token = token.rstrip("uUlL")
                elif token in _BOOLS:
                    token = _BOOLS[token]
                parts.append(token)
        elif token == ",":
            if frame.const:
                parts.append(" const")
                frame.const = False
            frame.function = False
            parts.append(",")
            frame.begin = frame.word = len(parts)
        elif token == " ":
            space = True
            continue
        elif token in "<([{":
            keep = token != "(" or space or not _is_call(parts, frame)
            outer.append(frame)
            parens += token == "("
            frame = _Frame(token, keep)
            parts = frame.parts
        elif token in "*&":
            if frame.const:
                parts.append(" const")
                frame.const = False
            parts.append(token)
        else:
            if token == ")" and parens:
                while frame.opening == "<":  # it was a comparison
                    frame = _unfold(frame, outer)
                parts = frame.parts
            if frame.opening != _OPEN[token]:
                parts.append(token)
            else:
                parens -= token == ")"
                inner, frame = frame, outer.pop()
                parts = frame.parts
                if token == ">":
                    if not outer:
                        arguments = inner.split()
                    parts.append(f"<{inner.text()}>")
                else:
                    _close(frame, inner, token)
        space = False
    while outer:
        if frame.opening == "<" and len(outer) == 1:
            arguments = frame.split()
        frame = _unfold(frame, outer)
    return _whole(frame, arguments, is_function=is_function)


_MARKS = frozenset(" ,<>()[]{}*&")
_BOOLS = {"true": "1", "false": "0"}


def _place_const(frame: _Frame, *, after_space: bool) -> None:
    """`const T` becomes `T const`; after a function's parameters it is dropped, but for a call operator's."""
    parts = frame.parts
    if len(parts) == frame.begin:
        frame.const = True
    elif parts[-1] == _CALLED:
        parts[-1] = _CALLED_CONST
    elif not frame.function or not after_space:
        parts.append(" const")


def _place_space(frame: _Frame) -> None:
    """Between two words; what comes next may be a function's name, after its return type."""
    last = frame.parts[-1]
    if last != "::" and last[-1:] not in "&*(!":
        frame.parts.append(" ")
        frame.word = len(frame.parts)
    elif last[-1:] in "&*" and len(frame.parts) > frame.begin + 1:
        frame.word = len(frame.parts)


def _is_call(parts: list[str], frame: _Frame) -> bool:
    """Whether a bracket that opens now holds the parameters of what stands before it."""
    if len(parts) == frame.begin:
        return False
    before = parts[-1]
    return before[-1:] not in "&*(,)!=" and not before.endswith(_KEEPS_ITS_BRACKETS) and before != "const"


def _close(frame: _Frame, inner: _Frame, closing: str) -> None:
    if not inner.keep:
        frame.end_function()
    elif inner.opening == "(" and frame.parts[frame.begin :] == ["&"]:
        frame.parts.append(inner.text())
    else:
        frame.parts.append(f"{inner.opening}{inner.text()}{closing}")


def _unfold(inner: _Frame, outer: list[_Frame]) -> _Frame:
    """The frame around one that is never closed, with its text if that is kept."""
    frame = outer.pop()
    if inner.keep:
        frame.parts.append(inner.opening + inner.text())
    return frame


def _whole(frame: _Frame, arguments: tuple[str, ...], *, is_function: bool) -> Canonical:
    if (is_function or frame.parts[:1] == ["void"]) and frame.parts and not frame.parts[-1].endswith(_CALL):
        frame.end_function()
    text, parts = frame.text(), frame.parts
    path = "".join([part for part in parts if part[:1] != "<"])
    last = parts[-1] if parts else ""
    if last[:1] != "<":
        arguments = ()
        if last.endswith(">") and "<" in last and "{" not in last:  # a template that was one token
            arguments = tuple(last[:-1].rpartition("<")[2].split(","))
    if "<" in path:
        path = _FLAT_TEMPLATE.sub("", path)
    return Canonical(text, path, arguments)
