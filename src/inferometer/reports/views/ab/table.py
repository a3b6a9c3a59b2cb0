"""All paths of an A/B with every number, one row each; for spreadsheets and notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from inferometer.analyses.ab.comparison import PathComparison
from inferometer.reports.views.layout import Field, Kind, Section, frame_of


def every_path(found: PathComparison) -> Section:
    """All paths with exact numbers; for spreadsheets."""
    fields = [
        Field("path", "Path", "text"),
        Field("name", "Name", "text"),
        Field("depth", "Depth", "count"),
        Field("operator", "Operator", "text"),
    ]
    whole: tuple[tuple[str, str, Kind], ...] = (
        ("backend", "Backend", "text"), ("calls", "Calls", "number"), ("host_ns", "Host", "ns"),
        ("span_ns", "Span", "ns"), ("device_busy_ns", "Device Busy", "ns"), ("gap_ns", "Gaps", "ns"),
        ("kernels", "Kernels", "count"), ("allocated_bytes", "Allocated", "bytes"), ("time_ns", "Compared", "ns"),
        ("self_ns", "Self", "ns"), ("steady_ns", "Steady", "ns"),
        ("steady_self_ns", "Steady Self", "ns"), ("low_ns", "Low", "ns"), ("high_ns", "High", "ns"),
        ("median_call_ns", "Median Call", "ns"), ("p95_call_ns", "P95 Call", "ns"), ("share", "Share", "share"),
        ("layers", "Layers", "count"), ("min_layer", "Shortest Layer", "text"), ("min_layer_ns", "Shortest", "ns"),
        ("max_layer", "Longest Layer", "text"), ("max_layer_ns", "Longest", "ns"),
    )  # fmt: skip
    held: tuple[tuple[str, str, Kind], ...] = (
        ("difference_ns", "Difference", "ns"), ("self_difference_ns", "Self Difference", "ns"),
        ("ratio", "Ratio", "ratio"), ("ratio_low", "Ratio Low", "ratio"), ("ratio_high", "Ratio High", "ratio"),
        ("p", "p", "number"), ("verdict", "Verdict", "text"), ("max_error", "Max Error", "number"),
        ("normalised_error", "Normalised Error", "number"), ("failure", "Wrong", "text"),
    )  # fmt: skip
    for a, arm in enumerate(found.arms):
        columns = whole if a == 0 else whole + held
        fields += [Field(f"{column}_{a}", f"{arm}: {title}", kind) for column, title, kind in columns]
    return Section("Call paths", fields, found.to_polars())


def frame_of_paths(rows: Sequence[Mapping[str, Any]], fields: Sequence[Field]) -> pl.DataFrame:
    """Typed by the kind of each field: times are whole nanoseconds here."""
    times = [field.column for field in fields if field.kind == "ns"]
    return frame_of(rows, fields).with_columns(pl.col(times).round().cast(pl.Int64))
