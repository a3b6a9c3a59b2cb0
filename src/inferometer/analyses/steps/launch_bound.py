"""How much of each step is bound by launches: the device waits for the host to queue its next work.

The launch-bound time of a step is that part of its window (`sources.RunSteps`) in which

- the device ran nothing, and the call that queued what it ran next had not returned: whether the host was launching,
  computing or waiting for a result itself; or
- it ran a kernel that was shorter than the very call that launched it, and went idle with its end: were the kernel
  quicker, the device would wait that much longer.

Work that was queued in time and begins late is not launch-bound, nor is idle time between the nodes of a graph, which
one call queued. A step in which a graph is captured has no launch-bound time: what it queues isn't meant to run. A
device ran something while any launch of the process ran, on any stream. The idea, to ask where the
launches and not the kernels take the time, is that of arXiv:2504.11750, section 3; it adds up launch and queueing times
of all kernels, which overlap, and that is no part of a step. Recording makes calls slower, so the share is an upper
bound of that in an unrecorded run. The clocks of host and device agree as well as the profiler aligned them.
"""

from typing import Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.analyses.steps.queued_launches import NEEDED as QUEUED
from inferometer.analyses.steps.queued_launches import QueuedLaunches
from inferometer.trace.trace import Trace

NEEDED = {  # the columns of each table that the question touches
    "launches": QUEUED["launches"],
    "calls": (*QUEUED["calls"], "api"),
}
UNKNOWN_IDLE = 0.01
"""A step of which more than this part is idle time that ends with work of an unknown call has no launch-bound time: a
missing call or two of hundreds don't move the share by more than its last printed digits."""

LAUNCHED = pl.Schema(
    {
        **dict.fromkeys(("launches", "captures", "launch_bound_ns"), pl.Int64()),
        "launch_bound_share": pl.Float64(),
    },
)
_CAPTURES = r"^(?:cuda|cu|hip)StreamBeginCapture"
Flags = NDArray[np.bool_]


def with_launches(
    trace: Trace,
    steps: pl.DataFrame,
    class_steps: pl.DataFrame,
    work: "QueuedWork | None",
    *,
    rank: int | None,
    process: int | None,
) -> pl.DataFrame:
    """`steps` with the columns `LAUNCHED`; all null where the trace has no launches.

    `launches`: launches in the step, copies and sets among them; null where none can be assigned to a step.
    `captures`: captures of graphs that began while it lasted on the host; null where calls were not read.
    `launch_bound_ns` and its share of the window are null where the window, or too many of the calls, aren't known, and
    in steps without launches or with captures.

    Args:
        trace: May have `launches` and `calls`.
        steps: Of one run: `step`, `start_ns`, `wall_ns`, `gpu_busy_ns`, `window_start_ns`, `window_ns`.
        class_steps: `step` and `calls`, as `class_times` has it.
        work: Of `find_queued`.
        rank: Whose launches, as is `process`.
        process: The same.
    """
    if not _has_launches(trace):
        return steps.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in LAUNCHED.items())
    counted = steps.join(_counts(class_steps), on="step", how="left", maintain_order="left")
    if class_steps.is_empty() or class_steps["calls"].count():
        none = pl.when(pl.col("gpu_busy_ns").is_not_null()).then(pl.lit(0, dtype=pl.Int64))
        counted = counted.with_columns(pl.col("launches").fill_null(none))
    counted = counted.with_columns(_captures(trace, counted, rank, process))
    share = pl.col("launch_bound_ns") / pl.when(pl.col("window_ns") > 0).then(pl.col("window_ns"))
    return counted.with_columns(_bound_by_step(work, counted)).with_columns(share.alias("launch_bound_share"))


def find_queued(
    trace: Trace, *, rank: int | None, process: int | None, queued: QueuedLaunches | None
) -> "QueuedWork | None":
    """The launches of a process; None where it launched nothing, or calls were not read.

    Those of an unknown process count where only its rank says. `queued`: these, where they are read already.
    """
    return QueuedWork.of(queued or QueuedLaunches.read(trace, rank, process)) if _has_launches(trace) else None


def _has_launches(trace: Trace) -> bool:
    return "launches" in trace.scope and not trace.launches.head(1).collect().is_empty()


def _counts(class_steps: pl.DataFrame) -> pl.DataFrame:
    calls = pl.col("calls")
    counted = pl.when(calls.count() > 0).then(calls.sum()).alias("launches")
    return class_steps.group_by("step").agg(counted)


