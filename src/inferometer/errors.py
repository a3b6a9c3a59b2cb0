"""Everything that goes wrong on purpose: one tree, each class with the exit code of the command line.

    InferometerError       70  a bug of ours: please report it
    ├── InputError          3  what the user gave can't be used
    │   ├── FormatError     3  a file isn't what its format says; the message names the file and the place
    │   └── UnknownName     3  no such format, device, operator, …; the known names are listed
    └── Unavailable         4  a device or an extra that the request needs isn't here

A message says where, what was wanted and what was found, on one line. The hint says what to do next.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import ClassVar

from inferometer.privacy.secrets import blank_secrets

_LONGEST_LINE = 4_000
_HIDDEN = re.compile(  # what drives a terminal, turns lines around, or takes no room
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0001-\U000e007f]"
)
_BLANKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]")


def printable(path: str) -> str:
    """`path` with what isn't text in it escaped: file names may be any bytes."""
    return path.encode(errors="backslashreplace").decode()


class InferometerError(Exception):
    """Base of the tree; its `str` is the message, cleaned, with the hint (if any) below it, indented by two spaces.

    What looks like a secret is `***` there, since a message may quote the file. Raised by itself only for a mistake in
    our own code, which is why its exit code is 70.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        hint = [] if self.hint is None else self.hint.split("\n")
        return "\n".join(_cut(blank_secrets(clean(line))) for line in (self.message, *(f"  {each}" for each in hint)))


class InputError(InferometerError):
    """A file, option or value from the user can't be used."""

    exit_code: ClassVar[int] = 3


class FormatError(InputError):
    """A file isn't what its format says; the message begins with the file and the place in it."""


class UnknownName(InputError):
    """A name that no registry, table or option knows; the hint lists the known ones, nearest first.

    Args:
        kind: What the name should have been, singular: `format`, `device`.
        name: What the user wrote.
        known: Every name that would have worked, in any order.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = _nearest_first(name, known)
        hint = f"Known, nearest first: {', '.join(self.known)}" if self.known else f"No {kind} is known here."
        super().__init__(f'unknown {kind} "{name}"', hint=hint)
        self.args = (kind, name, self.known)  # what unpickling calls the class with, when a worker raised it


class Unavailable(InferometerError):
    """A device, driver, program or extra that the request needs isn't here; the hint says how to get it."""

    exit_code: ClassVar[int] = 4


def clean(text: str) -> str:
    """`text` on one line, for people: hidden characters as escapes, tabs and line breaks as blanks.

    A hostile name must neither drive a terminal nor look like another one.
    """
    return show_hidden(_BLANKS.sub(" ", text))


def show_hidden(text: str) -> str:
    r"""`text` with hidden characters as escapes (`\x1b`, `\u202e`), but for tabs and line breaks, which stay."""
    return _HIDDEN.sub(lambda hidden: hidden[0].encode("unicode_escape").decode(), text)


def _cut(line: str) -> str:
    """A name or value from a file may be of any length."""
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 2 :]}"


def _nearest_first(name: str, known: Iterable[str]) -> tuple[str, ...]:
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(name.casefold())

    def distance(candidate: str) -> tuple[float, str]:
        matcher.set_seq1(candidate.casefold())
        return -matcher.ratio(), candidate

    return tuple(sorted(set(known), key=distance))
