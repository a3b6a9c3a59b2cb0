"""What collectives exchange by the ranges that PyTorch opens around their calls (`nccl:all_reduce`).

Such a range has the sizes and types of the tensors that go in, in files before 2024 too: there, an op's list of tensors
has no sizes. How many ranks take part, and what comes out of other collectives than an all-reduce, doesn't stand there.
"""

from typing import Final

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.host_side import THREAD, lanes_of
from inferometer.analyses.nesting import Numbers, find_innermost
from inferometer.analyses.numbering import number_by_first
from inferometer.names.communication import read_collective
from inferometer.operators.framework.call import Unmodelled, read_call
from inferometer.operators.framework.exchange import Exchange
from inferometer.trace.trace import Trace

NEEDED: Final = {"spans": ("span", *THREAD, "start_ns", "dur_ns", "input_dims", "input_dtypes")}
_PREFIX: Final = "nccl:"


def named_exchanges(trace: Trace, launches: pl.DataFrame) -> tuple[Numbers, tuple[Exchange, ...]]:
    """What the innermost such range around the call of each launch says.

    Args:
        trace: Needs the columns `NEEDED`; without the table, there are none.
        launches: `rank`, `process`, `thread`, `called_ns` and `how`.

    Returns:
        Of each launch a place in what follows, -1 where no such range says it.
        The different exchanges.
    """
    found = np.full(launches.height, -1, dtype=np.int64)
    is_called = pl.col("called_ns").is_not_null() & (pl.col("how").cast(pl.String) == "call")
    rows = launches.select(is_called)[:, 0].arg_true().to_numpy()
    if "spans" not in trace.scope or not len(rows):
        return found, ()
    is_named = pl.col("span").cast(pl.String).str.starts_with(_PREFIX) & pl.col("input_dims").is_not_null()
    ranges = trace.spans.filter(is_named, pl.col("dur_ns") > 0).select(NEEDED["spans"]).collect()
    threads = ranges.select(THREAD).unique().sort(THREAD).with_row_index("lane")
    start, dur = ranges["start_ns"].to_numpy(), ranges["dur_ns"].to_numpy()
    called = launches.select(*THREAD, "called_ns")[rows]
    lane, times = lanes_of(called, threads), called["called_ns"].to_numpy()
    around = find_innermost(lanes_of(ranges, threads), start, start + dur, lane, times)
    number, distinct = _read(ranges.select("span", "input_dims", "input_dtypes"))
    found[rows] = np.append(number, -1)[around]
    return found, distinct


def _read(ranges: pl.DataFrame) -> tuple[Numbers, tuple[Exchange, ...]]:
    """What each of these ranges says, as a place in the different exchanges; -1 of one that says none."""
    number, first = number_by_first(ranges)
    read = [_exchange(*texts) for texts in ranges[first].iter_rows()]
    places = {exchange: place for place, exchange in enumerate(dict.fromkeys(each for each in read if each))}
    return np.array([-1 if each is None else places[each] for each in read], dtype=np.int64)[number], tuple(places)


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
