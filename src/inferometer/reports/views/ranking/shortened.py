"""Tables as a terminal shows them: the beginning of a long one, with words for what is none."""

import polars as pl
from msgspec.structs import replace

from inferometer.reports.views.layout import Section
from inferometer.units import format_share

MOST_SHOWN = 40
"""Rows of a table in a terminal; spreadsheets, JSON and the page have more."""


def shares_as_text(section: Section, column: str, instead: str | None) -> Section:
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
