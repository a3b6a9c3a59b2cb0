"""What can't be added up: rows that a filter chooses from, as they were found of all traces."""

from typing import Any

import polars as pl

from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.changes import FleetChanges
from inferometer.fleet.questions.outliers import FleetOutliers
from inferometer.reports.base import is_right
from inferometer.reports.fleet.cells import Cells
from inferometer.reports.fleet.columns import column_data, texts_of
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import sections_of


def outliers_data(found: FleetOutliers, fleet: Fleet, cells: Cells) -> dict[str, Any]:
    """A trace is compared with those of its own model, GPU, engine and version, of all dates."""
    dated = found.frame.join(fleet.traces.select("path", "date"), on="path", how="left", maintain_order="left")
    return _rows_data(sections_of(found)[0], dated, {name: (name,) for name in cells.values}, cells)


def changes_data(found: FleetChanges, cells: Cells) -> dict[str, Any]:
    """A change is of both versions that it lies between, and of no date."""
    columns = {name: (name,) for name in cells.values if name in found.frame.columns}
    both = {"version": ("before", "after")} if "version" in cells.values else {}
    return _rows_data(sections_of(found)[0], found.frame, {**columns, **both}, cells)


def _rows_data(
    section: Section, frame: pl.DataFrame, columns: dict[str, tuple[str, ...]], cells: Cells
) -> dict[str, Any]:
    """Columns and rows as they are shown; `keys`: by filter, for each row, the places of its values, null for any."""
    fields = [field for field in section.fields if section.frame[field.column].count()] or list(section.fields)
    shown = [
        section.frame[field.column].to_list()
        if is_right(field)
        else texts_of(field, section.frame[field.column].to_list())
        for field in fields
    ]
    return {
        "columns": [column_data(field) for field in fields],
        "rows": [list(row) for row in zip(*shown, strict=True)],
        "keys": [_keys(frame, columns.get(name), name, cells) for name in cells.values],
        "phases": frame["phase"].to_list(),
    }


def _keys(frame: pl.DataFrame, columns: tuple[str, ...] | None, name: str, cells: Cells) -> list[list[int]] | None:
    if columns is None:
        return None
    places = [cells.places(name, frame[column].to_list()) for column in columns]
    return [list(each) for each in zip(*places, strict=True)]
