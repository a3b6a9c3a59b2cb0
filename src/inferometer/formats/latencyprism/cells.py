"""The text of a CSV file as columns of text, an empty cell as null.

A file that is whole goes through Polars. One that Polars refuses, or that ends without a line ending, is taken apart
line by line: a row with cells too many or a quote that nothing closes is left out and counted, those below are kept. A
row with cells too few ends with nulls, except at the end of the file, where it was cut.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from inferometer.errors import FormatError
from inferometer.formats.latencyprism.pair import titles_of
from inferometer.formats.source import HEAD_BYTES
from inferometer.trace.losses import Losses

_MOST_LINES = 64  # of one row: names with line breaks are short
_MANY_LINES = 1_000_000
_MOST_COLUMNS = 1_000  # a run's have 17; Polars takes 50 µs for each column that there is
_BATCH_ROWS = 50_000
_BOM = b"\xef\xbb\xbf"
_REPLACED = "\ufffd"


@dataclass(frozen=True)
class Cells:
    """`frame`: one column of text a title; `broken` rows are in none, `example` says where the first is."""

    frame: pl.DataFrame
    broken: int = 0
    example: str | None = None

    def require(self, wanted: Sequence[str], name: str) -> None:
        """Raise `FormatError` unless all these columns are there."""
        if lacking := [title for title in wanted if title not in self.frame.columns]:
            raise FormatError(
                f"{name}: expected the columns {', '.join(wanted)}, found no {', '.join(lacking)}",
                hint="Export it again with all columns.",
            )


def read_cells(data: bytes, name: str, losses: Losses) -> Cells:
    """The cells below the header.

    Raises:
        FormatError: There is no header, or there are so many columns or lines that they can't be those of a run.
    """
    titles = titles_of(data[:HEAD_BYTES])
    if not titles:
        raise FormatError(f"{name}: expected the titles of columns, found nothing", hint="Export it again.")
    if len(titles) > _MOST_COLUMNS:
        raise FormatError(
            f"{name}: expected at most {_MOST_COLUMNS:,} columns, found {len(titles):,}", hint="Export it again."
        )
    lines = data.count(b"\n")
    if lines > _MANY_LINES and lines * len(titles) > len(data):  # even empty cells have a comma
        raise FormatError(
            f"{name}: expected rows of {len(titles)} cells, found {lines:,} lines in {len(data):,} bytes",
            hint="Export it again.",
        )
    data = _as_text(data.removeprefix(_BOM).lstrip(b"\r\n"), losses, name)
    cells = _read_quickly(data, titles) if data.endswith(b"\n") else None
    return cells or _read_carefully(data.decode(), titles)


def _as_text(data: bytes, losses: Losses, name: str) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        losses.count("invalid_utf8", text.count(_REPLACED) - data.count(_REPLACED.encode()), example=name)
        return text.encode()
    return data


def _read_quickly(data: bytes, titles: Sequence[str]) -> Cells | None:
    """None unless every line of the file is in a cell."""
    try:
        frame = pl.read_csv(data, has_header=False, infer_schema=False, new_columns=_names(titles))
    except (pl.exceptions.PolarsError, ValueError):
        return None
    if frame.width != len(titles):
        return None
    lines = data.count(b"\n")
    inside = 0
    if lines != frame.height:
        inside = int(frame.select(pl.sum_horizontal(pl.all().str.count_matches("\n").sum())).item() or 0)
    if lines != frame.height + inside:
        return None
    return Cells(_without_blanks(frame.slice(1)))


def _read_carefully(text: str, titles: Sequence[str]) -> Cells:
    schema = dict.fromkeys(_names(titles), pl.String)
    frames = [pl.DataFrame(schema=schema)]
    rows: list[Sequence[str | None]] = []
    broken: list[int] = []
    for number, row in _records(text.split("\n"), len(titles)):
        if row is None:
            broken.append(number)
        elif any(row):
            rows.append([cell or None for cell in row] + [None] * (len(titles) - len(row)))
        if len(rows) == _BATCH_ROWS:  # one list per row takes many times as much
            frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
            rows.clear()
    frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
    return Cells(_without_blanks(pl.concat(frames).slice(1)), len(broken), f"line {broken[0]}" if broken else None)


def _records(lines: Sequence[str], width: int) -> Iterator[tuple[int, Sequence[str] | None]]:
    """The number of each row's first line, and its cells; None for a row that has too many, or was cut."""
    start = 0
    while start < len(lines):
        row, end = _row_at(lines, start, width)
        was_cut = end == len(lines) and row and len(row) < width
        yield start + 1, None if was_cut else row
        start = end


def _row_at(lines: Sequence[str], start: int, width: int) -> tuple[Sequence[str] | None, int]:
    """The row that begins in this line, and the line after it. Further lines are of it only where they complete it."""
    quotes = 0
    for end in range(start + 1, min(start + _MOST_LINES, len(lines)) + 1):
        quotes += lines[end - 1].count('"')
        if quotes % 2:
            continue
        row = _split("\n".join(lines[start:end]))
        if row is not None and (len(row) == width or (len(row) < width and end == start + 1)):
            return row, end
        break
    return None, start + 1


def _split(text: str) -> Sequence[str] | None:
    try:
        return next(csv.reader([text.removesuffix("\r")]), [])
    except csv.Error:
        return None


def _names(titles: Sequence[str]) -> Sequence[str]:
    """`titles`, of which those that repeat get a number: the first is the column."""
    return [title if title not in titles[:i] else f"{title} ({i})" for i, title in enumerate(titles)]


def _without_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    """Without lines that hold nothing."""
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))
