"""A table of sums as the page's script reads it: what is added up, for each thing of each cell.

A thing is what a row stands for: a kernel, a model. A page has the things with the most time, and those that have much
of the time of a single cell; the others of a cell are one sum, so that shares stay exact. Sums are exact numbers; the
script makes ratios of them when it shows them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from inferometer.reports.base import is_right
from inferometer.reports.fleet.cells import Cells
from inferometer.reports.fleet.columns import column_data, texts_of
from inferometer.reports.views.layout import NAMES, Field, Section

MOST_THINGS: Final = 300
MOST_SUMS: Final = 12_000
"""Pairs of a cell and a thing in one table."""


@dataclass(frozen=True)
class FromSums:
    """How a column comes from sums: `value` times `factor`, divided by `per`, or by the sum `over`.

    `over` is the sum of all things; with `own`, that of the same thing.
    """

    value: str
    over: str | None = None
    own: bool = False
    per: float = 1.0
    factor: float = 1.0


@dataclass(frozen=True)
class QuestionSums:
    """What a question adds up.

    Attributes:
        rows: One per cell and thing: `cell`, the columns of `keys`, and those of `values`.
        keys: Columns that identify a thing.
        values: Columns that are added up; the first orders the things.
        shown: How each column of the view comes from these sums.
        whole: Sums of each cell that belong to no thing, by name.
        strict: Values whose sum is unknown where one of them is; of other values, the known ones are added.
    """

    rows: pl.DataFrame
    keys: Sequence[str]
    values: Sequence[str]
    shown: Mapping[str, FromSums]
    whole: Mapping[str, Sequence[float]] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()


def kept_things(question: QuestionSums) -> tuple[pl.DataFrame, int]:
    """The things that a page has, in the order of their first value, and how many there are in all."""
    first = question.values[0]
    per_cell = pl.col(first) / pl.col(first).sum().over("cell")
    things = (
        question.rows.with_columns(per_cell.fill_nan(0.0).alias("part"))
        .group_by(question.keys)
        .agg(pl.col(first).sum().alias("whole"), pl.col("part").max(), pl.len().alias("sums"))
        .with_columns(pl.max_horizontal(pl.col("whole") / pl.col("whole").sum(), "part").fill_nan(0.0).alias("score"))
        .sort("score", *question.keys, descending=[True, *[False] * len(question.keys)], nulls_last=True)
    )
    fits = things.filter(pl.col("sums").cum_sum() <= MOST_SUMS).head(MOST_THINGS)
    order = fits.sort("whole", *question.keys, descending=[True, *[False] * len(question.keys)], nulls_last=True)
    return order.select(question.keys), things.height


def sums_data(
    question: QuestionSums,
    things: pl.DataFrame,
    section: Section,
    cells: Cells,
    *,
    total: int,
    phase: str | None = None,
) -> dict[str, Any]:
    """The table as the script reads it.

    Args:
        question: What is added up.
        things: The keys of those on the page, from `kept_things`.
        section: How the view shows these, one row for each.
        cells: The cells.
        total: How many things there are in all.
        phase: The section's column of phases, if it has one.
    """
    keys = list(question.keys)
    numbered = things.select(keys).with_row_index("thing")
    own = question.rows.join(numbered, on=keys, nulls_equal=True).sort("thing", "cell")
    names, columns = _columns(question, section)
    data: dict[str, Any] = {
        "columns": columns,
        "names": [_texts(section, name) for name in names],
        "values": [{"name": name, "strict": name in question.strict} for name in question.values],
        "of": [own["thing"].to_list(), own["cell"].to_list()],
        "sums": [own[name].to_list() for name in question.values],
        "whole": {**{name: _per_cell(question, name, cells) for name in question.values}, **question.whole},
        "count": section.frame.height,
        "things": total,
    }
    return data if phase is None else {**data, "phases": section.frame[phase].to_list()}


def _columns(question: QuestionSums, section: Section) -> tuple[list[Field], list[dict[str, Any]]]:
    """The columns that have texts, and all that are shown: names first, as on the page.

    Left out is what no thing has, and what doesn't come from sums: it was found of all traces.
    """
    names: list[Field] = []
    columns: list[dict[str, Any]] = []
    fields = [*(each for each in section.fields if each.kind in NAMES), *section.fields]
    for each in dict.fromkeys(fields):
        if (how := question.shown.get(each.column)) is not None:
            shown = {"value": how.value, "over": how.over, "own": how.own, "per": how.per, "factor": how.factor}
            columns.append({**column_data(each), **shown})
        elif (not is_right(each) or each.column in question.keys) and section.frame[each.column].count():
            columns.append({**column_data(each), "text": len(names)})
            names.append(each)
    return names, columns


def _texts(section: Section, field: Field) -> list[Any]:
    return texts_of(field, section.frame[field.column].cast(pl.String).to_list())


def _per_cell(question: QuestionSums, name: str, cells: Cells) -> list[float | None]:
    """The sum of all things of each cell; None where it isn't known."""
    strict = pl.col(name).null_count() > 0 if name in question.strict else pl.lit(value=False)
    sums = question.rows.group_by("cell").agg(pl.when(~strict).then(pl.col(name).sum()).alias(name))
    found = dict(sums.iter_rows())
    return [found.get(cell, 0) for cell in range(cells.count)]
