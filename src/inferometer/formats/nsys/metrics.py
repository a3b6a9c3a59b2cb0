"""Samples of device counters, and the profiler's own messages."""

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.trace.builder import TraceBuilder

SAMPLES = "GPU_METRICS"
MESSAGES = "DIAGNOSTIC_EVENT"
_DEVICE_BITS = 0xFF  # the lowest byte of a `typeId` is the device's number
_LEVELS = {1: "info", 2: "warning", 3: "error", 4: "fatal"}  # where ENUM_DIAGNOSTIC_SEVERITY_LEVEL is missing


def read_counters(export: Export, out: TraceBuilder) -> None:
    """`GPU_METRICS` into `counters`; a metric's unit stands in its name: `SMs Active [Throughput %]`."""
    numbers = ["timestamp", "typeId", "metricId", "value"]
    if not set(numbers) <= export.columns(SAMPLES):
        return
    names = read_all(export, "TARGET_INFO_GPU_METRICS", ["typeId", "metricId"], ["metricName"])
    known = names.drop_nulls().unique(["typeId", "metricId"], keep="first")
    for batch in export.batches(SAMPLES, numbers):
        out.losses.see(SAMPLES, batch.height)
        kept = batch.filter(pl.col("timestamp").is_not_null())
        out.losses.count("without_timestamp", batch.height - kept.height, category=SAMPLES)
        kept = kept.join(known, on=["typeId", "metricId"], how="left", maintain_order="left")
        numbered = pl.concat_str(pl.lit("metric "), pl.col("metricId").cast(pl.String).fill_null("null"))
        metric = pl.coalesce("metricName", numbered)
        columns = kept.select(
            metric.alias("metric"),
            pl.concat_str(pl.lit("gpu:"), pl.col("typeId") & _DEVICE_BITS).alias("device"),
            pl.col("timestamp").alias("time_ns"),
            pl.col("value").cast(pl.Float64),
            metric.str.extract(r"\[([^\]]*)\]$").alias("unit"),
        )
        out.add("counters", kept.height, columns.to_dict())


def read_messages(export: Export, out: TraceBuilder) -> None:
    """`DIAGNOSTIC_EVENT` into `log`: what the profiler warned about, such as lost events."""
    rows = read_all(export, MESSAGES, ["timestamp", "severity"], ["text"])
    if not rows.height:
        return
    out.losses.see(MESSAGES, rows.height)
    labels = read_all(export, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", ["id"], ["label"])
    levels = _LEVELS | dict(labels.drop_nulls().rows())
    out.add(
        "log",
        rows.height,
        {
            "line": pl.int_range(1, rows.height + 1, eager=True),
            "time_ns": rows["timestamp"],
            "level": rows["severity"].replace_strict(levels, default=None, return_dtype=pl.String),
            "source": "Nsight Systems",
            "kind": "diagnostic",
            "text": rows["text"].fill_null(""),
        },
    )
