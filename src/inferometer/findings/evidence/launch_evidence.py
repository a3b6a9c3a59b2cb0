"""What rules may ask of single launches: the analyses of a trace with device work, each made once when first asked.

Rules ask from several threads. The steps are made next to the attribution, which together take half of the time, and
read its columns: numpy and polars hold the interpreter's lock for little of it.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.batches import batches
from inferometer.analyses.correlation import CALL
from inferometer.analyses.launched_by.launched import SIZES
from inferometer.analyses.launched_by.op_calls import LAUNCH_SHAPE, OWNER
from inferometer.analyses.numbering import find_rows, order_in_time
from inferometer.findings.evidence.locked_property import locked_cached_property
from inferometer.trace.lean import aggregate, gather, has_one, in_slices
from inferometer.trace.shared_columns import sharing
from inferometer.trace.trace import Trace
from inferometer.units import format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inferometer.analyses.intervals import Times
    from inferometer.analyses.launched_by.attribution import Attribution
    from inferometer.analyses.roofline.table import Roofline
    from inferometer.analyses.steps.table import StepTable
    from inferometer.analyses.timeline.ranks import Ranks
    from inferometer.analyses.timeline.work import Work
    from inferometer.findings.evidence.idle_kinds import IdleKind
    from inferometer.findings.evidence.kernel_rows import KernelRows, Origins
    from inferometer.hardware.device import Device

_PLACE = ["rank", "device"]
_LANE = [*_PLACE, "stream"]
_WORK = (
    *("kind", "kernel", *_LANE, "process", "start_ns", "dur_ns", "correlation_id", "shape_hash", "launch"),
    *(CALL, "thread", "called_ns", "node", "how", "is_replay"),
)
_CALLED = ("process", "thread", "node", "is_replay")
_DEVICE_WORK = ("kind", "kernel", *_LANE, "correlation_id", "start_ns", "dur_ns", CALL, *_CALLED)
_GAPS = (*_PLACE, "gap_start_ns", "gap_ns", "cause", "kernel", "called_ns", "waited_in", "wait_end_ns")
_LARGE = (*SIZES, "external_id", "graph_id", "graph_node_id")  # columns of launches that no rule needs
_NODE = pl.col("node").cast(pl.Int32)  # nodes are counted up, and far fewer
_MOST_MODELLED = 2_000_000  # launches, whose calls are looked for once more
_NEARLY_ALL = 0.98  # of the launches: a mean over steps is off by the rest
_SHARED = frozenset({"trace", "device", "attribution", "_shapes", "steps", "roofline"})  # what not rules alone ask for


class LaunchEvidence:
    """Of one trace with launches.

    Args:
        trace: Needs the tables `launches`, `calls`, `ops`, `frames`, `spans`, `call_paths`, `graph_nodes`, `totals` and
            `log`.
        device: What it ran on, if the user named it: bounds of ops are its own.
    """

    def __init__(self, trace: Trace, *, device: "Device | None" = None) -> None:
        self.trace = trace
        self.device = device

    def release(self, *, attribution: bool = False) -> None:
        """Drop what only rules ask for, half a GB of ten million launches; asked for again, it is made again.

        With `attribution` this, too: another 650 MB.
        """
        for name in vars(self).keys() - (_SHARED - {"attribution"} if attribution else _SHARED):
            delattr(self, name)

    @locked_cached_property
    def attribution(self) -> "Attribution":
        """Who launched what: `launches` (a row per launch, with `called_ns`, `thread`, `is_replay`, `how`), `sites`.

        In order of device, stream and start; `launch` is the row in the trace's launches, which captured kernels come
        after. In place of sizes of grid and block there is `shape_hash`: equal for equal sizes, for others as unlikely
        as 64 random bits. Ids of graphs and ops aren't kept.
        """
        with ThreadPoolExecutor(1) as pool:
            sized = pool.submit(_shapes, self.trace)
            found = self.with_op_calls or self._attribute()
            hashes, self._shapes = sized.result()
        hashes = hashes.extend_constant(0, found.launches.height - hashes.len()).rechunk()
        launches = found.launches.drop(_LARGE, *LAUNCH_SHAPE, *OWNER, strict=False).hstack([hashes]).with_columns(_NODE)
        found = replace(found, launches=launches.clear(), sites=found.sites.with_columns(_NODE), op_calls=())
        order = _by_time(launches, _LANE)
        rows = pl.Series("launch", np.arange(launches.height) if order is None else order).cast(pl.UInt32)
        if order is not None:
            columns = [launches.select(name) for name in launches.columns]
            del launches, hashes
            for number, column in enumerate(columns):  # one by one, so that two of all are never there
                columns[number] = column[rows]
                del column
            launches = pl.concat(columns, how="horizontal")
        return replace(found, launches=launches.hstack([rows]))

    @property
    def shapes(self) -> pl.DataFrame:
        """Of each `shape_hash`, the `blocks` of a grid and `threads` of a block; null where a size isn't recorded."""
        _ = self.attribution
        return self._shapes

    @locked_cached_property
    def with_op_calls(self) -> "Attribution | None":
        """The same with all columns, and the calls of ops; None where no op has shapes, or there are too many launches.

        Both are made at once: half of the work of either is the other's.
        """
        shaped = self.trace.ops.filter(pl.col("input_dims").is_not_null()).head(1).collect().height
        few = self.trace.launches.select(pl.len()).collect().item() <= _MOST_MODELLED
        return self._attribute(with_op_calls=True) if shaped and few else None

    def _attribute(self, *, with_op_calls: bool = False) -> "Attribution":
        from inferometer.analyses.launched_by.attribution import attribute

        with sharing(self.trace):
            return attribute(self.trace, with_op_calls=with_op_calls, with_sizes=with_op_calls)

    @locked_cached_property
    def roofline(self) -> "Roofline | None":
        """How far each op is from its bound; None where no op has shapes, or there are too many launches."""
        from inferometer.analyses.roofline.table import roofline

        found = self.with_op_calls
        if found is None:
            return None
        _ = self.attribution  # nothing else needs the calls of ops
        made = roofline(found, self.trace, device=self.device)
        vars(self).pop("with_op_calls", None)
        return made

    @property
    def made_roofline(self) -> "Roofline | None":
        """`roofline`, if it was asked for."""
        return self.roofline if "roofline" in vars(self) else None

    @locked_cached_property
    def work(self) -> pl.DataFrame:
        """Launches with times, in order of device, stream and start; columns of `attribution.launches`.

        Text is categorical. Captured kernels, which take no time, and whole graphs are not in it.
        """
        rows = self.attribution.launches.select("is_captured", *_WORK)
        took = ~rows["is_captured"] & (rows["kind"] != "graph")
        return (rows if took.all() else rows.filter(took)).drop("is_captured")

    @locked_cached_property
    def rows(self) -> "KernelRows":
        """The same launches as columns of numbers, for rules about sequences."""
        from inferometer.findings.evidence.kernel_rows import make_rows

        return make_rows(self.work)

    @locked_cached_property
    def origins(self) -> "Origins":
        """Where launches come from, as people call it."""
        from inferometer.findings.evidence.kernel_rows import Origins

        return Origins(self.attribution.sites)

    @locked_cached_property
    def total_ns(self) -> int:
        """Sum over all launches."""
        return int(self.work["dur_ns"].sum())

    @locked_cached_property
    def window_ns(self) -> int:
        """Wall time from the first launch to the last end, the longest of all devices; 0 without launches."""
        lasts = (pl.col("start_ns") + pl.col("dur_ns")).max() - pl.col("start_ns").min()
        by_device = aggregate(self.work, _PLACE, lasts.alias("ns"))
        return int(by_device["ns"].max() or 0)  # type: ignore[arg-type]

    @locked_cached_property
    def steps(self) -> "StepTable | None":
        """The steps of the first run, recorded, marked or found; None where there are none."""
        from inferometer.analyses.steps.table import step_table
        from inferometer.errors import InputError

        try:
            with sharing(self.trace):
                return step_table(self.trace)
        except InputError:
            return None

    @locked_cached_property
    def device_work(self) -> "Work":
        """Launches by place and start, each with its sort: compute, communication or copy. Captured kernels aren't.

        Text is categorical.
        """
        from inferometer.analyses.timeline.work import arrange_work

        launched = self.attribution.launches
        rows = self.work
        if rows.height < launched.height or not has_one(rows, *_LANE):
            rows = launched.filter(~pl.col("is_captured")) if launched["is_captured"].any() else launched
            rows = rows.select("launch", *_DEVICE_WORK).sort("launch")
        return arrange_work(rows.select(_DEVICE_WORK))

    @locked_cached_property
    def devices(self) -> pl.DataFrame:
        """One row per place, a device of a rank: its window, busy, idle and exposed time; of `timeline.exposure`."""
        from inferometer.analyses.timeline.exposure import device_exposure

        return device_exposure(self.device_work, self.device_work.cut())

    @property
    def busy_times(self) -> pl.DataFrame:
        """What `summary.busy_times` makes of the trace alone."""
        from inferometer.analyses.tables.summary import BUSY_TIMES

        summed = pl.col("dur_ns").filter(pl.col("sort") != "copy").sum().alias("kernel_summed_ns")
        kernels = aggregate(self.device_work.launches, _PLACE, summed)
        busy = (pl.col("busy_ns") - pl.col("exposed_copy_ns")).alias("kernel_busy_ns")
        times = self.devices.join(kernels, on=_PLACE, nulls_equal=True)
        return times.with_columns(busy).select(*_PLACE, *BUSY_TIMES)

    @locked_cached_property
    def budget(self) -> pl.DataFrame:
        """What each moment of each place's window went to: of `timeline.budget`."""
        from inferometer.analyses.timeline.budget import time_budget

        return time_budget(self.device_work, self.gaps.select(*_PLACE, "cause", "gap_ns"))

    @locked_cached_property
    def ranks(self) -> "Ranks":
        """Who keeps whom waiting in collectives; empty frames where there is one place only."""
        from inferometer.analyses.timeline.collectives import recorded_collectives
        from inferometer.analyses.timeline.ranks import compare_ranks

        return compare_ranks(self.device_work, self.devices, recorded_collectives(self.trace))

    @locked_cached_property
    def gaps(self) -> pl.DataFrame:
        """Every idle gap with its cause: columns of `timeline.gaps`, those of the launch that ended it, and its kind.

        `process`, `thread`, `node` and `is_replay` are the launch's, null where its call isn't known. `kind` and `gap`
        are as `idle_kinds` says. `device` is categorical. `wait_end_ns` is in `after_waits` alone.
        """
        from inferometer.analyses.timeline.gaps import ROW, find_gaps
        from inferometer.findings.evidence.idle_kinds import with_kinds

        _ = self.steps  # the columns that they are made of are let go of before
        gaps = find_gaps(self.trace, self.device_work, (*_GAPS, ROW))
        row = gaps.select(pl.when(pl.col("called_ns").is_not_null()).then(ROW)).to_series()
        ended = gather(self.device_work.launches.select(_CALLED), row)
        gaps = pl.concat([gaps.drop(ROW), ended], how="horizontal")
        del row, ended  # 40 MB each, of ten million
        lane = (*_PLACE, "process", "thread", "called_ns")
        found = with_kinds(gaps, self.work.select(lane).filter(self.is_alone))
        self._after_waits = found.filter(pl.col("waited_in").is_not_null())
        return found.drop("wait_end_ns")

    @property
    def after_waits(self) -> pl.DataFrame:
        """Those of `gaps` before which the host waited, with `wait_end_ns`, when it no longer did."""
        _ = self.gaps
        return self._after_waits

    def idle_ns(self, rank: int | None, device: str | None, kind: "IdleKind") -> int:
        """The idle time of this kind at a place."""
        return self._idle_by_kind.get((rank, device, kind), 0)

    @locked_cached_property
    def _idle_by_kind(self) -> dict[tuple[int | None, str | None, str], int]:
        sums = aggregate(self.gaps, [*_PLACE, "kind"], pl.col("gap_ns").sum())
        return {tuple(key): ns for *key, ns in sums.with_columns(pl.col("device", "kind").cast(pl.String)).iter_rows()}

    @locked_cached_property
    def is_alone(self) -> pl.Series:
        """Whether each row of `work` is a kernel that a call of its own launched, and that call is known."""
        is_kernel = (pl.col("kind") == "kernel") & ~pl.col("is_replay") & pl.col("called_ns").is_not_null()
        return self.work.select(is_kernel.alias("is_alone")).to_series()

    @locked_cached_property
    def launching_ns(self) -> pl.DataFrame:
        """What launching kernels one by one takes at each place: of `launching.sum_launching`."""
        from inferometer.findings.evidence.launching import sum_launching

        return sum_launching(self.gaps, self.work, self.is_alone)

    @locked_cached_property
    def step_starts_ns(self) -> "Times":
        """When the steps of the first run began, in order; empty where they aren't known."""
        if self.steps is None or "start_ns" not in self.steps.steps.columns:
            return np.empty(0, dtype=np.int64)
        return self.steps.steps["start_ns"].drop_nulls().sort().to_numpy()

    def step_of(self, times_ns: "Times") -> "NDArray[np.int32]":
        """The place in `step_starts_ns` of the step begun last at each of these times; -1 before the first."""
        steps = np.empty(len(times_ns), dtype=np.int32)
        for part in batches(len(times_ns)):
            steps[part] = np.searchsorted(self.step_starts_ns, times_ns[part], side="right") - 1
        return steps

    @locked_cached_property
    def steps_of_work(self) -> "NDArray[np.int32]":
        """The place in `step_starts_ns` of each row of `work`; -1 before the first step.

        A launch belongs to the step in which it was called for. Where steps were found on the device, or its call isn't
        in the file, it is the one in which it began.
        """
        from inferometer.analyses.steps.sources import FOUND

        began = self.work["start_ns"]
        on_device = self.steps is None or self.steps.anchor == FOUND
        return self.step_of((began if on_device else self.work["called_ns"].fill_null(began)).to_numpy())

    @locked_cached_property
    def steps_of_rows(self) -> "NDArray[np.int32]":
        """The same of each of `rows`."""
        is_row = self.work.select(pl.col("kind") != "memset").to_series()
        return self.steps_of_work if is_row.all() else self.steps_of_work[is_row.to_numpy()]

    @locked_cached_property
    def shared_by_steps(self) -> int:
        """How many steps have launches, where these are all but a fiftieth of the window's; else 0.

        A step's launches are those called for from its start to the next one's, and by its end if it is the last. Where
        steps were found on the device, or no call is in the file, it is when a launch began.
        """
        from inferometer.analyses.steps.sources import FOUND

        starts = self.step_starts_ns
        if self.steps is None or not len(starts) or not self.work.height:
            return 0
        last = self.steps.steps.select("start_ns", "wall_ns").drop_nulls("start_ns").sort("start_ns").row(-1)
        called = self.work["called_ns"]
        by_call = self.steps.anchor != FOUND and called.null_count() < called.len()
        times = (called.drop_nulls() if by_call else self.work["start_ns"]).to_numpy()
        inside = times if last[1] is None else times[times <= last[0] + last[1]]
        steps = self.step_of(inside)
        if np.count_nonzero(steps >= 0) < _NEARLY_ALL * self.work.height:
            return 0
        return len(np.unique(steps[steps >= 0]))

    def a_step(self, time_ns: float) -> str:
        """`, 5.200 ms per step over 6 steps`; nothing where steps aren't known, or share less than the whole window."""
        steps = self.shared_by_steps
        return f", {format_duration(time_ns / steps)} per step over {steps:,} steps" if steps > 1 else ""


