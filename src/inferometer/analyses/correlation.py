"""Ties device work to the host calls that queued it.

The key is (rank, process, correlation id): ids are unique within one process's capture only. Ranks and processes may
be unknown, which counts as a value of its own. A graph launch is one call with many launches. Work without a call was
queued before the profiling window, or its call was not recorded.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

_OWNER = ["rank", "process"]
CALL_KEY = [*_OWNER, "correlation_id"]


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


def find_calls(launches: pl.DataFrame, calls: pl.DataFrame) -> NDArray[np.int64]:
    """The row of each launch's call, -1 where there is none; the same answer as `tie_launches`, for frames at hand.

    Ids and times grow together, nearly, and sorting what is nearly sorted takes about half the time of the join.

    Args:
        launches: Has `rank`, `process` and `correlation_id`.
        calls: Has the same, in order of time: of several calls with one key, the first is meant.
    """
    found = np.full(launches.height, -1, dtype=np.int64)
    by_owner = launches.with_row_index("row").drop_nulls("correlation_id").partition_by(_OWNER, as_dict=True)
    owners = calls.with_row_index("row").drop_nulls("correlation_id").partition_by(_OWNER, as_dict=True)
    for owner, own in by_owner.items():
        if owner not in owners:
            continue
        ids, rows = (owners[owner][name].to_numpy() for name in ("correlation_id", "row"))
        order = np.argsort(ids, kind="stable")
        ids, wanted = ids[order], own["correlation_id"].to_numpy()
        at = np.searchsorted(ids, wanted)
        hit = np.flatnonzero(at < len(ids))
        hit = hit[ids[at[hit]] == wanted[hit]]
        found[own["row"].to_numpy()[hit]] = rows[order[at[hit]]]
    return found
