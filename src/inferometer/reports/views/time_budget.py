"""The device-time budget as a table."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from inferometer.analyses.timeline.budget import describe_part, part_key
from inferometer.analyses.timeline.work import PLACE, place_name
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration

TITLE: Final = "Where the device's time went"
_SHOWN_SHARE: Final = 0.005  # of the windows: smaller parts are one line of the table


def budget_section(budget: pl.DataFrame, findings: Mapping[str, str] | None = None) -> Section:
    """The budget as a table, the most time first: of one device, or summed over all with the largest share of one.

    Parts below half a percent are one line, so the rows still add up to the window.

    Args:
        budget: Of `time_budget`.
        findings: By `part_key`, which findings speak of the part; None: no column for that.
    """
    numbers = findings or {}
    places, window_ns = budget.select(PLACE).unique().height, int(budget["time_ns"].sum())
    named = [place_name(rank, device) for rank, device in budget.select(PLACE).iter_rows()]
    kinds = budget.select("sort", "name").rows()
    rows = budget.with_columns(
        pl.Series("part", [describe_part(*kind) for kind in kinds], dtype=pl.String),
        pl.Series("place", named, dtype=pl.String),
        pl.Series("findings", [numbers.get(part_key(*kind)) for kind in kinds], dtype=pl.String),
    )
    parts = rows.group_by("part", "findings").agg(
        pl.col("time_ns", "count").sum(),
        pl.col("share").max().alias("most"),
        pl.col("place").get(pl.col("share").arg_max(), null_on_oob=True).alias("most_of"),
    )
    is_large = pl.col("time_ns") >= _SHOWN_SHARE * window_ns
    small = parts.filter(~is_large)
    shown = parts.filter(is_large).sort("time_ns", "part", descending=[True, False])
    if small.height > 1:
        line = {"part": f"{small.height} smaller parts", "time_ns": small["time_ns"].sum(), "count": None}
        shown = pl.concat([shown, pl.DataFrame([line], schema_overrides=parts.schema)], how="diagonal")
    else:
        shown = pl.concat([shown, small])
    share = pl.col("time_ns") / window_ns if window_ns else pl.lit(None, dtype=pl.Float64)
    several = (Field("most", "Most", "share", 2), Field("most_of", "On", "text", 3)) if places > 1 else ()
    fields = (
        *(Field("part", "Part", "text"), Field("time_ns", "Time", "ns"), Field("share", "Share", "share")),
        *several,
        Field("count", "Launches or gaps", "count", 1),
        *((Field("findings", "Finding", "text"),) if numbers else ()),
    )
    total = f"The rows add up to {format_duration(window_ns)}: "
    total += "the device's window." if places == 1 else f"the windows of {places:,} devices, summed."
    return Section(TITLE, fields, shown.with_columns(share.alias("share")), (total,) if places else ())
