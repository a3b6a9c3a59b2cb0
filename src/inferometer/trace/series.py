"""Values as readers and recorders hand them over, made into columns of the declared types.

Leniently: a value that a column's type can't hold becomes null and is counted as `wrong_type` or `number_out_of_range`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from inferometer.trace.losses import Losses
from inferometer.trace.tables import TABLES

if TYPE_CHECKING:
    import numpy as np

Values: TypeAlias = "Sequence[Any] | np.ndarray[Any, Any] | pl.Series | str | int | float | None"


def make_batch(table: str, rows: int, columns: Mapping[str, Values], losses: Losses) -> pl.DataFrame:
    """`rows` rows of `table` with `columns` only; a single value fills its column.

    Text may come as categories and stays so; a single text becomes a category. A column of None alone is left out
    where there are others.
    """
    schema = TABLES[table].schema
    told = {name: values for name, values in columns.items() if values is not None} or columns
    return pl.DataFrame([_series(table, name, values, schema[name], rows, losses) for name, values in told.items()])


def _series(table: str, name: str, values: Values, dtype: pl.DataType, rows: int, losses: Losses) -> pl.Series:
    if isinstance(values, str) and dtype == pl.String:
        return pl.Series(name, [values], dtype=pl.Categorical).new_from_index(0, rows)
    if isinstance(values, pl.Series):
        return values.alias(name) if values.dtype == pl.Categorical else values.cast(dtype).alias(name)
    if values is None or isinstance(values, str | int | float):
        return _repeated(table, name, values, dtype, rows, losses)
    try:
        return pl.Series(name, values, dtype=dtype, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return _lenient_series(table, name, values, dtype, losses)


def _repeated(
    table: str, name: str, value: str | float | None, dtype: pl.DataType, rows: int, losses: Losses
) -> pl.Series:
    try:
        return pl.Series(name, [value], dtype=dtype, strict=True).new_from_index(0, rows)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return _lenient_series(table, name, [value] * rows, dtype, losses)


def _lenient_series(table: str, name: str, values: Iterable[Any], dtype: pl.DataType, losses: Losses) -> pl.Series:
    """Value by value: one that the type can't hold becomes null and is counted."""
    kept = []
    for value in values:
        kept.append(_fit(value, dtype))
        if kept[-1] is None and value is not None:
            loss = "number_out_of_range" if isinstance(value, int) else "wrong_type"
            losses.count(loss, category=f"{table}.{name}", example=repr(value)[:80])
    return pl.Series(name, kept, dtype=dtype)


def _fit(value: Any, dtype: pl.DataType) -> Any:
    if value is None or isinstance(value, bool):
        return None
    if dtype == pl.Int64:
        if (isinstance(value, float) and value.is_integer()) or (
            isinstance(value, str) and value.removeprefix("-").isdecimal()
        ):
            value = int(value)
        return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if dtype == pl.Float64:
        return float(value) if isinstance(value, int | float) and abs(value) < 1e308 else None
    if dtype == pl.String:
        return value if isinstance(value, str) else str(value)
    return None
