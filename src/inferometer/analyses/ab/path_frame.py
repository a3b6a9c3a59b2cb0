"""All paths of an A/B with every number, one row each: typed, in whole nanoseconds."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from inferometer.analyses.ab.rows import PathRow

_PATH = {"path": pl.String, "name": pl.String, "depth": pl.Int64, "operator": pl.String}
_OWN = {
    "backend": pl.String,
    "calls": pl.Float64,
    "host_ns": pl.Int64,
    "span_ns": pl.Int64,
    "device_busy_ns": pl.Int64,
    "gap_ns": pl.Int64,
    "kernels": pl.Int64,
    "allocated_bytes": pl.Int64,
    "time_ns": pl.Int64,
    "self_ns": pl.Int64,
    "steady_ns": pl.Int64,
    "steady_self_ns": pl.Int64,
    "low_ns": pl.Int64,
    "high_ns": pl.Int64,
    "median_call_ns": pl.Int64,
    "p95_call_ns": pl.Int64,
    "share": pl.Float64,
    "layers": pl.Int64,
    "min_layer": pl.String,
    "min_layer_ns": pl.Int64,
    "max_layer": pl.String,
    "max_layer_ns": pl.Int64,
}
_VERSUS = {
    "difference_ns": pl.Int64,
    "self_difference_ns": pl.Int64,
    "ratio": pl.Float64,
    "ratio_low": pl.Float64,
    "ratio_high": pl.Float64,
    "p": pl.Float64,
    "control_ratio": pl.Float64,
    "control_p": pl.Float64,
    "verdict": pl.String,
    "max_error": pl.Float64,
    "normalised_error": pl.Float64,
    "failure": pl.String,
}


def path_frame(rows: Sequence[PathRow], arms: Sequence[str]) -> pl.DataFrame:
    """One row per path; columns of an arm end in its number: `time_ns_0` is the base's, compared with nothing."""
    schema: dict[str, Any] = dict(_PATH)
    for a in range(len(arms)):
        columns = _OWN if a == 0 else _OWN | _VERSUS
        schema |= {f"{name}_{a}": dtype for name, dtype in columns.items()}
    times = [name for name, dtype in schema.items() if "_ns_" in name and dtype == pl.Int64]
    exact = schema | dict.fromkeys(times, pl.Float64)
    return pl.DataFrame([_row(row, arms) for row in rows], schema=exact).with_columns(
        pl.col(times).round().cast(pl.Int64)
    )


def _row(row: PathRow, arms: Sequence[str]) -> dict[str, Any]:
    cells: dict[str, Any] = {"path": row.path, "name": row.name, "depth": row.depth, "operator": row.operator}
    for a, arm in enumerate(arms):
        own, versus = row.arms.get(arm), row.versus.get(arm)
        if own is not None:
            low, high = own.interval_ns or (None, None)
            layers = own.layers
            values = own.as_json() | {
                "low_ns": low,
                "high_ns": high,
                "layers": None if layers is None else layers.count,
                "min_layer": None if layers is None else layers.min_layer,
                "min_layer_ns": None if layers is None else layers.min_ns,
                "max_layer": None if layers is None else layers.max_layer,
                "max_layer_ns": None if layers is None else layers.max_ns,
            }
            cells |= {f"{name}_{a}": value for name, value in values.items()}
        if versus is not None:
            low, high = versus.interval or (None, None)
            values = versus.as_json() | {"ratio_low": low, "ratio_high": high}
            if versus.control is not None:
                values |= {"control_ratio": versus.control.ratio, "control_p": versus.control.p}
            values["verdict"] = versus.verdict or versus.absent
            cells |= {f"{name}_{a}": value for name, value in values.items()}
    return cells
