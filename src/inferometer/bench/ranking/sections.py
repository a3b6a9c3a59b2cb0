"""A ranking for a terminal and Markdown: its tables in the order of reading, shortened, with words for what is none."""

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from inferometer.analyses.result import Section
from inferometer.bench.ranking.shape_figures import FUNCTIONAL_ONLY
from inferometer.bench.ranking.tables import operators_section, ranked_section, runs_section, shapes_section
from inferometer.units import format_share

if TYPE_CHECKING:
    from inferometer.bench.ranking.ranking import Ranking

MOST_SHOWN = 40
"""Rows of a table in a terminal; spreadsheets, JSON and the page have more."""


def ranking_facts(ranking: "Ranking") -> list[tuple[str, str]]:
    """What was put together."""
    contenders = {each.name for device in ranking.devices for each in device.contenders}
    results = sum(1 for device in ranking.devices for _ in device.results())
    return [
        ("Runs", f"{len(ranking.runs):,}"),
        ("Contenders", f"{len(contenders):,}"),
        ("Results", f"{results:,}"),
        ("Devices", ", ".join(device.title for device in ranking.devices) or "none"),
    ]


def ranking_sections(ranking: "Ranking") -> list[Section]:
    """Of each device its order and its operators; two runs' differences; shapes; runs. Long tables are shortened."""
    sections = []
    for device in ranking.devices:
        functional = FUNCTIONAL_ONLY if device.functional_only else None
        sections += [tell(ranked_section(device), "score", functional)]
        sections += [tell(operators_section(device), "sol_fraction", functional or "instead")]
    if ranking.differences is not None:
        sections += ranking.differences.sections()
    shapes = [tell(shapes_section(device), "sol_fraction", "instead") for device in ranking.devices]
    sections += [_wrong_first(join_shapes(section)) for section in shapes]
    return [shortened(section) for section in [*sections, runs_section(ranking)]]


def tell(section: Section, column: str, instead: str | None) -> Section:
    """Shares of a column as text, and where there is none, why: the text of another column, or these words for all."""
    if instead is None:
        return section
    frame = section.frame
    other = frame[instead].to_list() if instead in frame.columns else [instead] * frame.height
    texts = [
        (why or "-") if share is None else format_share(share)
        for share, why in zip(frame[column].to_list(), other, strict=True)
    ]
    fields = [replace(field, kind="number") if field.column == column else field for field in section.fields]
    return replace(section, fields=fields, frame=frame.with_columns(pl.Series(column, texts, dtype=pl.String)))


def join_shapes(section: Section) -> Section:
    """Operator and shape as one name, which can be cut where a terminal is narrow."""
    fields = [field for field in section.fields if field.column != "operator"]
    joined = pl.concat_str("operator", "shape", separator=" ").alias("shape")
    return replace(section, fields=fields, frame=section.frame.with_columns(joined))


def shortened(section: Section) -> Section:
    """At most `MOST_SHOWN` rows, with a note of how many more there are."""
    more = section.frame.height - MOST_SHOWN
    if more <= 0:
        return section
    words = f"{more:,} more rows: --json has all, -o makes a page."
    return replace(section, frame=section.frame.head(MOST_SHOWN), notes=(*section.notes, words))


def _wrong_first(section: Section) -> Section:
    return replace(section, frame=section.frame.sort("right", descending=True, maintain_order=True))
