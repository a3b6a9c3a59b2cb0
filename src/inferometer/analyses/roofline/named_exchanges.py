"""What collectives exchange by the ranges that PyTorch opens around their calls (`nccl:all_reduce`).

Such a range has the sizes and types of the tensors that go in, in files before 2024 too: there, an op's list of tensors
has no sizes. How many ranks take part, and what comes out of other collectives than an all-reduce, doesn't stand there.
"""

from typing import Final

import polars as pl

from inferometer.analyses.launched_by.host_side import THREAD, lanes_of
from inferometer.analyses.nesting import find_innermost
from inferometer.names.communication import read_collective
from inferometer.operators.framework.call import Unmodelled, read_call
from inferometer.operators.framework.exchange import Exchange
from inferometer.trace.trace import Trace

NEEDED: Final = {"spans": ("span", *THREAD, "start_ns", "dur_ns", "input_dims", "input_dtypes")}
_PREFIX: Final = "nccl:"


def named_exchanges(trace: Trace, launches: pl.DataFrame) -> dict[int, Exchange]:
    """By `at` of launches: what the innermost such range around each one's call says.

    Args:
        trace: Needs the columns `NEEDED`; without the table, there are none.
        launches: `at`, `rank`, `process`, `thread`, `called_ns` and `how`.
    """
    called = launches.filter(pl.col("called_ns").is_not_null(), pl.col("how").cast(pl.String) == "call")
    if "spans" not in trace.scope or not called.height:
        return {}
    is_named = pl.col("span").cast(pl.String).str.starts_with(_PREFIX) & pl.col("input_dims").is_not_null()
    ranges = trace.spans.filter(is_named, pl.col("dur_ns") > 0).select(NEEDED["spans"]).collect()
    threads = ranges.select(THREAD).unique().sort(THREAD).with_row_index("lane")
    start, dur = ranges["start_ns"].to_numpy(), ranges["dur_ns"].to_numpy()
    times = called["called_ns"].to_numpy()
    around = find_innermost(lanes_of(ranges, threads), start, start + dur, lanes_of(called, threads), times)
    exchanges = [_exchange(*row) for row in ranges.select("span", "input_dims", "input_dtypes").iter_rows()]
    found = zip(called["at"].to_list(), around.tolist(), strict=True)
    return {at: exchange for at, place in found if place >= 0 and (exchange := exchanges[place]) is not None}


def _exchange(name: str, dims: str, dtypes: str | None) -> Exchange | None:
    """None where the name is no collective's, or the sizes can't be read."""
    kind = read_collective(name.removeprefix(_PREFIX))
    try:
        given = read_call(name, dims, dtypes, None, None).all_tensors
        size = sum(tensor.numel * tensor.item_bytes for tensor in given)
    except Unmodelled:
        return None
    if kind == "other" or not given:
        return None
    return Exchange(kind, size, size if kind == "all_reduce" else None, None)
