"""Ties device work to the host calls that queued it.

The key is (rank, process, correlation id): ids are unique within one process's capture only. Ranks and processes may
be unknown, which counts as a value of its own. A graph launch is one call with many launches. Work without a call was
queued before the profiling window, or its call was not recorded.
"""

import polars as pl

CALL_KEY = ["rank", "process", "correlation_id"]


def tie_launches(launches: pl.LazyFrame, calls: pl.LazyFrame) -> pl.LazyFrame:
    """`launches` with the row number of each one's call, `call` (null where there is none).

    Args:
        launches: Has `rank`, `process` and `correlation_id`. The order of rows is not kept.
        calls: Has the same, `start_ns`, and `call`, its row number. Of several calls with one key, the first is meant.
    """
    first = (
        calls.filter(pl.col("correlation_id").is_not_null())
        .sort("start_ns", "call")
        .unique(CALL_KEY, keep="first", maintain_order=True)
        .select(*CALL_KEY, "call")
    )
    return launches.join(first, on=CALL_KEY, how="left", nulls_equal=True)
