"""A C++ name in canonical order, token by token: `const` after its type, parameters and return types left out.

Works on what `spellings.py` leaves, in one walk. Brackets that don't match, as in a name cut short, are kept as they
come.
"""

import re

import msgspec

from inferometer.names.spellings import CALL, CALLED, CALLED_CONST
from inferometer.patterns import late_re

_WORD = r"[\w@~$.#'\ue000-\uefff]++"
_TOKEN = late_re(rf"const(?!\w)|{_WORD}(?:::{_WORD})*+|::|\s++|.", re.DOTALL | re.ASCII)
_KEEPS_ITS_BRACKETS = ("lambda", "decltype", "sizeof", "alignof", "noexcept")
_OPEN = {")": "(", ">": "<", "}": "{", "]": "["}
_MARKS = frozenset(",<>()[]{}*&")
_BOOLS = {"true": "1", "false": "0"}


class Canonical(msgspec.Struct, frozen=True, gc=False):
    """A canonical name; its function with namespaces but without templates; the arguments of the last template."""

    text: str
    path: str
    arguments: tuple[str, ...] = ()


def rewrite(name: str, *, is_function: bool) -> Canonical:
    """The whole name; what is before the last word of a function is its return type."""
    walk = _walk(_TOKEN.findall(name))
    frame = walk.frame
    if (is_function or frame.parts[:1] == ["void"]) and frame.parts and not frame.parts[-1].endswith(CALL):
        frame.end_function()
    text, parts = frame.text(), frame.parts
    path = "".join([part for part in parts if part[:1] != "<"])
    return Canonical(text, path, walk.arguments if parts and parts[-1][:1] == "<" else ())


def rewrite_part(text: str) -> str:
    """A part of a name, such as a template's argument."""
    return _walk(_TOKEN.findall(text)).frame.text()


class _Frame:
    """What is between one pair of brackets: the text so far, and where its last argument and last word begin."""

    __slots__ = ("begin", "const", "function", "keep", "opening", "parts", "word")

    def __init__(self, opening: str, *, keep: bool) -> None:
        self.opening = opening
        self.keep = keep
        self.parts: list[str] = []
        self.begin = self.word = self.function = 0
        self.const = False

    def end_function(self) -> None:
        """Its parameters have ended: what stood before the last word was the return type."""
        parts = self.parts
        if self.word > self.begin:
            begin = self.begin + (parts[self.begin] == "&")
            if self.word > begin:
                del parts[begin : self.word]
        self.word, self.const = self.begin, False
        if parts and parts[-1].endswith(CALL):
            parts.append(CALLED)
        self.function = len(parts)

    def end_type(self) -> None:
        """The last type has ended: a `const` that stood before it comes after it."""
        if self.const:
            self.parts.append(" const")
            self.const = False

    def text(self) -> str:
        """All of it."""
        self.end_type()
        return "".join(self.parts)

    def split(self) -> tuple[str, ...]:
        """The pieces between the commas that stand by themselves."""
        self.end_type()
        if not self.parts:
            return ()
        return tuple("".join(["\n" if part == "," else part for part in self.parts]).split("\n"))


class _Walk:
    """The frames of a name, from the outermost to the one that is open. `arguments`: of the last template outside all.

    `parens` counts the open parentheses; `after_space`: whether white space comes before the token at hand.
    """

    __slots__ = ("after_space", "arguments", "frame", "outer", "parens")

    def __init__(self) -> None:
        self.frame = _Frame("", keep=True)
        self.outer: list[_Frame] = []
        self.parens = 0
        self.after_space = False
        self.arguments: tuple[str, ...] = ()

    def word(self, token: str) -> None:
        """A name, a number, `::` or a sign that is no mark."""
        frame = self.frame
        if token == "const":
            _place_const(frame, after_space=self.after_space)
            return
        if self.after_space and len(frame.parts) > frame.begin:
            _place_space(frame)
        if token[0] in "0123456789" and token.isalnum():
            token = token.rstrip("uUlL")
        elif token in _BOOLS:
            token = _BOOLS[token]
        frame.parts.append(token)

    def comma(self) -> None:
        """The next argument begins."""
        frame = self.frame
        frame.end_type()
        frame.parts.append(",")
        frame.begin = frame.word = len(frame.parts)

    def pointer(self, token: str) -> None:
        """`*` or `&`, of the type before."""
        self.frame.end_type()
        self.frame.parts.append(token)

    def open(self, token: str) -> None:
        """A bracket opens; parameters aren't kept."""
        keep = token != "(" or self.after_space or not _is_call(self.frame.parts, self.frame)
        self.outer.append(self.frame)
        self.parens += token == "("
        self.frame = _Frame(token, keep=keep)

    def close(self, token: str) -> None:
        """A bracket closes, which may match none."""
        if token == ")" and self.parens:
            while self.frame.opening == "<":  # it was a comparison
                self.frame = _unfold(self.frame, self.outer)
        if self.frame.opening != _OPEN[token]:
            self.frame.parts.append(token)
            return
        self.parens -= token == ")"
        inner, self.frame = self.frame, self.outer.pop()
        if token != ">":
            _close(self.frame, inner, token)
            return
        if not self.outer:
            self.arguments = inner.split()
        self.frame.parts.append(f"<{inner.text()}>")

    def end(self) -> None:
        """The name ends; brackets that are still open were never closed."""
        while self.outer:
            if self.frame.opening == "<" and len(self.outer) == 1:
                self.arguments = self.frame.split()
            self.frame = _unfold(self.frame, self.outer)


def _walk(tokens: list[str]) -> _Walk:
    """All tokens, in order."""
    walk = _Walk()
    for token in tokens:
        if token == " ":
            walk.after_space = True
            continue
        if token not in _MARKS:
            walk.word(token)
        elif token == ",":
            walk.comma()
        elif token in "<([{":
            walk.open(token)
        elif token in "*&":
            walk.pointer(token)
        else:
            walk.close(token)
        walk.after_space = False
    walk.end()
    return walk


def _place_const(frame: _Frame, *, after_space: bool) -> None:
    """`const T` becomes `T const`; after a function's parameters it is dropped, but for a call operator's."""
    parts = frame.parts
    if len(parts) == frame.begin:
        frame.const = True
    elif parts[-1] == CALLED:
        parts[-1] = CALLED_CONST
    elif frame.function != len(parts) or not after_space:
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
    """Whether a bracket that opens now holds the parameters of what is before it."""
    if len(parts) == frame.begin:
        return False
    before = parts[-1]
    return before[-1:] not in "&*(,)!=" and not before.endswith(_KEEPS_ITS_BRACKETS) and before != "const"


def _close(frame: _Frame, inner: _Frame, closing: str) -> None:
    if not inner.keep:
        frame.end_function()
    elif inner.opening == "(" and len(frame.parts) == frame.begin + 1 and frame.parts[-1] == "&":
        frame.parts.append(inner.text())
    else:
        frame.parts.append(f"{inner.opening}{inner.text()}{closing}")


def _unfold(inner: _Frame, outer: list[_Frame]) -> _Frame:
    """The frame around one that is never closed, with its text if that is kept."""
    frame = outer.pop()
    if inner.keep:
        frame.parts.append(inner.opening + inner.text())
    return frame
