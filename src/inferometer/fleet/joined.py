"""The joined tables: those of all digests, with the hash of the content first, and what the paths say of the traces."""

from typing import Final

import msgspec
import polars as pl

from inferometer.fleet.sources import LABELS
from inferometer.fleet.tables import ABOUT, DIGEST, TRACE
from inferometer.trace.tables import Column, Table

_FIRST: Final = Column(TRACE, pl.String(), "SHA-256 of its content.")
_BY_PATH: Final = (
    Column("path", pl.String(), "Where it is: the first of its paths."),
    Column("paths", pl.Int64(), "How many paths have this content."),
    Column("deployment", pl.String(), "Which deployment it is of.", "no label says"),
)
TRACES: Final = Table(ABOUT.name, ABOUT.row, [_FIRST, *_BY_PATH, *ABOUT.columns])
JOINED: Final = {
    name: TRACES if name == ABOUT.name else Table(name, table.row, [_FIRST, *table.columns])
    for name, table in DIGEST.items()
}
"""By name, the tables of a fleet that digests make up."""
FILE: Final = "file"
DIGESTS: Final = Table(
    "digests",
    "One digest that is joined: what it says of the trace, before the labels of paths go before that.",
    [_FIRST, Column(FILE, pl.String(), "Its file's name."), *ABOUT.columns],
)
"""No question is asked of it: the next joining starts from it."""


def join_sources(rows: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Rows of `traces` with the first of their paths, its labels, and the number of paths."""
    first = (
        sources.filter(pl.col("reason").is_null())
        .sort("path")
        .group_by(TRACE, maintain_order=True)
        .agg(pl.col("path", "labels").first(), pl.len().cast(pl.Int64).alias("paths"))
    )
    return rows.join(first, on=TRACE, how="left", maintain_order="left")


def with_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `traces` with the labels of their paths, which count more than what the file says."""
    decoded = [msgspec.json.decode(text, type=dict[str, str]) for text in rows["labels"]]
    labels = {name: pl.Series([each.get(name) for each in decoded], dtype=pl.String) for name in LABELS}
    known = rows.with_columns(pl.lit(None, dtype=pl.String).alias("deployment"))
    return known.with_columns(pl.coalesce(labels[name], pl.col(name)).alias(name) for name in LABELS).drop("labels")