def _captures(trace: Trace, steps: pl.DataFrame, rank: int | None, process: int | None) -> pl.Series:
    """Captures begun in each step, by its times on the host."""
    if "calls" not in trace.scope:
        return pl.Series("captures", [None] * steps.height, dtype=pl.Int64)
    calls = trace.compact("calls")
    names = calls.select(pl.col("api").unique()).collect()["api"].cast(pl.String).drop_nulls()
    begins = pl.col("api").is_in(names.filter(names.str.contains(_CAPTURES)).implode())
    own = [_is(rank, "rank"), *([] if process is None else [_is(process, "process")])]
    began = calls.filter(begins, *own).select("start_ns").collect()["start_ns"].sort().to_numpy()
    start, end = steps["start_ns"], steps["start_ns"] + steps["wall_ns"]
    first, last = (np.searchsorted(began, times.fill_null(0).to_numpy()) for times in (start, end))
    counts = pl.Series("captures", last - first, dtype=pl.Int64)
    return pl.select(pl.when(end.is_not_null()).then(counts).alias("captures")).to_series()


class QueuedWork(msgspec.Struct, frozen=True):
    """The launches of a process in order of their starts. Shape (n,) each.

    `queued_ns` is the end of the call that queued it, or its own start, since work may begin before its call returns;
    `call_ns` is the call's length. Where `known` is false, neither means anything. `alone`: it is the only work of its
    call.
    """

    start_ns: Times
    end_ns: Times
    queued_ns: Times
    call_ns: Times
    known: Flags
    alone: Flags

    @classmethod
    def of(cls, queued: QueuedLaunches) -> Self | None:
        """None where calls were not read, or the process launched nothing."""
        launches, calls, call = queued.launches, queued.calls, queued.call
        if calls is None or call is None or launches.is_empty():
            return None
        start, dur = (launches[name].to_numpy() for name in ("start_ns", "dur_ns"))
        if not (start[1:] >= start[:-1]).all():
            order = np.argsort(start, kind="stable")
            start, dur, call = start[order], dur[order], call[order]
        known, end = call >= 0, start + dur
        del dur
        is_one = np.bincount(call if known.all() else call[known], minlength=max(calls.height, 1)) == 1
        rows = calls if calls.height else pl.DataFrame({"start_ns": [0], "dur_ns": [0]})
        called, length = (rows[name].to_numpy()[call] for name in ("start_ns", "dur_ns"))
        np.minimum(np.add(called, length, out=called), start, out=called)
        return cls(start, end, called, length, known, known & is_one[call])

    def bound(self, first_ns: int, last_ns: int) -> tuple[Cover, Cover]:
        """Launch-bound time, and idle time that ends with work of an unknown call, both between two moments."""
        dry = np.empty(len(self.end_ns) + 1, dtype=np.int64)
        dry[0] = min(first_ns, int(self.start_ns[0]))
        np.maximum.accumulate(self.end_ns, out=dry[1:])
        ran_dry, last_end = dry[:-1], int(dry[-1])
        waits = self.known & (self.queued_ns > ran_dry)
        hidden = self._hidden(waits, ran_dry)
        bound = Cover.of(
            np.concatenate((ran_dry[waits], self.start_ns[hidden], [last_end])),
            np.concatenate((self.queued_ns[waits], self.end_ns[hidden], [max(last_ns, last_end)])),
        )
        unknown = ~self.known & (self.start_ns > ran_dry)
        return bound, Cover.of(ran_dry[unknown], self.start_ns[unknown])

    def _hidden(self, waits: Flags, ran_dry: Times) -> Flags:
        """Kernels shorter than the call that launched them, after which the device went idle for want of a launch."""
        next_waits = np.concatenate((waits[1:], [False]))
        ends_last = np.concatenate((ran_dry[1:] == self.end_ns[:-1], [False]))
        hidden = self.known & self.alone & next_waits & ends_last
        for part in batches(len(hidden)):
            hidden[part] &= self.end_ns[part] - self.start_ns[part] < self.call_ns[part]
        return np.asarray(hidden)


def _is(value: int | None, column: str) -> pl.Expr:
    return pl.col(column).eq_missing(pl.lit(value, dtype=pl.Int64))


def _bound_by_step(work: QueuedWork | None, steps: pl.DataFrame) -> pl.Series:
    """Launch-bound time of each step, null where it can't be known."""
    windows = ("window_start_ns", "window_ns")
    is_timed = pl.all_horizontal(pl.col(name).is_not_null() for name in windows) & (pl.col("launches") != 0)
    is_timed &= pl.col("captures").fill_null(0) == 0
    timed = steps.select(is_timed.fill_null(value=False)).to_series().to_numpy()
    found: list[int | None] = [None] * steps.height
    if work is not None and timed.any():
        start, length = (steps[name].filter(pl.Series(timed)).to_numpy() for name in windows)
        covers = work.bound(int(start.min()), int((start + length).max()))
        bound_ns, unknown_ns = (cover.within(start, start + length) for cover in covers)
        known = unknown_ns <= UNKNOWN_IDLE * length
        for i, ns, is_known in zip(np.flatnonzero(timed).tolist(), bound_ns.tolist(), known.tolist(), strict=True):
            found[i] = ns if is_known else None
    return pl.Series("launch_bound_ns", found, dtype=pl.Int64)
