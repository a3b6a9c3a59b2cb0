"""Large tables in little memory: part by part, and columns of one value as that value.

polars keeps a column of one value as such (a *scalar column*) through filters, gathers and expressions. `frame[name]`
makes all rows of it, and keeps them: what looks at one column of a large frame asks by an expression.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import polars as pl

_AT_ONCE: Final = 2**20  # rows
LARGE: Final = 2**20  # rows, below which nothing is to be gained


def in_slices(table: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Its rows, a million after the other; nothing of an empty table."""
    count = table.select(pl.len()).collect().item()
    for start in range(0, count, _AT_ONCE):
        yield table.slice(start, _AT_ONCE).collect()


def collect_lean(table: pl.LazyFrame, names: Sequence[str], *where: pl.Expr) -> pl.DataFrame:
    """These columns of the rows that all of `where` hold for.

    Of a large table column by column, each in one piece, and columns of one value lean.
    """
    if table.select(pl.len()).collect().item() < LARGE:
        return table.filter(*where).select(names).collect()
    holds = table.select(pl.all_horizontal(where)).collect().to_series() if where else None
    wanted = None if holds is None or holds.all() else holds
    parts = (table.select(name).collect().rechunk() for name in names)
    return _side_by_side((part if wanted is None else part.filter(wanted) for part in parts), names)


def slices_of(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Its rows, a million after the other; the frame itself where it has no more."""
    for start in range(0, max(1, frame.height), _AT_ONCE):
        yield frame[start : start + _AT_ONCE]


def stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """One below the other, at least one, each column in one piece, and columns of one value lean.

    The list is emptied, so that each part's column is let go of once it was copied.
    """
    if len(parts) == 1:
        return parts.pop()
    names = parts[0].columns
    columns = [[part.select(name) for part in parts] for name in names]
    parts.clear()
    return _side_by_side((pl.concat(columns.pop(0)).rechunk() for _ in names), names)


def _side_by_side(columns: Iterable[pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """Frames of one column each, as one; those of one value lean."""
    varied, same, whole = [], [], pl.DataFrame()
    for column in columns:
        (name,) = column.columns
        if column.schema[name].is_nested() or not column.height or not has_one(column, name):
            varied.append(column)
        else:
            same.append(pl.lit(column.head(1).to_series()).first().alias(name))
            whole = column
    if not varied:
        return whole.with_columns(same).select(names)
    return pl.concat(varied, how="horizontal").with_columns(same).select(names)


def has_one(frame: pl.DataFrame, *names: str) -> bool:
    """Whether each of these columns has one value in all rows, or null in all."""
    return not having_several(frame, names)


def having_several(frame: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Those of the columns that don't have one value in all rows, or null in all; one query tells it."""
    one = []
    for number, name in enumerate(names):
        is_text = isinstance(frame.schema[name], pl.Categorical | pl.Enum)
        one.append(one_value(pl.col(name).to_physical() if is_text else name).alias(str(number)))
    return [name for name, is_one in zip(names, frame.select(one).row(0), strict=True) if not is_one] if one else []


def one_value(column: pl.Expr | str) -> pl.Expr:
    """Whether a column has one value in all rows, or null in all; categories are compared by their numbers."""
    column = pl.col(column) if isinstance(column, str) else column
    nulls = column.null_count()
    return (nulls == pl.len()) | ((nulls == 0) & (column.min() == column.max()).fill_null(value=False))


def gather(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """These rows; all null where the number is."""
    if not frame.width:
        return frame
    return frame.select(pl.all().gather(rows)) if rows.null_count() else frame[rows]


def aggregate(frame: pl.DataFrame, by: Sequence[str], *values: pl.Expr) -> pl.DataFrame:
    """As `frame.group_by(by).agg(values)`, one value a group each; columns of one value aren't looked at row by row."""
    if frame.is_empty():
        return frame.group_by(by).agg(values)
    varied = having_several(frame, by)
    groups = frame.group_by(varied).agg(values) if varied else frame.select(values)
    first = frame.head(1)
    same = [pl.lit(first[name]).first().alias(name) for name in by if name not in varied]
    return groups.with_columns(same).select(*by, *(name for name in groups.columns if name not in by))
