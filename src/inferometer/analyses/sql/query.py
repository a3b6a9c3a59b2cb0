"""A question in SQL about the tables of a run, answered by Polars.

Its tables are those of `trace/tables.py`, under their names. It only reads, and only these: what would open a file, or
change a table, is refused. Time and memory are for the caller to limit: a join of a table with itself may take any.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.errors import InputError, UnknownName
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

MOST_ROWS = 10_000
_LONGEST = 100_000  # characters of a question
_BEGINNINGS = ("select", "with", "from", "values", "show", "explain", "(")
_OF_FILES = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|ndjson|json|delta|iceberg)\b", re.IGNORECASE)
_SCAN = re.compile(r"^\s*(\w+ SCAN .*)$", re.MULTILINE)
_COMMENTS = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.DOTALL)
_NO_TABLE = re.compile(r"relation '(.*?)' was not found")
_NO_COLUMN = re.compile(r'unable to find column "(.*?)"; valid columns: \[(.*?)\]', re.DOTALL)
_NO_COLUMN_OF = re.compile(r"no column named '(.*?)' found in table '(.*?)'")
_PLAIN = (pl.Int64, pl.Int32, pl.UInt32, pl.UInt64, pl.Float64, pl.Float32, pl.String, pl.Boolean)
_EXAMPLE = "Ask for example: select kernel, sum(dur_ns) as ns from launches group by kernel order by ns desc"


@dataclass(frozen=True)
class QueryResult(Result):
    """The rows; `more`: there are further ones, which were not taken."""

    view: ClassVar[str] = "query"
    source: str
    query: str
    frame: pl.DataFrame
    more: bool
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        return self.frame

    def as_json(self) -> dict[str, Any]:
        columns = [{"name": name, "type": str(dtype)} for name, dtype in self.frame.schema.items()]
        return {
            "source": self.source,
            "query": self.query,
            "columns": columns,
            "rows": plain(self.frame).to_dicts(),
            "more": self.more,
            "losses": self.losses.as_dict(),
        }


def run_query(trace: Trace, query: str, *, most_rows: int = MOST_ROWS) -> QueryResult:
    """The answer of a question, at most `most_rows` rows of it.

    Raises:
        UnknownName: There is no such table or column.
        InputError: It can't be read, isn't a question, or asks for a file.
    """
    frames = {name: trace.tables[name] for name in trace.tables}
    return query_tables(frames, query, source=trace.facts.source, losses=trace.losses, most_rows=most_rows)


def query_tables(
    frames: Mapping[str, pl.LazyFrame], query: str, *, source: str, losses: Losses, most_rows: int = MOST_ROWS
) -> QueryResult:
    """As `run_query`, of these tables alone, which `source` has."""
    _refuse_other(query)
    context = pl.SQLContext(frames=frames, eager=False)
    try:
        answer = context.execute(query)
        _refuse_foreign(answer, frames.values())
        rows = answer.head(most_rows + 1).collect(engine="streaming")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _explained(error, frames) from error
    return QueryResult(source, query, rows.head(most_rows), rows.height > most_rows, losses)


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with numbers, text and truth values as they are, lists of these too, and all else as text."""
    frame = frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64))
    texts = [
        pl.Series(name, [None if value is None else str(value) for value in frame[name]], dtype=pl.String)
        for name, dtype in frame.schema.items()
        if not _is_plain(dtype)
    ]
    return frame.with_columns(texts)


def _is_plain(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.List | pl.Array):
        return _is_plain(dtype.inner)  # type: ignore[arg-type]
    return dtype in _PLAIN or dtype.is_integer() or dtype == pl.Null


def _refuse_other(query: str) -> None:
    """Refuse what isn't one question of tables, before anything is made of it."""
    if len(query) > _LONGEST:
        raise InputError(f"the question: expected at most {_LONGEST:,} characters, found {len(query):,}")
    if not query.isascii() and query != query.encode("utf-8", "ignore").decode():
        raise InputError("the question: expected text in UTF-8, found half a character")
    if found := _OF_FILES.search(query):
        raise InputError(f"the question: {found[0]} would open a file", hint="Ask the tables of the run alone.")
    beginning = query
    while comment := _COMMENTS.match(beginning):
        beginning = beginning[comment.end() :]
    if not beginning.strip():
        raise InputError("the question: expected SQL, found nothing", hint=_EXAMPLE)
    if not beginning.lstrip().lower().startswith(_BEGINNINGS):
        word = beginning.split(maxsplit=1)[0]
        raise InputError(f"the question: expected one that only reads, found {word!r}", hint=_EXAMPLE)


def _refuse_foreign(answer: pl.LazyFrame, own: Any) -> None:
    """Refuse a plan that reads a file which none of our tables reads, however the question was put."""
    known = {scan for frame in own for scan in _scans(frame)}
    if foreign := next((scan for scan in _scans(answer) if scan not in known), None):
        raise InputError(f"the question: it would open a file: {foreign}", hint="Ask the tables of the run alone.")


def _scans(frame: pl.LazyFrame) -> Iterator[str]:
    return (found[1] for found in _SCAN.finditer(frame.explain(optimized=False)))


def _explained(error: BaseException, frames: Mapping[str, pl.LazyFrame]) -> InputError:
    """What Polars found wrong, with the names that would have been right."""
    text = str(error)
    if found := _NO_TABLE.search(text):
        return UnknownName("table", found[1], frames)
    if found := _NO_COLUMN.search(text):
        return UnknownName("column", found[1], re.findall(r'"(.*?)"', found[2]))
    if (found := _NO_COLUMN_OF.search(text)) and found[2] in frames:
        return UnknownName(f"column of {found[2]}", found[1], frames[found[2]].collect_schema().names())
    message = text.partition("\n")[0].removeprefix("sql parser error: ")
    return InputError(f"the question can't be answered: {message}", hint="docs/reference/tables.md has all columns.")
