"""Calls of which a selection holds some launches, but not all.

A bound is that of a whole call, and how it spreads over a call's launches isn't known. So calls that are cut have rows
of their own, without a bound: what is selected of them is time, and no more.
"""

import polars as pl

from inferometer.analyses.roofline.calls import SIGNATURE
from inferometer.analyses.roofline.rows import MODELLED
from inferometer.analyses.selection import Selection
from inferometer.trace.trace import Trace
from inferometer.units import format_list

_KEPT = ("row", "family", *SIGNATURE, "reason")


def mark_selected(launches: pl.DataFrame, trace: Trace, selection: Selection) -> pl.DataFrame:
    """`launches` with `is_selected`.

    Raises:
        UnknownName: The trace has no such device, stream or rank.
        InputError: As of `Selection.conditions`.
    """
    conditions = selection.conditions(trace)
    chosen = pl.all_horizontal(conditions).fill_null(value=False) if conditions else pl.lit(value=True)
    return launches.with_columns(chosen.alias("is_selected"))


def keep_selected(
    placed: pl.DataFrame, modelled: pl.DataFrame, selection: Selection
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The launches that are selected, with `is_cut`, and their rows: calls that are cut have rows of their own.

    Args:
        placed: Launches of `RowMaker.place`, with `is_selected`.
        modelled: The rows.
        selection: What selected them.
    """
    if placed["is_selected"].all():
        return placed.with_columns(pl.lit(value=False).alias("is_cut")), modelled
    is_cut = pl.col("call").is_not_null() & ~pl.col("is_selected").all().over("call")
    selected = placed.with_columns(is_cut.alias("is_cut")).filter("is_selected")
    whole = selected.filter(pl.col("is_cut"))["row"].unique().sort()
    first = modelled.height
    part = dict(zip(whole.to_list(), range(first, first + whole.len()), strict=True))
    row = pl.when("is_cut").then(pl.col("row").replace_strict(part, default=None, return_dtype=pl.Int64))
    rows = modelled.filter(pl.col("row").is_in(whole.to_list())).with_columns(
        pl.col("row").replace_strict(part, default=None, return_dtype=pl.Int64),
        pl.coalesce("reason", pl.lit(_why(selection))).alias("reason"),
        *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in MODELLED.items() if name not in _KEPT),
    )
    return selected.with_columns(row.otherwise("row").alias("row")), pl.concat([modelled, rows])


def _why(selection: Selection) -> str:
    asked = (("--between", selection.between_ns), ("--stream", selection.stream), ("--device", selection.device),
             ("--rank", selection.rank))  # fmt: skip
    options = format_list([option for option, value in asked if value is not None])
    return f"cut by {options}: it has only some of the launches of these calls"
