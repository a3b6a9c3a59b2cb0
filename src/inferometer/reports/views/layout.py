"""What a view is made of: sections, and the columns that they show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import polars as pl

Kind = Literal[
    "text", "name", "kernel", "sentence", "severity", "drawing", "count", "ns", "share", "bytes", "ratio", "number"
]  # fmt: skip
NAMES: Final[frozenset[Kind]] = frozenset({"name", "kernel", "sentence"})
"""Kinds that say what a row is about."""


class Field(msgspec.Struct, frozen=True):
    """One column of a section.

    `kind` gives renderers its unit: `ns`, `share` (0 to 1), `bytes`; a `ratio` shows four digits, a `name` may be cut,
    a `kernel` be shown as what its name says, a `sentence` be wrapped, a `drawing` neither. Any text but these gets
    narrower where nothing else helps.

    Where a screen is too narrow, columns are left out, those with the highest `spare` first and 0 last. A field that
    `leads` stands in front there.

    Where a column names kernels and other things, `kernel_where` is the column of the section's frame that is true in
    the rows of kernels.
    """

    column: str
    title: str
    kind: Kind
    spare: int = 0
    leads: bool = False
    kernel_where: str | None = None


_DTYPES: Mapping[Kind, Any] = {
    "text": pl.String,
    "name": pl.String,
    "kernel": pl.String,
    "sentence": pl.String,
    "severity": pl.String,
    "drawing": pl.String,
    "count": pl.Int64,
    "bytes": pl.Int64,
    "ns": pl.Float64,
    "share": pl.Float64,
    "ratio": pl.Float64,
    "number": pl.Float64,
}


def frame_of(rows: Sequence[Mapping[str, Any]], fields: Sequence[Field]) -> pl.DataFrame:
    """Few rows as a frame with one column per field, typed by its kind; what no field names is left out.

    For modelled times, which are parts of a nanosecond, too: `ns` is a float here.
    """
    return pl.DataFrame(rows, schema={field.column: _DTYPES[field.kind] for field in fields})


class Section(msgspec.Struct, frozen=True):
    """One table with its heading. `notes` are sentences below it."""

    title: str
    fields: Sequence[Field]
    frame: pl.DataFrame
    notes: Sequence[str] = ()


def say_rest(shown: int, rows: int, what: str = "rows") -> Iterator[str]:
    """How many of a table's rows are shown, where it isn't all of them."""
    if shown < rows:
        yield f"{shown:,} of {rows:,} {what} shown."
