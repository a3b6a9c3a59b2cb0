"""Which call of which op owns a launch: the innermost that was open on the thread when the launch was queued.

Chains of names (`chain_tree`) are interned: one node stands for all calls that look alike. Who needs a call's own
arguments, or which launches one call queued together, asks here: a call is its row number in the trace's `ops`.
"""

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.host_side import THREAD, lanes_of
from inferometer.analyses.nesting import (
    Nested,
    Numbers,
    find_innermost,
    find_nested,
    order_points,
    order_ranges,
    shared_lanes,
)
from inferometer.analyses.numbering import number_rows
from inferometer.trace.trace import Trace

NONE = -1
OWNER = ("op_source", "op_call")
"""Columns of launches: the number of the trace (0: their own, then captures), and the call in its `ops`."""
LAUNCH_SHAPE = ("registers", "shared_bytes")
"""Columns of launches that, with name, grid and block, show whether two launches are alike."""
STORAGES = ("input_storages", "written_storages")
"""Columns of ops that tell where an execution trace says what they read and wrote."""
_ID = ["rank", "process", "external_id"]
_STEP = re.compile(r"^(?:torch::)?autograd::|Backward")  # autograd's own: their numbers are those of forward ops
NEEDED = {
    "launches": LAUNCH_SHAPE,
    "ops": (
        *("op", *THREAD, "start_ns", "dur_ns", "external_id", "input_dims", "input_dtypes", "input_strides"),
        *("scalars", "kernel_file"),
    ),
}


