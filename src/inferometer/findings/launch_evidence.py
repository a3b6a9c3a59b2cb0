"""What rules may ask of single launches: the analyses of a trace with device work, each made once when first asked."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from inferometer.trace.trace import Trace
from inferometer.units import format_duration

if TYPE_CHECKING:
    from inferometer.analyses.call_sites.attribution import Attribution
    from inferometer.analyses.intervals import Times
    from inferometer.analyses.ranks import Ranks
    from inferometer.analyses.steps import StepTable
    from inferometer.analyses.work import Work
    from inferometer.findings.kernel_rows import KernelRows, Origins


class LaunchEvidence:
    """Of one trace with launches.

    Args:
        trace: Needs the tables `launches`, `calls`, `ops`, `frames`, `spans`, `call_paths`, `graph_nodes`, `totals` and
            `log`.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def attribution(self) -> "Attribution":
        """Who launched what: `launches` (a row a launch, with `called_ns`, `thread`, `is_replay`, `how`), `sites`."""
        from inferometer.analyses.call_sites.attribution import attribute

        return attribute(self.trace)

    @cached_property
    def work(self) -> pl.DataFrame:
        """Launches with times, in order of device, stream and start; the columns of `attribution.launches`.

        `kernel` is categorical. Captured kernels, which take no time, and whole graphs are not in it.
        """
        rows = self.attribution.launches.filter(~pl.col("is_captured") & (pl.col("kind").cast(pl.String) != "graph"))
        return rows.sort("rank", "device", "stream", "start_ns", maintain_order=True)

    @cached_property
    def rows(self) -> "KernelRows":
        """The same launches as columns of numbers, for rules about sequences."""
        from inferometer.findings.kernel_rows import make_rows

        return make_rows(self.work)

    @cached_property
    def origins(self) -> "Origins":
        """Where launches come from, as people call it."""
        from inferometer.findings.kernel_rows import Origins

        return Origins(self.attribution.sites)

    @cached_property
    def total_ns(self) -> int:
        """Sum over all launches."""
        return int(self.work["dur_ns"].sum())

    @cached_property
    def window_ns(self) -> int:
        """Wall time from the first launch to the last end, the longest of all devices; 0 without launches."""
        by_device = self.work.group_by("rank", "device").agg(
            ((pl.col("start_ns") + pl.col("dur_ns")).max() - pl.col("start_ns").min()).alias("ns")
        )
        return int(by_device["ns"].max() or 0)  # type: ignore[arg-type]

    @cached_property
    def steps(self) -> "StepTable | None":
        """The steps of the first run, recorded, marked or found; None where there are none."""
        from inferometer.analyses.steps import step_table
        from inferometer.errors import InputError

        try:
            return step_table(self.trace)
        except InputError:
            return None

    @cached_property
    def device_work(self) -> "Work":
        """Launches by place and start, each with its sort: compute, communication or copy. Captured kernels aren't.

        `kind` and `kernel` are categorical.
        """
        from inferometer.analyses.work import arrange_work

        return arrange_work(self.trace.compact("launches").with_columns(pl.col("device").cast(pl.String)))

    @cached_property
    def devices(self) -> pl.DataFrame:
        """One row a place, a device of a rank: its window, busy, idle and exposed time; of `analyses.exposure`."""
        from inferometer.analyses.exposure import device_exposure

        return device_exposure(self.device_work, self.device_work.cut())

    @cached_property
    def ranks(self) -> "Ranks":
        """Who keeps whom waiting in collectives; empty frames where there is one place only."""
        from inferometer.analyses.ranks import compare_ranks

        return compare_ranks(self.device_work, self.devices)

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Every idle gap with its cause, of `analyses.gaps`; also `process`, `thread`, `node` and `is_replay`.

        These four are of the launch that ended it, null where its call isn't known.
        """
        from inferometer.analyses.gaps import find_gaps

        gaps = find_gaps(self.trace, self.device_work)
        key = ["rank", "device", "called_ns"]
        called = self.attribution.launches.filter(pl.col("called_ns").is_not_null() & ~pl.col("is_captured"))
        ended = (
            called.select("start_ns", *key, "process", "thread", "node", "is_replay")
            .with_columns(pl.col("device").cast(pl.String))
            .sort("start_ns")
            .unique(key, keep="first", maintain_order=True)
            .drop("start_ns")
        )
        return gaps.join(ended, on=key, how="left", nulls_equal=True, maintain_order="left")

    @cached_property
    def step_starts_ns(self) -> "Times":
        """When the steps of the first run began, in order; empty where they aren't known."""
        if self.steps is None or "start_ns" not in self.steps.steps.columns:
            return np.empty(0, dtype=np.int64)
        return self.steps.steps["start_ns"].drop_nulls().sort().to_numpy()

    def step_of(self, times_ns: "Times") -> "Times":
        """The place in `step_starts_ns` of the step begun last at each of these times; -1 before the first."""
        return np.searchsorted(self.step_starts_ns, times_ns, side="right") - 1

    def a_step(self, time_ns: float) -> str:
        """`, 5.200 ms a step over 6 steps`; nothing where steps aren't known."""
        steps = len(self.step_starts_ns)
        return f", {format_duration(time_ns / steps)} a step over {steps:,} steps" if steps > 1 else ""
