"""Numbers for rows with the same values, and rows in the order of such numbers and of time: without sorting text."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import AT_ONCE, batches
from inferometer.trace.lean import has_one

Numbers = NDArray[np.int64]
_FEW = 4  # combinations of values per row, up to which a table of all is quicker than sorting
_FEW_NUMBERS = 2**16
_NEAR = 2**22  # numbers from the least to the largest, up to which a table of all is made
_LOW_BITS = 26  # sums of 2^27 such parts are exact in floating point
_PLACE = "place of the row"


def number_rows(frame: pl.DataFrame) -> tuple[Numbers, list[tuple[object, ...]]]:
    """Number the different rows in the order of their values, nulls last.

    Returns:
        The number of each row, from 0. Shape (rows,).
        The values of each number.
    """
    columns = [_numbered(frame.select(name)) for name in frame.columns]
    code = np.zeros(frame.height, dtype=np.int64)
    for numbers, values in columns:
        if len(values) > 1:
            code = code * len(values) + numbers
    sizes = [len(values) for _, values in columns]
    if prod(sizes) <= _FEW * max(1, frame.height):
        is_there = np.zeros(prod(sizes), dtype=bool)
        is_there[code] = True
        known = np.flatnonzero(is_there)
        if len(known) < len(is_there):
            code = (np.cumsum(is_there) - 1)[code]
    else:
        known, code = np.unique(code, return_inverse=True)
    parts = np.unravel_index(known, sizes)
    texts = [[values[i] for i in part.tolist()] for (_, values), part in zip(columns, parts, strict=True)]
    return code, [*zip(*texts, strict=True)]


def number_groups(frame: pl.DataFrame) -> tuple[Numbers, pl.DataFrame]:
    """As `number_rows`, with the values of each number as a row of a frame."""
    number, keys = number_rows(frame)
    return number, pl.DataFrame(keys, schema=frame.schema, orient="row")


def number_keys(keys: Numbers) -> tuple[Numbers, Numbers]:
    """As `np.unique` of numbers from 0: the place where each different one comes first, and each one's number.

    Where keys are few for their rows, a table of all is several times quicker than sorting.
    """
    size = int(keys.max(initial=-1)) + 1
    if size > _FEW * len(keys):
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return first, number
    table = np.full(size, -1, dtype=np.int64)
    table[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)  # what is written last stays
    known = np.flatnonzero(table >= 0)
    first = table[known]
    table[known] = np.arange(len(known))
    return first, table[keys]


def number_by_first(frame: pl.DataFrame) -> tuple[Numbers, Numbers]:
    """Number the different rows in the order in which they come first, without sorting; nulls are equal.

    Returns:
        The number of each row, from 0. Shape (rows,).
        The place of the first row of each number.
    """
    places = frame.with_row_index(_PLACE).group_by(frame.columns, maintain_order=True).agg(_PLACE)[_PLACE]
    number = np.empty(frame.height, dtype=np.int64)
    number[places.explode().to_numpy()] = np.repeat(np.arange(places.len()), places.list.len().to_numpy())
    return number, places.list.first().to_numpy().astype(np.int64)


def find_rows(table: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """The row in `table` of each of `rows`, which are all there; UInt32.

    Args:
        table: Few different rows, of text, categories or whole numbers.
        rows: Has the same columns; any number of rows.
    """
    table, rows = (frame.with_columns(pl.col(pl.String).cast(pl.Categorical)) for frame in (table, rows))
    places = [_Places(table[name]) for name in table.columns]
    found = np.zeros(prod(each.count for each in places), dtype=np.uint32)
    found[_codes(table, places)] = np.arange(table.height)
    columns = rows.select(table.columns)
    parts = [found[_codes(columns[part], places)] for part in batches(rows.height)]
    return pl.Series(np.concatenate([np.zeros(0, dtype=np.uint32), *parts]))


def _codes(rows: pl.DataFrame, places: Sequence["_Places"]) -> Numbers:
    """A number for each combination of values."""
    code = np.zeros(rows.height, dtype=np.int64)
    for column, each in zip(rows, places, strict=True):
        code = code * each.count + each.of(column)
    return code


class _Places:
    """The place of each value among the different ones of a column, by a table where they are near; null is the last.

    `count`: how many places there are.
    """

    def __init__(self, column: pl.Series) -> None:
        self._known = np.sort(column.unique().drop_nulls().to_physical().cast(pl.Int64).to_numpy())
        self.count = len(self._known) + 1
        self._table = np.zeros(0, dtype=np.int64)
        if len(self._known) and int(self._known[-1]) - int(self._known[0]) < _NEAR:
            self._table = np.zeros(int(self._known[-1] - self._known[0]) + 1, dtype=np.int64)
            self._table[self._known - self._known[0]] = np.arange(len(self._known))

    def of(self, column: pl.Series) -> Numbers:
        """Of each row's value, which is one of them."""
        if not len(self._known):
            return np.zeros(column.len(), dtype=np.int64)
        values = column.to_physical().cast(pl.Int64).fill_null(int(self._known[0])).to_numpy()
        is_near = len(self._table) > 0
        found = self._table[values - self._known[0]] if is_near else np.searchsorted(self._known, values)
        return np.where(column.is_null().to_numpy(), self.count - 1, found) if column.null_count() else found


