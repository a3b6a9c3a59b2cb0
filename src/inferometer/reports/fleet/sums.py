"""A table of sums as the page's script reads it: of each thing and each cell, what is added up.

A page has the things with the most time, and those that have much of a single cell's; the others of a cell are one sum,
so that shares stay exact. Sums are whole numbers, or hours' parts; ratios of them are made where they are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from inferometer.errors import clean
from inferometer.reports.base import is_right
from inferometer.reports.fleet.cells import Cells
from inferometer.reports.page.blocks import ADDITIVE
from inferometer.reports.page.figures import without_surrogates
from inferometer.reports.screen.shown_names import cut_names, label_kernels
from inferometer.reports.views.layout import NAMES, Field, Section

MOST_THINGS: Final = 300
MOST_SUMS: Final = 12_000
"""Of a table: pairs of a cell and a thing."""
_NAME: Final = 60  # characters of a name that are seen at first
_LONGEST: Final = 1_000


@dataclass(frozen=True)
class Shown:
    """How a column comes from sums: `value` times `factor`, over `per` or over another sum.

    That is the sum `over` of all things, or with `own` of the same thing.
    """

    value: str
    over: str | None = None
    own: bool = False
    per: float = 1.0
    factor: float = 1.0


@dataclass(frozen=True)
class Summed:
    """What a question adds up.

    Attributes:
        rows: `cell`, the columns of `keys`, and those of `values`.
        keys: What makes a thing.
        values: What is added up; the first orders the things.
        shown: By column of the view, how it comes from these.
        whole: By name, sums of cells that are of no thing.
        strict: Values of which a sum isn't known where one isn't; of others, the known ones are added.
    """

    rows: pl.DataFrame
    keys: Sequence[str]
    values: Sequence[str]
    shown: Mapping[str, Shown]
    whole: Mapping[str, Sequence[float]] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()


def kept_things(of: Summed) -> tuple[pl.DataFrame, int]:
    """The things that a page has, in the order of their first value, and how many there are in all."""
    first = of.values[0]
    per_cell = pl.col(first) / pl.col(first).sum().over("cell")
    things = (
        of.rows.with_columns(per_cell.fill_nan(0.0).alias("part"))
        .group_by(of.keys)
        .agg(pl.col(first).sum().alias("whole"), pl.col("part").max(), pl.len().alias("sums"))
        .with_columns(pl.max_horizontal(pl.col("whole") / pl.col("whole").sum(), "part").fill_nan(0.0).alias("score"))
        .sort("score", *of.keys, descending=[True, *[False] * len(of.keys)], nulls_last=True)
    )
    fits = things.filter(pl.col("sums").cum_sum() <= MOST_SUMS).head(MOST_THINGS)
    order = fits.sort("whole", *of.keys, descending=[True, *[False] * len(of.keys)], nulls_last=True)
    return order.select(of.keys), things.height


def sums_data(
    of: Summed, things: pl.DataFrame, section: Section, cells: Cells, *, total: int, phase: str | None = None
) -> dict[str, Any]:
    """As the script reads it.

    Args:
        of: What is added up.
        things: The keys of those on the page, of `kept_things`.
        section: How the view shows these, a row for each.
        cells: The cells.
        total: How many things there are in all.
        phase: The section's column of phases, if it has one.
    """
    keys = list(of.keys)
    numbered = things.select(keys).with_row_index("thing")
    own = of.rows.join(numbered, on=keys, nulls_equal=True).sort("thing", "cell")
    names, columns = _columns(of, section)
    data: dict[str, Any] = {
        "columns": columns,
        "names": [_texts(section, name) for name in names],
        "values": [{"name": name, "strict": name in of.strict} for name in of.values],
        "of": [own["thing"].to_list(), own["cell"].to_list()],
        "sums": [own[name].to_list() for name in of.values],
        "whole": {**{name: _per_cell(of, name, cells) for name in of.values}, **of.whole},
        "count": section.frame.height,
        "things": total,
    }
    return data if phase is None else {**data, "phases": section.frame[phase].to_list()}


def column_data(field: Field) -> dict[str, Any]:
    """What a heading is."""
    summed = field.column in ADDITIVE and is_right(field)
    return {"title": field.title, "kind": field.kind, "right": is_right(field), "summed": summed, "spare": field.spare}


def texts_of(field: Field, values: Sequence[str | None]) -> list[Any]:
    """Texts as they are shown: one, or a short one and the whole."""
    whole = {value: _plain(value) for value in dict.fromkeys(values) if value is not None}
    short: Mapping[str, str] = {}
    if field.kind in NAMES:
        labels = label_kernels(whole) if field.kind == "kernel" else whole
        short = cut_names(labels, _NAME)
    return [
        "-" if value is None else [short[value], whole[value]] if short.get(value, whole[value]) != whole[value]
        else whole[value]
        for value in values
    ]  # fmt: skip


def _columns(of: Summed, section: Section) -> tuple[list[Field], list[dict[str, Any]]]:
    """The columns that have texts, and all that are shown: names first, as on the page.

    Left out is what no thing has, and what doesn't come from sums: it was found of all traces.
    """
    names: list[Field] = []
    columns: list[dict[str, Any]] = []
    fields = [*(each for each in section.fields if each.kind in NAMES), *section.fields]
    for each in dict.fromkeys(fields):
        if (how := of.shown.get(each.column)) is not None:
            shown = {"value": how.value, "over": how.over, "own": how.own, "per": how.per, "factor": how.factor}
            columns.append({**column_data(each), **shown})
        elif (not is_right(each) or each.column in of.keys) and section.frame[each.column].count():
            columns.append({**column_data(each), "text": len(names)})
            names.append(each)
    return names, columns


def _texts(section: Section, field: Field) -> list[Any]:
    return texts_of(field, section.frame[field.column].cast(pl.String).to_list())


def _per_cell(of: Summed, name: str, cells: Cells) -> list[float | None]:
    """The sum of all things of each cell; None where it isn't known."""
    strict = pl.col(name).null_count() > 0 if name in of.strict else pl.lit(value=False)
    sums = of.rows.group_by("cell").agg(pl.when(~strict).then(pl.col(name).sum()).alias(name))
    found = dict(sums.iter_rows())
    return [found.get(cell, 0) for cell in range(cells.count)]


def _plain(text: str) -> str:
    return without_surrogates(clean(text[:_LONGEST])) + ("…" if len(text) > _LONGEST else "")
