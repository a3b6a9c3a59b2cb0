"""A C++ name in canonical order, token by token: `const` after its type, parameters and return types left out.

Works on what `spellings.py` leaves, in one walk. Brackets that don't match, as in a name cut short, are kept as they
come.
"""

import re

import msgspec

from inferometer.names.spellings import CALL, CALLED, CALLED_CONST

_WORD = r"[\w@~$.#'\ue000-\uefff]++"
_TOKEN = re.compile(rf"const(?!\w)|{_WORD}(?:::{_WORD})*+|::|\s++|.", re.DOTALL | re.ASCII)
_KEEPS_ITS_BRACKETS = ("lambda", "decltype", "sizeof", "alignof", "noexcept")
_OPEN = {")": "(", ">": "<", "}": "{", "]": "["}
_MARKS = frozenset(" ,<>()[]{}*&")
_BOOLS = {"true": "1", "false": "0"}


class Canonical(msgspec.Struct, frozen=True, gc=False):
    """A canonical name; its function with namespaces but without templates; the arguments of the last template."""

    text: str
    path: str
    arguments: tuple[str, ...] = ()


def rewrite(name: str, *, is_function: bool) -> Canonical:
    """The whole name; what stands before the last word of a function is its return type."""
    frame, arguments = _walk(_TOKEN.findall(name))
    if (is_function or frame.parts[:1] == ["void"]) and frame.parts and not frame.parts[-1].endswith(CALL):
        frame.end_function()
    text, parts = frame.text(), frame.parts
    path = "".join([part for part in parts if part[:1] != "<"])
    return Canonical(text, path, arguments if parts and parts[-1][:1] == "<" else ())


def rewrite_part(text: str) -> str:
    """A part of a name, such as a template's argument."""
    return _walk(_TOKEN.findall(text))[0].text()


class _Frame:
    """What stands between one pair of brackets: the text so far, and where its last argument and last word begin."""

    __slots__ = ("begin", "const", "function", "keep", "opening", "parts", "word")

    def __init__(self, opening: str, keep: bool) -> None:
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
        return tuple("".join(["\n" if part == "," else part for part in self.parts]).split("\n"))


def _walk(tokens: list[str]) -> tuple[_Frame, tuple[str, ...]]:
    """What stands outside all brackets, and the arguments of the last template there."""
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
                if token[0] in "0123456789" and token.isalnum():
                    token = token.rstrip("uUlL")
                elif token in _BOOLS:
                    token = _BOOLS[token]
                parts.append(token)
        elif token == ",":
            if frame.const:
                parts.append(" const")
                frame.const = False
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
    return frame, arguments


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
    """Whether a bracket that opens now holds the parameters of what stands before it."""
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
