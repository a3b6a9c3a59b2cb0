"""Launches in the order of their streams, each with the op and the host call behind it, and pairs of neighbours.

The op is the innermost framework op open on the launching thread when the host call began. A launch of a graph replay
has none: one call launched them all. Nor has one whose op launched more than `MOST_LAUNCHES`: such an op is a compiled
region or a whole step, no library call. Launches that are known by their calls alone are in the order of these, each
thread as a stream of its own.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.correlation import CALL_KEY, find_calls
from inferometer.analyses.nesting import find_innermost
from inferometer.analyses.numbering import number_rows, order_in_time
from inferometer.names import decode
from inferometer.names.apis import api_kind, is_of_cuda_or_hip

MOST_LAUNCHES = 32
"""Launches of one op; the largest in our traces, a fused backward of embeddings, has 17."""

NONE = -1
_THREAD = ["rank", "process", "thread"]
_LANE = ["rank", "device", "stream", "process", "thread"]  # the last two only without a stream: of the calls alone
_COLUMNS = ("kernel", *_LANE, "start_ns", "dur_ns", "correlation_id", "call", "in_graph", "is_captured")
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ordered:
    """Columns of launches by stream and start; row i and i + 1 are neighbours where `lane` is the same.

    `fold` numbers the short names in `folded`; `kernel` the names in `kernels`. `op`, `call` and `thread` are row
    numbers, -1 where unknown; `called_ns` and `returned_ns` are of the call. `in_graph`: of a graph launch, or of a
    call that is no function of CUDA or HIP and launched several; `is_captured`: known by its call alone, and took
    no time. `op_name` numbers the names in `ops`. `fold_of_kernel`: for each of `kernels`. `calls`: the thread,
    `called_ns` and `path_id` of each call.
    """

    kernels: list[str]
    folded: list[str]
    ops: list[str]
    lane: Numbers
    kernel: Numbers
    fold: Numbers
    start_ns: Numbers
    dur_ns: Numbers
    op: Numbers
    thread: Numbers
    called_ns: Numbers
    returned_ns: Numbers
    in_graph: NDArray[np.bool_]
    is_captured: NDArray[np.bool_]
    op_name: Numbers
    fold_of_kernel: Numbers
    call: Numbers
    calls: pl.DataFrame


def order_launches(launches: pl.LazyFrame, captured: pl.LazyFrame, calls: pl.LazyFrame, ops: pl.LazyFrame) -> Ordered:
    """The launches selected, with what is known of their calls and ops.

    Args:
        launches: As `Trace.compact` gives them, with the columns of `groups.NEEDED`. Whole graphs are left out.
        captured: Of `captured_launches`.
        calls: With the columns of `groups.NEEDED`.
        ops: With the columns of `groups.NEEDED`.
    """
    called = calls.select(*_THREAD, "start_ns", "dur_ns", "correlation_id", "path_id", "api").collect()
    inside = ops.select("op", *_THREAD, "start_ns", "dur_ns").collect()
    thread, _ = number_rows(pl.concat([called.select(_THREAD), inside.select(_THREAD)]))
    called, inside = (
        frame.with_columns(pl.Series("lane_of_host", own))
        for frame, own in zip((called, inside), np.split(thread, [called.height]), strict=True)
    )
    rows = pl.concat([_on_streams(launches, called), *_on_threads(captured, called)])
    lane, _ = number_rows(rows.select(_LANE))
    order = order_in_time(lane, rows["start_ns"].to_numpy())
    rows = rows.with_columns(pl.Series("lane", lane)).drop("device", "stream", "thread")
    return _with_ops(rows if order is None else rows[order], called, inside)


def _on_streams(launches: pl.LazyFrame, called: pl.DataFrame) -> pl.DataFrame:
    work = launches.filter(pl.col("kind").cast(pl.String) != "graph").select(
        *("kernel", "rank", "device", "stream", "process", "start_ns", "dur_ns", "correlation_id"),
        pl.col("graph_node_id").is_not_null().alias("in_graph"),
        pl.lit(value=False).alias("is_captured"),
    )
    nobody = (pl.lit(None, dtype=pl.Int64).alias(name) for name in ("process", "thread"))
    return _tied(work.collect(), called).with_columns(nobody).select(_COLUMNS)


def _on_threads(captured: pl.LazyFrame, called: pl.DataFrame) -> list[pl.DataFrame]:
    rows = captured.collect()
    if not rows.height:
        return []
    where = (
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in (("device", pl.Categorical()), ("stream", pl.Int64))
    )
    flags = (pl.lit(value).alias(name) for name, value in (("in_graph", False), ("is_captured", True)))
    return [_tied(rows, called).with_columns(*where, *flags).select(_COLUMNS)]


def _tied(launches: pl.DataFrame, called: pl.DataFrame) -> pl.DataFrame:
    return launches.with_columns(pl.Series("call", find_calls(launches, called)))


def _with_ops(tied: pl.DataFrame, called: pl.DataFrame, ops: pl.DataFrame) -> Ordered:
    kernels, kernel = _numbered(tied["kernel"])
    short = [decode(name).short_name for name in kernels]
    folded = sorted(set(short))
    place = {name: i for i, name in enumerate(folded)}
    call = tied["call"].to_numpy()
    in_graph = tied["in_graph"].to_numpy() | _of_graphs(call, called) | _shared_without_call(tied)
    of_call = [_gather(called[column], call) for column in ("lane_of_host", "start_ns", "dur_ns")]
    op = _innermost(ops, of_call[0], of_call[1], (call != NONE) & ~in_graph)
    op_names = ops["op"].unique().sort()
    op_name = ops["op"].replace_strict(op_names, pl.int_range(op_names.len(), eager=True), return_dtype=pl.Int64)
    fold = np.array([place[name] for name in short], dtype=np.int64)
    return Ordered(
        kernels=kernels,
        folded=folded,
        ops=op_names.to_list(),
        lane=tied["lane"].to_numpy(),
        kernel=kernel,
        fold=fold[kernel] if len(kernel) else kernel,
        start_ns=tied["start_ns"].to_numpy(),
        dur_ns=tied["dur_ns"].to_numpy(),
        op=op,
        thread=np.where(call != NONE, of_call[0], NONE),
        called_ns=of_call[1],
        returned_ns=of_call[1] + of_call[2],
        in_graph=in_graph,
        is_captured=tied["is_captured"].to_numpy(),
        op_name=_gather(op_name, op),
        fold_of_kernel=fold,
        call=call,
        calls=called.select(*_THREAD, pl.col("start_ns").alias("called_ns"), "path_id"),
    )


def _numbered(names: pl.Series) -> tuple[list[str], Numbers]:
    """The distinct names in order, and for each row the number of its own; the text of rows is never touched.

    By name, since codes differ with the columns and tables that were read, and ties between kernels go by number.
    """
    codes = names.to_physical().cast(pl.Int64)
    distinct = pl.DataFrame({"name": names, "code": codes}).unique("code").cast({"name": pl.String}).sort("name")
    known = distinct["code"].to_numpy()
    number = np.zeros(int(known.max(initial=0)) + 1, dtype=np.int64)
    number[known] = np.arange(distinct.height)
    return distinct["name"].to_list(), number[codes.to_numpy()]


def _of_graphs(call: Numbers, called: pl.DataFrame) -> NDArray[np.bool_]:
    """Which launches have a call that launches a graph, be it of one kernel, or share one that may do anything.

    Of CUDA and HIP only graph launches count: AMD's profilers file two kernels under one `hipStreamWaitEvent`.
    """
    counts = np.bincount(call[call != NONE], minlength=called.height + 1)
    names = called["api"].unique().drop_nulls().to_list()
    is_graph = _is_any(called["api"], [name for name in names if api_kind(name) == "graph"])
    is_open = ~_is_any(called["api"], [name for name in names if is_of_cuda_or_hip(name)])
    return np.asarray((call != NONE) & (is_graph[call] | (is_open[call] & (counts[call] > 1))))


def _is_any(apis: pl.Series, names: list[str]) -> NDArray[np.bool_]:
    """Which calls have one of the names; with a False after them, of no call."""
    return np.append(apis.is_in(names).fill_null(value=False).to_numpy(), False)


def _shared_without_call(tied: pl.DataFrame) -> NDArray[np.bool_]:
    """Which launches share the id of a call that is not in the file."""
    lost = (pl.col("call") == NONE) & pl.col("correlation_id").is_not_null()
    lost_rows = tied.select(*CALL_KEY, lost.alias("lost"))
    shared = np.zeros(tied.height, dtype=np.bool_)
    rows = lost_rows["lost"].arg_true()
    shared[rows.to_numpy()] = lost_rows[rows].select(pl.len().over(CALL_KEY) > 1).to_series().to_numpy()
    return shared


def _gather(column: pl.Series, row: Numbers) -> Numbers:
    """The values at the rows; -1 where there is no row."""
    values = column.cast(pl.Int64).to_numpy()
    if not len(values):
        return np.full(len(row), NONE, dtype=np.int64)
    return np.where(row == NONE, NONE, values[row])


def _innermost(ops: pl.DataFrame, lane: Numbers, called_ns: Numbers, is_known: NDArray[np.bool_]) -> Numbers:
    """The op around each known call, -1 where there is none or it is too large to be one call of a library."""
    op = np.full(len(lane), NONE, dtype=np.int64)
    rows = np.flatnonzero(is_known)
    if not ops.height or not len(rows):
        return op
    start_ns = ops["start_ns"].to_numpy()
    end_ns = start_ns + ops["dur_ns"].to_numpy()
    op[rows] = find_innermost(ops["lane_of_host"].to_numpy(), start_ns, end_ns, lane[rows], called_ns[rows])
    counts = np.bincount(op[op != NONE], minlength=ops.height + 1)
    op[(op != NONE) & (counts[op] > MOST_LAUNCHES)] = NONE
    return op


def named(work: Ordered) -> dict[int, list[str]]:
    """For each folded name, the raw names that it stands for, in order: codes of kernels are another order each run."""
    names: dict[int, list[str]] = {}
    for name, fold in sorted(zip(work.kernels, work.fold_of_kernel.tolist(), strict=True)):
        names.setdefault(fold, []).append(name)
    return names


def thread_gaps(work: Ordered) -> dict[int, float]:
    """For each host thread, the median time from the end of one launch call to the start of the next, ns."""
    rows = np.flatnonzero((work.thread != NONE) & ~work.in_graph)
    frame = pl.DataFrame(
        {"thread": work.thread[rows], "called": work.called_ns[rows], "returned": work.returned_ns[rows]}
    ).sort("thread", "called")
    gap = (pl.col("called") - pl.col("returned").shift(1).over("thread")).median().alias("gap")
    return {thread: value for thread, value in frame.group_by("thread").agg(gap).iter_rows() if value is not None}
