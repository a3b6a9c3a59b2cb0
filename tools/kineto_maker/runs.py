"""Nodes with their times: what one step of a trace holds. All times are integer nanoseconds on the trace's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .nodes import Captured, Copy, Launch, Mark, Op, Open, Work
from .options import Phase

_COPY_NAMES: Final = {"HtoD": "Memcpy HtoD (Pinned -> Device)", "DtoH": "Memcpy DtoH (Device -> Pinned)"}


class OpRun(NamedTuple):
    """An op or a mark. `number` counts both in the order of their starts. `thread` is 0, or 1 on the second one."""

    number: int
    node: Op | Mark
    start_ns: int
    dur_ns: int
    external_id: int
    thread: int = 0


class FrameRun(NamedTuple):
    """A Python call; `parent_id` is None for the outermost."""

    python_id: int
    name: str
    start_ns: int
    dur_ns: int
    parent_id: int | None
    thread: int = 0


class CallRun(NamedTuple):
    """A runtime call; `flows_out` where it queued work or waited for it. A HIP profiler names the launched kernel."""

    api: str
    start_ns: int
    dur_ns: int
    correlation: int
    external_id: int | None
    flows_out: bool
    thread: int = 0
    launch: Launch | None = None
    around: tuple[Open, ...] = ()  # of a call in a capture
    program: int | None = None  # in a capture: as many of `around` are around the captured program

    @property
    def category(self) -> str:
        """Kineto's: the HIP runtime's calls share CUDA's."""
        return "cuda_runtime" if self.api.startswith(("cuda", "hip")) else "cuda_driver"


class GraphNode(NamedTuple):
    """A place in a replayed graph. `captured` is the program's kernel there; None of one that the program lacks."""

    graph_id: int
    number: int
    captured: Captured | None


class WorkRun(NamedTuple):
    """Device work; `graph` is its place in the graph that was replayed, if one was."""

    node: Work
    stream: int
    start_ns: int
    dur_ns: int
    correlation: int
    external_id: int | None
    graph: GraphNode | None
    around: tuple[Open, ...]
    mark_id: int | None  # external id of the innermost open mark
    thread: int = 0

    @property
    def category(self) -> str:
        """Kineto's."""
        if isinstance(self.node, Launch):
            return "kernel"
        return "gpu_memcpy" if isinstance(self.node, Copy) else "gpu_memset"

    @property
    def name(self) -> str:
        """The kernel's, or Kineto's words for a copy or a fill."""
        if isinstance(self.node, Launch):
            return self.node.kernel
        return _COPY_NAMES[self.node.kind] if isinstance(self.node, Copy) else "Memset (Device)"


class ReplayRun(NamedTuple):
    """One replay: the program's kernels, the nodes whose records were lost, and how many kernels it doesn't have."""

    correlation: int
    graph_id: int
    batch: int
    kernels: int
    dropped: tuple[int, ...]
    added: int


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
    replays: list[ReplayRun] = field(default_factory=list)
    start_ns: int = 0  # of the mark, or of `run_batch` without one
    end_ns: int = 0
    loop_end_ns: int = 0  # when the scheduler has processed the step's tokens
    fault_ns: int = 0  # what `Busy` nodes took

    def work(self) -> list[WorkRun]:
        """The device work that was queued, by the second thread while the step ran, too."""
        return [run for run in self.device if isinstance(run, WorkRun)]

    def captured_calls(self) -> list[tuple[CallRun, Captured]]:
        """The calls that added a kernel to a graph, in order, with what they added."""
        calls = (run for run in self.device if isinstance(run, CallRun) and run.program is not None)
        return [(run, Captured(run.launch, run.around[run.program :])) for run in calls if run.launch is not None]

    def device_marks(self) -> list[DeviceMark]:
        """One for each mark and stream that worked for it. As Kineto has it, work belongs to the innermost mark."""
        by_mark: dict[tuple[int | None, int], list[WorkRun]] = {}
        for run in self.work():
            by_mark.setdefault((run.mark_id, run.stream), []).append(run)
        marks = {run.external_id: run.node.name for run in self.ops if isinstance(run.node, Mark)}
        return [
            DeviceMark(name, mark, stream, runs[0].start_ns, runs[-1].start_ns + runs[-1].dur_ns)
            for mark, name in marks.items()
            for (of_mark, stream), runs in sorted(by_mark.items(), key=lambda item: item[0][1])
            if of_mark == mark
        ]
