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
_COMPARED: Final = (
    Field("part", "Part", "text"),
    Field("base_ns", "Base", "ns"),
    Field("base_share", "Base share", "share"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("candidate_share", "Candidate share", "share"),
    Field("points", "Change, points", "number"),
)


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
        pl.col("place").filter(pl.col("share") == pl.col("share").max()).first().alias("most_of"),
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


def compared_budget(base: pl.DataFrame, candidate: pl.DataFrame) -> Section:
    """Two budgets side by side, the largest change of a share first; parts that are small in both are one line.

    Shares are of each run's own windows, so they can be set against each other though the windows differ.
    """
    windows_ns = [int(run["time_ns"].sum()) for run in (base, candidate)]
    sums = [_by_part(run, side) for run, side in ((base, "base"), (candidate, "candidate"))]
    parts = (
        sums[0].join(sums[1], on="part", how="full", coalesce=True).with_columns(pl.all().exclude("part").fill_null(0))
    )
    least_ns = [_SHOWN_SHARE * window_ns for window_ns in windows_ns]
    is_large = (pl.col("base_ns") >= least_ns[0]) | (pl.col("candidate_ns") >= least_ns[1])
    small = parts.filter(~is_large)
    if small.height > 1:
        line = small.select(pl.lit(f"{small.height} smaller parts").alias("part"), pl.all().exclude("part").sum())
        parts = pl.concat([parts.filter(is_large), line.select(parts.columns)])
    shares = [
        (pl.col(f"{side}_ns") / window_ns if window_ns else pl.lit(None, dtype=pl.Float64)).alias(f"{side}_share")
        for side, window_ns in zip(("base", "candidate"), windows_ns, strict=True)
    ]
    points = ((pl.col("candidate_share") - pl.col("base_share")) * 100).round(1).alias("points")
    frame = parts.with_columns(shares).with_columns(points)
    most = pl.max_horizontal("base_share", "candidate_share")
    frame = frame.sort(pl.col("points").abs(), most, "part", descending=[True, True, False], nulls_last=True)
    windows = " and ".join(map(format_duration, windows_ns))
    note = f"Shares are of each run's own windows, {windows}, which the rows add up to. Changes are percentage points."
    return Section(TITLE, _COMPARED, frame, (note,))


def _by_part(budget: pl.DataFrame, side: str) -> pl.DataFrame:
    names = [describe_part(*kind) for kind in budget.select("sort", "name").iter_rows()]
    parts = budget.with_columns(pl.Series("part", names, dtype=pl.String))
    return parts.group_by("part").agg(pl.col("time_ns").sum().alias(f"{side}_ns"))