def _shapes(trace: Trace) -> tuple[pl.Series, pl.DataFrame]:
    """`shape_hash` of each of the trace's launches; and what `LaunchEvidence.shapes` has.

    Sizes that aren't recorded are hashed as 0.
    """
    sizes = [pl.col(name).arr.get(n).alias(f"{name}{n}") for name in SIZES for n in range(3)]
    blocks, threads = (pl.col(f"{name}0") * pl.col(f"{name}1") * pl.col(f"{name}2") for name in SIZES)
    hashes, different = [pl.Series("shape_hash", dtype=pl.UInt64)], []
    for rows in in_slices(trace.launches.select(sizes)):
        hashes.append(rows.fill_null(0).hash_rows(seed=0).alias("shape_hash"))
        different.append(rows.hstack([hashes[-1]]).unique("shape_hash"))
    schema = {"shape_hash": pl.UInt64, "blocks": pl.Int64, "threads": pl.Int64}
    known = [
        pl.DataFrame(schema=schema),
        *(each.select("shape_hash", blocks=blocks, threads=threads) for each in different),
    ]
    return pl.concat(hashes), pl.concat(known).unique("shape_hash")


def _by_time(rows: pl.DataFrame, columns: "Sequence[str]") -> "Times | None":
    """The order by these columns and start; None where rows come in it."""
    number = None
    if not has_one(rows, *columns):
        number = find_rows(rows.select(columns).unique().sort(columns), rows).to_numpy()
    return order_in_time(number, rows["start_ns"].to_numpy())
