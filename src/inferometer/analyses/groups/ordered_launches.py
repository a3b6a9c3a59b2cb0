"""Launches in the order of their streams, each with the op and the host call behind it, and pairs of neighbours.

The op is the innermost framework op open on the launching thread when the host call began. A launch of a graph replay
has none: one call launched them all. Nor has one whose op launched more than `MOST_LAUNCHES`: such an op is a compiled
region or a whole step, no library call. Launches that are known by their calls alone are in the order of these, each
thread as a stream of its own.
"""

from typing import TypeVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.correlation import CALL_KEY, find_calls
from inferometer.analyses.nesting import find_innermost
from inferometer.analyses.numbering import number_rows, order_in_time
from inferometer.names import decode
from inferometer.names.apis import api_kind, is_of_cuda_or_hip
from inferometer.trace.lean import collect_lean

MOST_LAUNCHES = 32
"""Launches of one op; the largest in our traces, a fused backward of embeddings, has 17."""

NONE = -1
_Number = TypeVar("_Number", np.int64, np.int32)
_THREAD = ["rank", "process", "thread"]
_LANE = ["rank", "device", "stream", "process", "thread"]  # the last two only without a stream: of the calls alone
_COLUMNS = ("kernel", *_LANE, "start_ns", "dur_ns", "correlation_id", "call", "in_graph", "is_captured")
_CALLS = (*_THREAD, "start_ns", "dur_ns", "correlation_id", "path_id", "api")
Numbers = NDArray[np.int64]
Places = NDArray[np.int32]


class Ordered(msgspec.Struct, frozen=True):
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
    lane: Places
    kernel: Places
    fold: Places
    start_ns: Numbers
    dur_ns: Numbers
    op: Places
    thread: Places
    called_ns: Numbers
    returned_ns: Numbers
    in_graph: NDArray[np.bool_]
    is_captured: NDArray[np.bool_]
    op_name: Places
    fold_of_kernel: Places
    call: Places
    calls: pl.DataFrame


def order_launches(launches: pl.LazyFrame, captured: pl.LazyFrame, calls: pl.LazyFrame, ops: pl.LazyFrame) -> Ordered:
    """The launches selected, with what is known of their calls and ops.

    Args:
        launches: As `Trace.compact` gives them, with the columns of `groups.NEEDED`. Whole graphs are left out.
        captured: Of `captured_launches`.
        calls: As `launches`.
        ops: With the columns of `groups.NEEDED`.
    """
    called = collect_lean(calls, _CALLS)
    inside = ops.select("op", *_THREAD, "start_ns", "dur_ns").collect()
    threads = [frame.select(_THREAD) for frame in (called, inside)]
    thread, _ = number_rows(pl.concat(threads) if inside.height else threads[0])
    called, inside = (
        frame.with_columns(pl.Series("lane_of_host", own, dtype=pl.Int32))
        for frame, own in zip((called, inside), np.split(thread, [called.height]), strict=True)
    )
    parts = [_on_streams(launches, called), *_on_threads(captured, called)]
    rows = pl.concat(parts) if len(parts) > 1 else parts[0]
    lane, _ = number_rows(rows.select(_LANE))
    order = order_in_time(lane, rows["start_ns"].to_numpy())
    rows = rows.with_columns(pl.Series("lane", lane, dtype=pl.Int32)).drop("device", "stream", "thread")
    return _with_ops(rows if order is None else rows[order], called, inside)


def _on_streams(launches: pl.LazyFrame, called: pl.DataFrame) -> pl.DataFrame:
    columns = ("kernel", "rank", "device", "stream", "process", "start_ns", "dur_ns", "correlation_id", "in_graph")
    marked = launches.with_columns(pl.col("graph_node_id").is_not_null().alias("in_graph"))
    work = collect_lean(marked, columns, pl.col("kind").cast(pl.String) != "graph")
    nobody = (pl.lit(None, dtype=pl.Int64).alias(name) for name in ("process", "thread"))
    return _tied(work, called).with_columns(*nobody, pl.lit(value=False).alias("is_captured")).select(_COLUMNS)


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
    thread, called_ns, took_ns = (
        _gather(called[column].to_numpy(), call) for column in ("lane_of_host", "start_ns", "dur_ns")
    )
    op = _innermost(ops, thread, called_ns, (call != NONE) & ~in_graph)
    op_names = ops["op"].unique().sort()
    op_name = ops["op"].replace_strict(op_names, pl.int_range(op_names.len(), eager=True), return_dtype=pl.Int32)
    fold = np.array([place[name] for name in short], dtype=np.int32)
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
        thread=thread,
        called_ns=called_ns,
        returned_ns=np.add(took_ns, called_ns, out=took_ns),
        in_graph=in_graph,
        is_captured=tied["is_captured"].to_numpy(),
        op_name=_gather(op_name.cast(pl.Int32).to_numpy(), op),
        fold_of_kernel=fold,
        call=call,
        calls=called.select(*_THREAD, pl.col("start_ns").alias("called_ns"), "path_id"),
    )


def _numbered(names: pl.Series) -> tuple[list[str], Places]:
    """The distinct names in order, and for each row the number of its own; the text of rows is never touched.

    By name, since codes differ with the columns and tables that were read, and ties between kernels go by number.
    """
    distinct = names.unique()
    known = distinct.to_physical().to_numpy()
    sorted_names = distinct.cast(pl.String).sort()
    number = np.zeros(int(known.max(initial=0)) + 1, dtype=np.int32)
    number[known[distinct.cast(pl.String).arg_sort()]] = np.arange(len(known))
    return sorted_names.to_list(), number[names.to_physical().to_numpy()]


def _of_graphs(call: Places, called: pl.DataFrame) -> NDArray[np.bool_]:
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


def _gather(values: NDArray[_Number], row: Places) -> NDArray[_Number]:
    """The values at the rows; -1 where there is no row."""
    found = np.full(len(row), NONE, dtype=values.dtype)
    if len(values):
        for batch in batches(len(row)):
            of = row[batch]
            found[batch] = np.where(of == NONE, NONE, values[of])
    return found


def _innermost(ops: pl.DataFrame, lane: Places, called_ns: Numbers, is_known: NDArray[np.bool_]) -> Places:
    """The op around each known call, -1 where there is none or it is too large to be one call of a library."""
    op = np.full(len(lane), NONE, dtype=np.int32)
    rows = np.flatnonzero(is_known)
    if not ops.height or not len(rows):
        return op
    start_ns = ops["start_ns"].to_numpy()
    end_ns = start_ns + ops["dur_ns"].to_numpy()
    lane_of_op, lane_of_call = (lanes.astype(np.int64) for lanes in (ops["lane_of_host"].to_numpy(), lane[rows]))
    op[rows] = find_innermost(lane_of_op, start_ns, end_ns, lane_of_call, called_ns[rows])
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
    order = order_in_time(work.thread[rows], work.called_ns[rows])
    rows = rows if order is None else rows[order]
    thread = work.thread[rows]
    gap_ns = work.called_ns[rows][1:] - work.returned_ns[rows][:-1]
    gaps = pl.DataFrame({"thread": thread[1:], "gap_ns": gap_ns}).filter(pl.Series(thread[1:] == thread[:-1]))
    return dict(gaps.group_by("thread").agg(pl.col("gap_ns").median()).iter_rows())
