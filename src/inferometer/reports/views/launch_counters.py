"""What was counted of each launch: how much of the device it used, and what its warps waited for."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.analyses.counters.launches import LaunchCounters
from inferometer.analyses.recording_advice import is_of_rocprof
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.measured_counters import say_above_all, shares_as_text
from inferometer.reports.views.view import View
from inferometer.units import format_count

_FIELDS: Final = (
    Field("launch", "Launch", "count", spare=1),
    Field("grid_text", "Grid", "text", spare=8),
    Field("block_text", "Block", "text", spare=9),
    Field("alone_ns", "Time Alone", "ns"),
    Field("compute_share", "Compute", "share", spare=3),
    Field("memory_share", "Memory", "share", spare=3),
    Field("dram", "DRAM", "bytes"),
    Field("dram_share", "DRAM Busy", "share", spare=6),
    Field("l1_hit_rate", "L1 Hits", "share", spare=7),
    Field("l2_hit_rate", "L2 Hits", "share", spare=2),
    Field("occupancy", "Occupancy", "share"),
    Field("theoretical_occupancy", "Of Possible", "share", spare=4),
    Field("registers", "Registers", "count", spare=5),
    Field("shared_bytes", "Shared", "bytes", spare=5),
    Field("pipe_text", "Busiest Pipe", "text", spare=4),
    Field("stall_text", "Warps Spend Cycles On", "text"),
    Field("kernel", "Kernel", "kernel"),
)
_METRICS: Final = (
    Field("metric", "Counter", "text"),
    Field("total", "Total", "number"),
    Field("launches", "Launches", "count"),
    Field("mean", "Avg", "number", spare=1),
    Field("least", "Min", "number", spare=3),
    Field("most", "Max", "number", spare=2),
    Field("kernel", "Kernel", "kernel"),
)
_SHARES: Final = {field.column: field.title for field in _FIELDS if field.kind == "share"}
_ALWAYS: Final = frozenset({"launch", "kernel"})
_ALONE: Final = (
    "Each launch ran alone, as a rule with clocks locked and caches flushed: its time is never that of a run."
)
_SUMMED: Final = (
    "Counters are as rocprofv3 names them, summed over the instances of each (XCC, shader engine). What they mean "
    "stands in AMD's documentation; inferometer makes no shares of them."
)
_NO_REASONS: Final = (
    "No reasons of stalls were counted: record with ncu --set full, or --section WarpStateStats --section "
    "SourceCounters, and print --page raw."
)


def _size(size: Sequence[int] | None) -> str | None:
    return None if size is None else "x".join(map(str, size))


def _sections(found: LaunchCounters) -> Sequence[Section]:
    texts = [
        pl.Series("grid_text", map(_size, found.frame["grid"].to_list()), dtype=pl.String),
        pl.Series("block_text", map(_size, found.frame["block"].to_list()), dtype=pl.String),
        shares_as_text(found.frame["pipes"], "pipe", "pipe_text", most=1),
        shares_as_text(found.frame["reasons"], "reason", "stall_text"),
    ]
    frame = found.frame.with_columns(*texts, pl.col("dram_bytes").round().cast(pl.Int64).alias("dram"))
    fields = [field for field in _FIELDS if field.column in _ALWAYS or frame[field.column].count()]
    launches = Section("Launches that were counted", fields, frame)
    return [Section("Counters by kernel", _METRICS, found.metrics), launches] if found.metrics.height else [launches]


def _remarks(found: LaunchCounters) -> Iterator[str]:
    if found.frame.height < found.launches:
        yield f"{format_count(found.frame.height)} of {format_count(found.launches)} launches shown."
    if is_of_rocprof(found.format):
        yield _SUMMED
        return
    yield _ALONE
    yield from say_above_all(found.frame, _SHARES)
    if found.frame.height and not found.frame["reasons"].count():
        yield _NO_REASONS


VIEW = View(schema=Schema("counters", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
