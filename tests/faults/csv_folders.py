"""A synthetic pair as LatencyPrism writes one: folders `normal` and `abnormal` with their two CSV files.

Units are those of the published files: times in µs, shares in percent, `mu_pct` = 100 x value / norm (norm 100 for
usage, rate, util and occupancy, else 1; the CPU clock, the GPU memory and the process's CPU usage are percent of what
the machine has). Times of day are whole µs here. A function without a metric in a cycle has one row with `N/A`.
"""

from pathlib import Path

import polars as pl

from inferometer import Trace

_KEYS = ["cycle", "process", "function", "device"]
_NORM_100 = "usage|rate|util|occupancy|cpu_frequency|gpu_mem_used"


def write_pair(pair: tuple[Trace, Trace], folder: Path) -> None:
    """Write `pair` below `folder`. A run without functions or without counters lacks that file.

    Raises:
        ValueError: Samples name their device, which these files can't hold.
    """
    for trace, name in zip(pair, ("normal", "abnormal"), strict=True):
        run = folder / name
        run.mkdir(parents=True)
        perf, counters = perf_rows(trace), counter_rows(trace)
        if perf.height:
            perf.write_csv(run / "perf_data.csv", line_terminator="\r\n")
        if counters.height:
            counters.write_csv(run / "counters_data.csv")


def perf_rows(trace: Trace) -> pl.DataFrame:
    """perf_data.csv of a trace."""
    times, metrics, steps = (trace.tables[name].collect() for name in ("function_times", "function_metrics", "steps"))
    starts = steps.select("process", cycle="step", start="start_ns")
    rows = times.join(metrics, on=_KEYS, how="left", maintain_order="left").join(starts, on=["cycle", "process"])
    percent = pl.when(pl.col("metric").str.contains(_NORM_100)).then(1.0).otherwise(100.0)
    host = pl.when(pl.col("device") == "host").then(pl.lit("Host"))
    return rows.select(
        "cycle",
        pid="process",
        hostname=pl.lit(None, pl.String),
        beta_pct=100 * pl.col("beta"),
        function_name="function",
        metric_name=pl.col("metric").fill_null("N/A"),
        device=host.otherwise(pl.col("device").str.replace("gpu:", "GPU ")),
        func_type="class",
        mu_pct=pl.col("mu") * percent,
        sigma_pct=pl.col("sigma") * percent,
        duration=pl.col("dur_ns") / 1000,
        interpolation_status=pl.col("interpolation").replace({"some": "*", "all": "**"}).fill_null(" "),
        anchor_name="anchor",
        anchor_dur_us=pl.col("cycle_dur_ns") / 1000,
        cycle_start_ts=pl.col("start") // 1000,
        instances_count="calls",
        simple_name=pl.col("function").str.extract(r"^(?:void )?([^(<]*)"),
    )


def counter_rows(trace: Trace) -> pl.DataFrame:
    """counters_data.csv of a trace: by name, then time."""
    counters = trace.counters.collect()
    if counters["device"].null_count() < counters.height:
        raise ValueError("samples name their device; these files can't hold that")
    suffix = pl.when(pl.col("process").is_null()).then(pl.lit("")).otherwise("_" + pl.col("process").cast(pl.String))
    rows = counters.select(
        counter_name=pl.col("metric") + suffix,
        timestamp=pl.col("time_ns") // 1000,
        value="value",
        hostname=pl.lit(None, pl.String),
    )
    return rows.sort("counter_name", "timestamp", maintain_order=True)
