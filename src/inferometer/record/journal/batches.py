"""Batches as the parts of a recording hand them in, joined into one frame per table.

Most batches are of a few rows: a column of many of them becomes one list first, which is about ten times quicker than
a frame for each. A batch that can't be a part of the table is left out and counted, so that it spoils no other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from inferometer.trace.losses import Losses
from inferometer.trace.series import Values, make_batch
from inferometer.trace.tables import TABLES

_LARGE_ROWS = 2_000  # a frame of their own costs such batches less than lists


class Batch(NamedTuple):
    """Rows of one table as they were added."""

    table: str
    rows: int
    columns: Mapping[str, Values]


def join_batches(batches: Iterable[Batch], losses: Losses, trouble: Callable[[str], object]) -> dict[str, pl.DataFrame]:
    """One frame for each table with exactly its columns, rows in the order of the batches.

    What doesn't fit is counted in `losses` and reported to `trouble`.
    """
    by_table: defaultdict[str, list[Batch]] = defaultdict(list)
    for batch in batches:
        by_table[batch.table].append(batch)
    frames = {}
    for table, some in by_table.items():
        pieces = [frame for run in _runs(some) for frame in _frames(run, losses, trouble)]
        if pieces:
            declared = TABLES[table]
            plain = [declared.plain(declared.complete(piece.lazy())) for piece in pieces]
            frames[table] = pl.concat(plain).collect()
    return frames


def _runs(batches: Sequence[Batch]) -> Iterable[list[Batch]]:
    """Small batches with the same columns that follow each other; large ones alone."""
    run: list[Batch] = []
    for batch in batches:
        if run and (batch.rows >= _LARGE_ROWS or batch.columns.keys() != run[0].columns.keys()):
            yield run
            run = []
        run.append(batch)
        if batch.rows >= _LARGE_ROWS:
            yield run
            run = []
    if run:
        yield run


def _frames(run: list[Batch], losses: Losses, trouble: Callable[[str], object]) -> Iterable[pl.DataFrame]:
    """The run as one frame; where that fails, each batch that can be one."""
    table = run[0].table
    known = [name for name in run[0].columns if name in TABLES[table].schema]
    found = Losses()
    try:
        rows = sum(batch.rows for batch in run)
        frame = make_batch(table, rows, {name: _joined(run, name) for name in known}, found)
        if frame.height != rows:
            raise ValueError(f"expected {rows} rows, found {frame.height}")
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        if len(run) > 1:
            for batch in run:
                yield from _frames([batch], losses, trouble)
            return
        losses.count("rows_not_written", run[0].rows, example=f"{table}: {error}"[:200])
        trouble(f"rows of the table {table} can't be recorded: {error}")
        return
    for name in run[0].columns.keys() - known:
        found.count("unknown_column", len(run), category=f"{table}.{name}")
    losses.add(found)
    yield frame


def _joined(run: list[Batch], name: str) -> Values:
    """One column of all batches: a list, or the one value that fills them all."""
    if len(run) == 1:
        return _plain(run[0].columns[name])
    values = [_plain(batch.columns[name]) for batch in run]
    first = values[0]
    if _is_single(first) and all(type(value) is type(first) and value == first for value in values):
        return first
    joined: list[Any] = []
    for batch, value in zip(run, values, strict=True):
        if value is None or isinstance(value, str | int | float):
            joined.extend([value] * batch.rows)
            continue
        if len(value) != batch.rows:
            raise ValueError(f"{name}: expected {batch.rows} values, found {len(value)}")
        joined.extend(value.tolist() if isinstance(value, np.ndarray) else value)
    return joined


def _is_single(value: Values) -> bool:
    return value is None or isinstance(value, str | int | float)


def _plain(value: Any) -> Values:
    """A number of NumPy's as one of Python's."""
    plain: Values = value.item() if isinstance(value, np.generic) else value
    return plain
