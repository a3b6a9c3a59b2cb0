"""Sums of kernel time that an engine printed step by step, and whose steps they are.

A log numbers its runs from 0: the section of a row of `totals` is the `process` of its step, which is null in a log of
one run. Where logs are ranks of one trace, sections go on where those of the rank before ended; here they count anew
within each rank.
"""

import polars as pl

from inferometer.trace.trace import Trace


def has_printed_steps(trace: Trace) -> bool:
    """Whether any sum in the trace is of a step."""
    return "totals" in trace.scope and bool(trace.totals.select(pl.col("step").count()).collect().item())


def printed_steps(trace: Trace) -> pl.LazyFrame:
    """Rows of `totals` of a step that have a time, with `log_run`: the number of their run within its log."""
    rows = trace.totals.filter(pl.col("step").is_not_null())
    first = pl.when(pl.col("rank").is_null()).then(0).otherwise(pl.col("section").min().over("rank"))
    return rows.with_columns((pl.col("section") - first).alias("log_run")).filter(pl.col("total_ns").is_not_null())


def printed_of_run(trace: Trace, rank: int | None, process: int | None) -> pl.LazyFrame:
    """Those rows of the run whose steps have this `rank` and `process`."""
    return printed_steps(trace).filter(pl.col("rank").eq_missing(rank), pl.col("log_run") == (process or 0))
