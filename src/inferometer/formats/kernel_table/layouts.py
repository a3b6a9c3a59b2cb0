"""How a printed table parts its cells: by a character, with quotes (CSV, TSV), by bars (Markdown), or by spaces.

Cells beyond the header's number belong to the name: whoever prints C++ names without quotes parts them too.
"""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from inferometer.formats.kernel_table.headers import KernelHeader, find_header
from inferometer.formats.text_lines import Line, Lines, without_ending
from inferometer.spreadsheets import unguard

_SIGN = re.compile(r"total|instances|num calls|operation", re.IGNORECASE)
_LONGEST_HEADER = 2_000
_DELIMITERS = ("\t", ",", ";")
_LONGEST_RECORD = 256  # lines of a quoted name; a stray quote must not swallow the rest of the file
_WORDS = re.compile(r"\S+(?: \S+)*")
_RULER = re.compile(r"[\s|+:=\-─━═┼╪]*[-=─━═]{3}[\s|+:=\-─━═┼╪]*")
_DASHES = re.compile(r"[-=─━═]+")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_BREAK = "\u200b"  # our Markdown puts it, as `&#8203;`, where a name would call somebody or something up
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|(&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)")


@dataclass(frozen=True)
class TextTable:
    """A table's header and how its cells are parted.

    `delimiter` is a character, `|` for Markdown, or empty for columns parted by spaces; `extents` of these are those of
    a ruler of dashes. `padded` says that blanks around cells are there for the eye.
    """

    header: KernelHeader
    delimiter: str
    padded: bool = True
    extents: tuple[tuple[int, int], ...] = ()

    def ruled(self, ruler: str) -> "TextTable":
        """The same with the columns that the dashes of `ruler` mark, if they are as many as the titles."""
        extents = tuple(match.span() for match in _DASHES.finditer(ruler))
        return replace(self, extents=extents) if len(extents) == len(self.header.titles) else self

    def cells(self, line: Line, more: Lines) -> tuple[list[str], list[Line]]:
        """The cells of the row that begins with `line`, as many as the titles or fewer, and the lines that it has.

        A quoted name may have several lines: they are taken from `more`.
        """
        text = without_ending(line[1])
        if self.delimiter == "|":
            return self._joined(_split_bars(text)), [line]
        if not self.delimiter:
            return self._split_columns(text), [line]
        record = _Record(line, more)
        try:
            cells = next(csv.reader(record, delimiter=self.delimiter, strict=True, skipinitialspace=self.padded), [])
        except csv.Error as error:
            cells = text.split(self.delimiter)
            if self.delimiter != "\t" or (len(record.lines) == 1 and "end of data" in str(error)):
                cells = list(takewhile(lambda cell: not cell.startswith('"'), cells))  # its quote never closes
            more.put_back(record.lines[1:])
            del record.lines[1:]
        if self.padded:
            cells = [cell.strip() for cell in cells]
        cells = self._joined(cells)
        if (at := self.header.name_at) is not None and at < len(cells):
            cells[at] = unguard(cells[at])
        return cells, record.lines

    def _joined(self, cells: list[str]) -> list[str]:
        """Cells beyond the titles go to the name; empty ones at the end go away."""
        size, at = len(self.header.titles), self.header.name_at
        while len(cells) > size and not cells[-1].strip():
            cells.pop()
        if (extra := len(cells) - size) > 0 and at is not None:
            cells[at : at + extra + 1] = [self.delimiter.join(cells[at : at + extra + 1])]
        return cells

    def _split_columns(self, text: str) -> list[str]:
        size, at = len(self.header.titles), self.header.name_at
        if self.extents and at == size - 1:
            starts = [0, *(end for _, end in self.extents[:-1])]
            gaps = (text[end:start] for (_, end), (start, _) in zip(self.extents, self.extents[1:], strict=False))
            if not any(gap.strip() for gap in gaps) and len(text) > self.extents[-1][0]:
                ends = [*starts[1:], len(text)]
                return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        spans = [match.span() for match in _WORDS.finditer(text)]
        if (extra := len(spans) - size) > 0 and at is not None:
            spans[at : at + extra + 1] = [(spans[at][0], spans[at + extra][1])]
        return [text[start:end] for start, end in spans]


def find_table(line: str) -> TextTable | None:
    """The table that begins with this line, if it is a header."""
    if len(line) > _LONGEST_HEADER or not _SIGN.search(line):
        return None
    line = line.lstrip("\ufeff")
    text = without_ending(line)
    for delimiter, titles in _splits(text):
        if header := find_header([title.strip() for title in titles]):
            padded = not delimiter or any(cell != cell.strip() for cell in text.split(delimiter))
            return TextTable(header, delimiter, padded)
    return None


def is_ruler(text: str) -> bool:
    """Whether the line only draws, below a header."""
    return bool(_RULER.fullmatch(text))


class _Record:
    """Hands a CSV reader the lines of one record and remembers them."""

    def __init__(self, first: Line, more: Lines) -> None:
        self.lines: list[Line] = []
        self._first, self._more = first, more

    def __iter__(self) -> Iterator[str]:
        self.lines.append(self._first)
        yield self._first[1]
        while len(self.lines) < _LONGEST_RECORD and (line := next(self._more, None)):
            self.lines.append(line)
            yield line[1]


def _splits(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    for delimiter in _DELIMITERS:
        if delimiter in text:
            try:
                yield delimiter, next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])
            except csv.Error:
                yield delimiter, text.split(delimiter)
    if text.count("|") > 1:
        yield "|", _split_bars(text)
    yield "", _WORDS.findall(text)


def _split_bars(text: str) -> list[str]:
    """Cells of a row in Markdown, as they read."""
    text = text.strip()
    cells, begin = [], 0
    for bar in _BAR.finditer(text):
        cells.append(text[begin : bar.end() - 1])
        begin = bar.end()
    cells.append(text[begin:])
    if cells and not cells[0].strip() and text.startswith("|"):
        del cells[0]
    if cells and not cells[-1].strip() and text.endswith("|"):
        del cells[-1]
    return [_unescaped(cell.strip()) for cell in cells]


def _unescaped(cell: str) -> str:
    inner = cell.strip("`")
    ticks = len(cell) - len(inner)
    if inner and ticks and ticks % 2 == 0 and cell.startswith("`" * (ticks // 2) + inner[0]):
        return inner.strip().replace("\\|", "|")
    return _ESCAPED.sub(lambda match: match[1] or html.unescape(match[2]).replace(_BREAK, ""), cell)
