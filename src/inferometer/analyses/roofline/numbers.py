"""Numbers of ops with their arguments: the longest is 1, whatever device, lengths of sequences or order of a table."""

import re
from typing import Any

import polars as pl

from inferometer.analyses.roofline.calls import SIGNATURE
from inferometer.errors import InputError
from inferometer.units import format_ranges


def with_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `number`: equal for rows with one op and equal arguments; null where no op is known.

    Args:
        rows: With `SIGNATURE` and `total_ns`.
    """
    keys = list(SIGNATURE)
    numbers = (
        rows.filter(pl.col("op").is_not_null())
        .group_by(keys)
        .agg(pl.col("total_ns").sum())
        .sort("total_ns", *keys, descending=[True, *[False] * len(keys)], nulls_last=True)
        .with_row_index("number", offset=1)
        .select(pl.col("number").cast(pl.Int64), *keys)
    )
    return rows.join(numbers, on=keys, how="left", nulls_equal=True, maintain_order="left")


def find_numbered(rows: pl.DataFrame, number: int) -> dict[str, Any]:
    """The row with this number, the longest where there are several.

    Raises:
        InputError: There is none.
    """
    found = rows.filter(pl.col("number") == number).sort("total_ns", descending=True)
    if not found.height:
        known = sorted(rows["number"].drop_nulls().unique().to_list())
        hint = f"It has {format_ranges(known)}; `inferometer roofline` shows them." if known else "It has none."
        raise InputError(f"there is no op with the number {number}", hint=hint)
    return found.row(0, named=True)


def find_matching(rows: pl.DataFrame, pattern: re.Pattern[str]) -> list[int]:
    """The numbers of ops whose name the pattern finds, in order.

    Raises:
        InputError: It finds none.
    """
    known = rows.filter(pl.col("number").is_not_null())
    found = {number for number, op in known.select("number", "op").iter_rows() if pattern.search(op)}
    if not found:
        names = ", ".join(known.sort("number")["op"].unique(maintain_order=True).head(8).to_list()) or "none"
        raise InputError(f'no op matches "{pattern.pattern}"', hint=f"The longest are: {names}.")
    return sorted(found)
