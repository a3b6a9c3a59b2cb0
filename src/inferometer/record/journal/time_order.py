"""Rows of many parts in the order of time, with few of them in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl

from inferometer.trace.builder import PART_BYTES
from inferometer.trace.tables import TABLES

UnsortedPart = tuple[int | None, Callable[[], pl.DataFrame]]
"""The earliest time of a part, None without one, and what reads its rows."""
_NO_TIME = -(2**63)
_KEY, _PART = "\0key", "\0part"  # columns next to the declared ones while rows are sorted


def sort_by_time(table: str, parts: Sequence[UnsortedPart]) -> Iterator[pl.DataFrame]:
    """The rows of all parts in the order of time, `PART_BYTES` at once; of one time, in the order of the parts.

    Parts are read by their earliest times. What is earlier than all parts to come is final, so only parts that overlap
    in time are held together.
    """
    first = [_first(table, first_ns, i) for i, (first_ns, _) in enumerate(parts)]
    order = sorted(range(len(parts)), key=lambda i: (first[i], i))
    held: list[pl.DataFrame] = []
    enough = 2 * PART_BYTES
    for at, i in enumerate(order):
        held.append(_keyed(table, parts[i][1](), i))
        is_last = at + 1 == len(order)
        if not is_last and _bytes(held) < enough:
            continue
        rows = pl.concat(held).sort(_KEY, _PART, maintain_order=True)
        final = rows.height if is_last else rows[_KEY].search_sorted(first[order[at + 1]])
        whole, rest = _cut(rows.head(final), is_last)
        yield from (frame.drop(_KEY, _PART) for frame in whole)
        held = [*rest, rows.slice(final)]
        enough = max(2 * PART_BYTES, 2 * _bytes(held))  # where all parts overlap, sorting after each would take long


def _bytes(frames: Iterable[pl.DataFrame]) -> int:
    return sum(int(frame.estimated_size()) for frame in frames)


def _cut(rows: pl.DataFrame, is_last: bool) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """`rows` in frames of `PART_BYTES`, and what is left over."""
    if not rows.height:
        return [], []
    step = max(1, rows.height * PART_BYTES // max(1, int(rows.estimated_size())))
    whole = [rows.slice(at, step) for at in range(0, rows.height, step)]
    return (whole, []) if is_last or whole[-1].height == step else (whole[:-1], whole[-1:])


def _first(table: str, first_ns: int | None, number: int) -> int:
    """The least `_KEY` of a part; without a time it is the part's number."""
    if TABLES[table].time is None:
        return number
    return _NO_TIME if first_ns is None else first_ns


def _keyed(table: str, rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """With what they are sorted by: their time; a row without one stays after the one before it."""
    time = TABLES[table].time
    own = pl.lit(number) if time is None else pl.col(time).forward_fill().backward_fill().fill_null(_NO_TIME)
    return rows.with_columns(own.cast(pl.Int64).alias(_KEY), pl.lit(number).alias(_PART))