class OpCalls:
    """The calls of ops of one trace, by their row numbers in `trace.ops`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._counted_of: dict[str, tuple[Numbers, Numbers, Numbers]] = {}
        places = trace.compact("ops").select(*THREAD, "start_ns", "dur_ns", "external_id").collect()
        self._places = places
        self._threads = places.select(THREAD).unique().sort(THREAD).with_row_index("lane")
        self._lane = lanes_of(places, self._threads)
        self._start = places["start_ns"].to_numpy()
        self._end = self._start + places["dur_ns"].to_numpy()

    def __len__(self) -> int:
        return len(self._start)

    def owning(self, launches: pl.DataFrame) -> Numbers:
        """The call that owns each launch, `NONE` where none does.

        Args:
            launches: `rank`, `process`, `thread`, `called_ns`, `external_id` and `how`, as `find_launched` has them.
                A call that queued a whole graph owns none of its kernels.
        """
        found = np.full(launches.height, NONE, dtype=np.int64)
        called = (pl.col("called_ns").is_not_null() & (pl.col("how") != "graph_launch")).alias("called")
        rows = launches.select(called)["called"].arg_true().to_numpy()
        if len(rows) and len(self):
            moments = launches.select(*THREAD, "called_ns")[rows]
            lane, time = lanes_of(moments, self._threads), moments["called_ns"].to_numpy()
            found[rows] = self._innermost(lane, time)
        by_id = launches.select((pl.col("how") == "external_id").alias("by_id"))["by_id"].arg_true().to_numpy()
        if len(by_id):
            found[by_id] = self._with_ids(launches.select(_ID)[by_id])
        return found

    def _innermost(self, lane: Numbers, time: Numbers) -> Numbers:
        """The innermost call around each moment of a thread."""
        order, lanes, starts = self._by_time
        found = np.full(len(time), NONE, dtype=np.int64)
        points = order_points(lane, time)
        for of_calls, of_points in shared_lanes(lanes, lane[points]):
            calls, times = order[of_calls], time[points[of_points]]
            if nested := self._nested[int(lanes[of_calls.start])]:
                inner = nested.innermost(times)
            else:
                here, there = np.zeros_like(calls), np.zeros_like(times)
                inner = find_innermost(here, starts[of_calls], self._end[calls], there, times)
            found[points[of_points]] = np.where(inner == NONE, NONE, calls[inner])
        return found

    def _with_ids(self, wanted: pl.DataFrame) -> Numbers:
        """The first call with each id."""
        first = (
            self._places.select(*_ID, "start_ns")
            .with_row_index("call")
            .filter(pl.col("external_id").is_not_null())
            .sort("start_ns", maintain_order=True)
            .unique(_ID, keep="first", maintain_order=True)
        )
        joined = wanted.join(first, on=_ID, how="left", nulls_equal=True, maintain_order="left")
        return joined["call"].cast(pl.Int64).fill_null(NONE).to_numpy()

    def rows(self, calls: Sequence[int] | Numbers) -> pl.DataFrame:
        """What was recorded of these calls, in their order: `op`, arguments as JSON texts, file of a kernel."""
        names = [name for name in NEEDED["ops"] if name not in (*THREAD, "external_id")]
        return self._recorded.select(names)[np.asarray(calls, dtype=np.int64)]

    @cached_property
    def ops(self) -> tuple[Numbers, list[str]]:
        """The op that each call is of, as a place in the list of their names."""
        numbers, names = number_rows(self._recorded.select(pl.col("op").cast(pl.String)))
        return numbers, [str(name) for (name,) in names]

    def name(self, call: int) -> str:
        """The op that was called."""
        return str(self._recorded["op"][call])

    def around(self, call: int) -> int:
        """The call that this one was made by; `NONE` of an outermost."""
        return int(self.parents[call])

    def within(self, call: int) -> Numbers:
        """The calls that were made by this one, directly or not, in their order of time."""
        order, lanes, starts = self._by_time
        low = np.searchsorted(lanes, self._lane[call], side="left")
        high = np.searchsorted(lanes, self._lane[call], side="right")
        first = low + np.searchsorted(starts[low:high], self._start[call], side="left")
        last = low + np.searchsorted(starts[low:high], self._end[call], side="left")
        some: Numbers = order[first:last]
        inside: Numbers = some[(self._end[some] <= self._end[call]) & (some != call)]
        return inside

    def forward_of(self, call: int, prefix: str) -> int:
        """The one call of an op so called, in whose time autograd made the step that this call is; else `NONE`.

        PyTorch counts the steps that a thread makes, and records how far it had counted with each op that can make one
        as that begins. A step's number is the count when it was made: no less than that of the last such op before,
        and less than that of the next. Reads the column `sequence_number`.
        """
        made = int(self._counts[call])
        called, first, end = self._counted(prefix)
        found = called[(first <= made) & (made < end)]
        return int(found[0]) if made != NONE and len(found) == 1 else NONE

    def _counted(self, prefix: str) -> tuple[Numbers, Numbers, Numbers]:
        """The calls of ops so called, with the counts before and after each."""
        if prefix not in self._counted_of:
            called = self._recorded["op"].str.starts_with(prefix).arg_true().to_numpy().astype(np.int64)
            first, end = (
                np.array([self._count_at(call, direction) for call in called.tolist()], dtype=np.int64)
                for direction in (-1, 1)
            )
            self._counted_of[prefix] = called, first, end
        return self._counted_of[prefix]

    def _count_at(self, call: int, direction: int) -> int:
        """The count of the nearest op of the thread that has one, before a call or after it; without, none can be."""
        order, _, _ = self._by_time
        at = int(self._place[call]) + direction
        while 0 <= at < len(order) and self._lane[order[at]] == self._lane[call]:
            if self._counts[order[at]] != NONE and not _STEP.search(self.name(int(order[at]))):
                return int(self._counts[order[at]])
            at += direction
        return np.iinfo(np.int64).max if direction < 0 else NONE

    @cached_property
    def _counts(self) -> Numbers:
        counts = self._trace.ops.select("sequence_number").collect()["sequence_number"]
        return counts.fill_null(NONE).to_numpy()

    @cached_property
    def storages(self) -> pl.DataFrame | None:
        """Of each call what it read and wrote, columns `STORAGES`; None where no call has any."""
        told = self._trace.ops.select(STORAGES).collect()
        return told if any(told[name].null_count() < told.height for name in STORAGES) else None

    @cached_property
    def _recorded(self) -> pl.DataFrame:
        return self._trace.ops.select(NEEDED["ops"]).collect()

    @cached_property
    def _by_time(self) -> tuple[Numbers, Numbers, Numbers]:
        order = order_ranges(self._lane, self._start, self._end)
        return order, self._lane[order], self._start[order]

    @cached_property
    def _place(self) -> Numbers:
        """The place of each call in the order of time."""
        order, _, _ = self._by_time
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return place

    @cached_property
    def parents(self) -> Numbers:
        """Of each call the one that it was made by; `NONE` of an outermost."""
        order, lanes, _ = self._by_time
        parent = np.full(len(order), NONE, dtype=np.int64)
        for some, _ in shared_lanes(lanes, lanes):
            calls = order[some]
            nested = self._nested[int(lanes[some.start])]
            around = nested.parent if nested else _around(self._end[calls])
            parent[calls] = np.where(around == NONE, NONE, calls[around])
        return parent

    @cached_property
    def _nested(self) -> dict[int, Nested | None]:
        """How the calls of each thread nest, by its number; None where two cross."""
        order, lanes, starts = self._by_time
        return {
            int(lanes[some.start]): find_nested(starts[some], self._end[order[some]])
            for some, _ in shared_lanes(lanes, lanes)
        }


def or_null(name: str, values: Numbers) -> pl.Series:
    """A column of these numbers, `NONE` as null."""
    series = pl.Series(name, values, dtype=pl.Int64)
    return series.set(series == NONE, None)


def _around(end: Numbers) -> Numbers:
    """The place of the call around each of one thread, `NONE` for the outermost; by start, the longest first."""
    parent = np.full(len(end), NONE, dtype=np.int64)
    stack: list[tuple[int, int]] = []  # end, place
    for place, until in enumerate(end.tolist()):
        while stack and stack[-1][0] < until:
            stack.pop()
        if stack:
            parent[place] = stack[-1][1]
        stack.append((until, place))
    return parent
