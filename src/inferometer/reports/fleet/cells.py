"""What a page's filters choose from: each combination of model, GPU, engine, version and date that traces have, a cell.

Where there are more of them than a page holds, the last of these is left out, then the one before it: the page has
no such filter, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from inferometer.fleet.opening import Fleet
from inferometer.fleet.tables import TRACE

FILTERS: Final = ("model", "gpu", "engine", "version", "date")
MOST: Final = 400
NOT_SAID: Final = "not said"


@dataclass(frozen=True)
class Cells:
    """`of`: a row for each trace, with its `cell`; `values`: by filter its values, in order, null last.

    `frame` has a row for each cell, with the place of its value of each filter; `left_out` are filters without room.
    """

    of: pl.DataFrame
    frame: pl.DataFrame
    values: dict[str, list[str | None]]
    left_out: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.frame.height

    def places(self, column: str, values: Sequence[str | None]) -> list[int]:
        """Where each value stands among those of a filter."""
        known = {value: place for place, value in enumerate(self.values[column])}
        return [known[value] for value in values]

    def as_data(self) -> dict[str, Any]:
        """As the script reads it."""
        return {
            "filters": [{"name": name, "values": values} for name, values in self.values.items()],
            "cells": [list(row) for row in self.frame.select(list(self.values)).iter_rows()],
            "traces": self.frame["traces"].to_list(),
        }


def find_cells(fleet: Fleet) -> Cells:
    """The cells of a fleet's traces."""
    names = list(FILTERS)
    while fleet.traces.select(names).n_unique() > MOST:
        names.pop()
    values = {name: _values(fleet.traces[name]) for name in names}
    keyed = fleet.traces.select(TRACE, *(_places(name, values[name]) for name in names))
    frame = keyed.group_by(names).agg(pl.len().cast(pl.Int64).alias("traces")).sort(names).with_row_index("cell")
    of = keyed.join(frame.select("cell", *names), on=names).select(TRACE, pl.col("cell").cast(pl.Int64))
    return Cells(of, frame, values, tuple(FILTERS[len(names) :]))


def _values(column: pl.Series) -> list[str | None]:
    found: list[str | None] = column.drop_nulls().unique().sort().to_list()
    return [*found, None] if column.null_count() else found


def _places(name: str, values: Sequence[str | None]) -> pl.Expr:
    known = {value: place for place, value in enumerate(values) if value is not None}
    missing = len(values) - 1
    column = pl.col(name).replace_strict(known, default=missing, return_dtype=pl.Int64) if known else pl.lit(missing)
    return column.cast(pl.Int64).alias(name)
