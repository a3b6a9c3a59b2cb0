"""Numbers for rows with the same values, and rows in the order of such numbers and of time: without sorting text."""

from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_FEW = 4  # combinations of values per row, up to which a table of all is quicker than sorting
_FEW_NUMBERS = 2**16
_LOW_BITS = 26  # sums of 2^27 such parts are exact in floating point
_PLACE = "place of the row"


def number_rows(frame: pl.DataFrame) -> tuple[Numbers, list[tuple[object, ...]]]:
    """Number the different rows in the order of their values, nulls last.

    Returns:
        The number of each row, from 0. Shape (rows,).
        The values of each number.
    """
    columns = [_numbered(frame[name]) for name in frame.columns]
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


def order_by(number: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The places of rows in the order of their numbers, equal ones as they are; shape (rows,).

    Numbers from 0 to 65,535 are sorted by radix, which is several times quicker.
    """
    few = not len(number) or (number.min() >= 0 and number.max() < _FEW_NUMBERS)
    return np.argsort(number.astype(np.uint16) if few else number, kind="stable")


def sum_by(number: NDArray[np.integer[Any]], values: Numbers, size: int) -> Numbers:
    """The exact sum of the values of each number below `size`; values are at least 0."""
    high, low = (
        np.bincount(number, weights=part, minlength=size).astype(np.int64)
        for part in (values >> _LOW_BITS, values & (1 << _LOW_BITS) - 1)
    )
    return (high << _LOW_BITS) + low


def order_in_time(number: Numbers, time_ns: Numbers) -> Numbers | None:
    """The places of rows in the order of number, then time; equal ones stay as they are.

    Args:
        number: From 0. Shape (rows,).
        time_ns: Shape (rows,).

    Returns:
        Shape (rows,); None where the rows are in order already.
    """
    is_later = (number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & (time_ns[1:] >= time_ns[:-1]))
    if is_later.all():
        return None
    order = np.argsort(time_ns, kind="stable")
    return order[order_by(number[order])]


def _numbered(values: pl.Series) -> tuple[Numbers, list[object]]:
    """The number of each value among the different ones, in order, nulls last."""
    if values.null_count() == values.len() > 0:
        return np.zeros(values.len(), dtype=np.int64), [None]
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
    if different.len() == 1 and values.null_count() == 0:
        return np.zeros(values.len(), dtype=np.int64), different.to_list()
    found = np.searchsorted(different.to_numpy(), values.fill_null(0).to_numpy())
    numbers: list[object] = different.to_list()
    if values.null_count() == 0:
        return found, numbers
    return _nulls_last(values, found, len(numbers)), [*numbers, None]


def _nulls_last(values: pl.Series, found: Numbers, last: int) -> Numbers:
    return np.where(values.is_null().to_numpy(), last, found)
