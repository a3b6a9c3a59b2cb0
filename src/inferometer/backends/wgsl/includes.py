"""Functions that kernels share: a line `//! include: NAME` stands for the text of `include/NAME.wgsl`.

Such a file uses what the kernel declares (constants, bindings, workgroup memory), and says so. It may include others; a
kernel gets each one once. Compilers see one text, so what they say of a line is led back to its file.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from inferometer.errors import InferometerError

_DECLARATION = re.compile(r"\s*//!")
_INCLUDE = re.compile(r"//! include: (?P<name>\w+)\s*$")
_OF_A_KERNEL = re.compile(r"//! (op|reference|requires): ")
_NAGA_PLACE = re.compile(r"\bwgsl:(?P<line>\d+):(?P<column>\d+)")
_NAGA_MARGIN = re.compile(r"^(?P<indent> *)(?P<line>\d+)(?= │)", re.MULTILINE)


class Stretch(NamedTuple):
    """From line `first` of the whole text on, lines are those of `file` from `line` on, to the next stretch."""

    first: int
    file: str
    line: int


class Expanded(NamedTuple):
    """A kernel's whole text, and where its lines come from."""

    text: str
    stretches: tuple[Stretch, ...]


@cache
def include_names() -> tuple[str, ...]:
    """Every file that can be included."""
    folder = files("inferometer.backends") / "wgsl" / "include"
    return tuple(sorted(path.name.removesuffix(".wgsl") for path in folder.iterdir() if path.name.endswith(".wgsl")))


def read_include(name: str) -> str | None:
    """The text of `include/NAME.wgsl`; None where there is none."""
    if name not in include_names():
        return None
    return (files("inferometer.backends") / "wgsl" / "include" / f"{name}.wgsl").read_text("utf-8")


def expand(file: str, text: str, read: Callable[[str], str | None] = read_include) -> Expanded:
    """A kernel's text with what it includes.

    Args:
        file: The kernel's, for messages.
        text: As it is in the file.
        read: The text of an included file by its name; None where there is none.

    Raises:
        InferometerError: An include is unknown, of itself, or the second of its name; or a `//!` line says nothing
            known. The message has file and line.
    """
    lines: list[str] = []
    stretches: list[Stretch] = []
    seen: dict[str, str] = {}

    def add(file: str, text: str, within: tuple[str, ...]) -> None:
        stretches.append(Stretch(len(lines) + 1, file, 1))
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            name = _included(f"{file}:{number}", line, is_kernel=not within)
            if name is None:
                lines.append(line)
                continue
            part = _find(f"{file}:{number}", name, read, within, seen)
            add(f"include/{name}.wgsl", part if part.endswith("\n") else f"{part}\n", (*within, name))
            stretches.append(Stretch(len(lines) + 1, file, number + 1))

    add(file, text, ())
    return Expanded("".join(lines), tuple(stretches))


def _included(where: str, line: str, *, is_kernel: bool) -> str | None:
    """The name that a line includes; None of all other lines."""
    if not _DECLARATION.match(line) or (is_kernel and _OF_A_KERNEL.match(line)):
        return None
    match = _INCLUDE.match(line)
    if match is None:
        known = "//! op:, reference:, requires: or include: NAME" if is_kernel else "//! include: NAME"
        raise InferometerError(f"{where}: expected {known}, found {line.strip()!r:.80}")
    return match["name"]


def _find(
    where: str, name: str, read: Callable[[str], str | None], within: tuple[str, ...], seen: dict[str, str]
) -> str:
    """The text of an include, which is the kernel's first of that name."""
    if name in within:
        raise InferometerError(f"{where}: {' includes '.join((*within[within.index(name) :], name))}")
    if name in seen:
        raise InferometerError(f"{where}: {name} is included already, at {seen[name]}: a kernel has each file once")
    text = read(name)
    if text is None:
        raise InferometerError(f"{where}: expected an include of {', '.join(include_names())}, found {name}")
    seen[name] = where
    return text


def place_of(stretches: Sequence[Stretch], line: int) -> tuple[str, int]:
    """The file and the line in it of a line of the whole text."""
    found = stretches[max(0, bisect_right(stretches, line, key=lambda each: each.first) - 1)]
    return found.file, found.line + line - found.first


def name_places(stretches: Sequence[Stretch], message: str) -> str:
    """A message of naga (wgpu 29) with files, and the lines in them, in place of lines of the whole text."""

    def named(match: re.Match[str]) -> str:
        file, line = place_of(stretches, int(match["line"]))
        return f"{file}:{line}:{match['column']}"

    def numbered(match: re.Match[str]) -> str:
        return f"{match['indent']}{place_of(stretches, int(match['line']))[1]}"

    return _NAGA_MARGIN.sub(numbered, _NAGA_PLACE.sub(named, message))
