"""The rows of a question in SQL as a table: whole numbers exact, whatever they count."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.sql.query import QueryResult, plain
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Kind, Section
from inferometer.reports.views.view import View


def _sections(found: QueryResult) -> Sequence[Section]:
    frame = plain(found.frame)
    lists = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    texts = [pl.Series(name, [_listed(value) for value in frame[name]], dtype=pl.String) for name in lists]
    frame = frame.with_columns(texts)
    return [Section("Rows", [Field(name, name, _kind(dtype)) for name, dtype in frame.schema.items()], frame)]


def _kind(dtype: pl.DataType) -> Kind:
    if dtype.is_integer():
        return "count"
    return "number" if dtype.is_float() else "text"


def _listed(value: pl.Series | None) -> str | None:
    return None if value is None else str(list(value))


def _remarks(found: QueryResult) -> Iterator[str]:
    if found.more:
        yield f"The first {found.frame.height:,} rows; there are more: --top N shows more, LIMIT fewer."


VIEW = View(schema=Schema("query", 1), sections=_sections, remarks=_remarks)
