"""What the names of kernels say: short names first."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.tables.names import NameTable
from inferometer.names.short_names import readable_type
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS = (
    Field("short_name", "Short name", "name"),
    Field("library", "Library", "text"),
    Field("family", "Family", "text"),
    Field("dtype", "Type", "text", spare=2),
    Field("tile", "Tile", "text", spare=3),
    Field("stages", "Stages", "number", spare=6),
    Field("split_k", "Split K", "text", spare=5),
    Field("arch", "Arch", "text", spare=4),
    Field("layer", "Layer", "number", spare=7),
    Field("role", "Role", "text", spare=7),
    Field("evidence", "Evidence", "text", spare=8),
    Field("name", "Name", "name", spare=9),
)


def _sections(table: NameTable) -> Sequence[Section]:
    frame = table.to_polars()
    types = [dtype and readable_type(dtype) for dtype in frame["dtype"]]
    return [Section("Kernel names", _FIELDS, frame.with_columns(pl.Series("dtype", types, dtype=pl.String)))]


def _exact(table: NameTable) -> Section:
    return Section("Kernel names", _FIELDS, table.to_polars())


VIEW = View(schema=Schema("names", 1), sections=_sections, table=_exact)
