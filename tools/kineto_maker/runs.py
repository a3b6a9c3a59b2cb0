"""Nodes with their times: what one step of a trace holds. All times are integer nanoseconds on the trace's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .nodes import Mark, Op, Work
from .options import Phase


class Site(NamedTuple):
    """Where a launch was queued: the innermost op, frame and module that are open."""

    op: str | None
    frame: str | None
    module: str | None


class OpRun(NamedTuple):
    """An op or a mark. `number` counts both in the order of their starts."""

    number: int
    node: Op | Mark
    start_ns: int
    dur_ns: int
    external_id: int


class FrameRun(NamedTuple):
    """A Python call; `parent_id` is None for the outermost."""

    python_id: int
    name: str
    start_ns: int
    dur_ns: int
    parent_id: int | None


class CallRun(NamedTuple):
    """A runtime call; `flows_out` where it queued work or waited for it."""

    api: str
    start_ns: int
    dur_ns: int
    correlation: int
    external_id: int | None
    flows_out: bool


class WorkRun(NamedTuple):
    """Device work; `graph_node` is its place in the graph that was replayed, if one was."""

    node: Work
    stream: int
    start_ns: int
    dur_ns: int
    correlation: int
    external_id: int | None
    graph: tuple[int, int] | None
    site: Site


class DeviceMark(NamedTuple):
    """A step as one stream saw it: from the start of its first work to the end of its last."""

    name: str
    external_id: int
    stream: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class StepRun:
    """One step, timed. `device` holds calls and work in the order in which Kineto writes them."""

    number: int
    phase: Phase
    mark: str | None
    ops: list[OpRun] = field(default_factory=list)
    frames: list[FrameRun] = field(default_factory=list)
    device: list[CallRun | WorkRun] = field(default_factory=list)
    start_ns: int = 0  # of the mark, or of `run_batch` without one
    end_ns: int = 0
    loop_end_ns: int = 0  # when the scheduler has processed the step's tokens
    fault_ns: int = 0  # what `Busy` nodes took

    def work(self) -> list[WorkRun]:
        """The device work that the step queued."""
        return [run for run in self.device if isinstance(run, WorkRun)]

    def device_marks(self) -> list[DeviceMark]:
        """One for each stream that worked for the step, if the step is marked."""
        marks = [run for run in self.ops if isinstance(run.node, Mark)]
        by_stream: dict[int, list[WorkRun]] = {}
        for run in self.work():
            by_stream.setdefault(run.stream, []).append(run)
        return [
            DeviceMark(mark.node.name, mark.external_id, stream, runs[0].start_ns, runs[-1].start_ns + runs[-1].dur_ns)
            for mark in marks
            for stream, runs in sorted(by_stream.items())
        ]
