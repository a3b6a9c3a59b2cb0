"""Tests of a benchmark as their source has them: how long a repetition takes, how much that varies, and its rate."""

from typing import Final

import polars as pl

from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

COLUMNS: Final = (
    *("test", "phase", "batch", "prefill_tokens", "decode_tokens", "context_len", "repetitions"),
    *("mean_ns", "stddev_ns", "tokens_per_s", "tokens_per_s_stddev"),
)


def tests_of(trace: Trace) -> pl.DataFrame:
    """One row per test, in the order of the file, with `COLUMNS`; none where `tests` wasn't read."""
    if "tests" not in trace.scope:
        return TABLES["tests"].empty.select(COLUMNS).collect()
    return trace.tests.sort("order", maintain_order=True).select(COLUMNS).collect()