def order_by(number: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The places of rows in the order of their numbers, equal ones as they are; shape (rows,).

    Numbers from 0 to 65,535 are sorted by radix, which is several times quicker.
    """
    few = not len(number) or (number.min() >= 0 and number.max() < _FEW_NUMBERS)
    return np.argsort(number.astype(np.uint16) if few else number, kind="stable")


def sum_by(number: NDArray[np.integer[Any]], values: Numbers, size: int) -> Numbers:
    """The exact sum of the values of each number below `size`; values are at least 0."""
    summed = np.zeros(size, dtype=np.int64)
    for part in batches(len(values)) if size < AT_ONCE else [slice(None)]:
        high, low = (
            np.bincount(number[part], weights=some, minlength=size).astype(np.int64)
            for some in (values[part] >> _LOW_BITS, values[part] & (1 << _LOW_BITS) - 1)
        )
        summed += (high << _LOW_BITS) + low
    return summed


def is_among(values: Numbers, known: Numbers) -> NDArray[np.bool_]:
    """Whether each value is one of the known ones, which are in order."""
    found = np.zeros(len(values), dtype=np.bool_)
    for part in batches(len(values)) if len(known) else ():
        at = np.minimum(np.searchsorted(known, values[part]), len(known) - 1)
        found[part] = known[at] == values[part]
    return found


def order_in_time(number: NDArray[np.integer[Any]] | None, time_ns: Numbers) -> Numbers | None:
    """The places of rows in the order of number, then time; equal ones stay as they are.

    Args:
        number: From 0. Shape (rows,); None: all have the same.
        time_ns: Shape (rows,).

    Returns:
        Shape (rows,); None where the rows are in order already.
    """
    is_later = time_ns[1:] >= time_ns[:-1]
    if number is not None:
        is_later = (number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & is_later)
    if is_later.all():
        return None
    order = np.argsort(time_ns, kind="stable")
    return order if number is None or (number == number[0]).all() else order[order_by(number[order])]


def _numbered(column: pl.DataFrame) -> tuple[Numbers, list[object]]:
    """The number of each value among the different ones, in order, nulls last; none where all are one."""
    if column.height and has_one(column, *column.columns):
        return np.empty(0, dtype=np.int64), [column.item(0, 0)]
    values = column.to_series()
    if values.dtype == pl.String:
        values = values.cast(pl.Categorical)
    if values.dtype == pl.Categorical:
        different = values.unique()
        known = pl.DataFrame({"text": different.cast(pl.String), "code": different.to_physical()}).drop_nulls()
        known = known.sort("text")
        codes, order = values.to_physical(), known["code"].to_numpy().astype(np.int64)
        place = np.zeros(int(order.max(initial=0)) + 1, dtype=np.int64)
        place[order] = np.arange(len(order))
        found = place[codes.fill_null(order[0] if len(order) else 0).to_numpy()]
        texts: list[object] = known["text"].to_list()
        return (found, texts) if values.null_count() == 0 else (_nulls_last(codes, found, len(texts)), [*texts, None])
    different = values.unique().drop_nulls().sort()
    found = np.searchsorted(different.to_numpy(), values.fill_null(0).to_numpy())
    numbers: list[object] = different.to_list()
    if values.null_count() == 0:
        return found, numbers
    return _nulls_last(values, found, len(numbers)), [*numbers, None]


def _nulls_last(values: pl.Series, found: Numbers, last: int) -> Numbers:
    return np.where(values.is_null().to_numpy(), last, found)
