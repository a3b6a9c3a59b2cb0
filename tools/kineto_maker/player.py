"""Gives every node of a step's program its time, on its host thread and the device's in-order streams.

The second thread, if there is one, has a clock and a stream of its own; its work of a step is played after the step's.

All times are integer nanoseconds on the trace's clock. A child lies inside its parent, siblings never touch, a
kernel starts after the call that queued it has returned and after its stream's previous kernel has ended. The times
are the same with and without stacks and shapes: leaving those out only removes text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .call_times import usual_ns
from .capture import GraphCapture
from .engine import Engine, Program
from .hip import HIP_CALLS
from .nodes import (
    MAIN_STREAM,
    Busy,
    Call,
    Capture,
    Copy,
    Fill,
    Frame,
    Join,
    Launch,
    Mark,
    Node,
    Op,
    Open,
    Replay,
    Wait,
    Work,
)
from .options import Options
from .ranks import SKEW_NS, Peer, compute_factor, peers_of
from .replays import Edits
from .runs import CallRun, FrameRun, GraphNode, OpRun, ReplayRun, StepRun, WorkRun
from .side import ROOTS as SIDE_ROOTS
from .side import side_program

START_NS: Final = 1_612_377_604_118_263  # of the first step, after `baseTimeNanoseconds`
_FIRST_EXTERNAL_ID: Final = 1025
_FIRST_CORRELATION: Final = 40_212

_QUEUE_NS: Final = 420  # from the end of a call to the earliest start of its work
_WAKE_NS: Final = 1_900  # from the end of the last work to the return of a call that waits for it
_GAP_NS: Final = 700  # between two kernels of a stream
_GRAPH_GAP_NS: Final = 450
_PCIE_BYTES_PER_S: Final = 25 * 10**9
_LEAST_WAIT_NS: Final = 1_200
_GROWTH_A_STEP: Final = 0.05  # of the fault `attention-growth`
_GROWING: Final = "BatchDecode"
_COLLECTIVE: Final = re.compile("cross_device_reduce|^ncclDevKernel")


def play(options: Options) -> Iterator[StepRun]:
    """The steps of a trace, one at a time; every call gives the same ones. Of a capture, each graph is a step."""
    engine = GraphCapture(options) if options.mode == "capture" else Engine(options)
    counters = _Counters(sum(map(len, _roots(options))))
    player, *others = (_Player(options, counters, thread) for thread in range(options.threads))
    beside = {batch: side_program(options, batch) for batch in options.batch_sizes}
    for number in range(options.step_count):
        program, start_ns = engine.step(number), player.now
        run = player.play(StepRun(number, options.phase(number), program.mark), program)
        for other in others:
            other.play_beside(run, start_ns, beside[options.batch_at(number)])
        run.ops.sort()
        run.frames.sort()
        yield run


def root_frames(options: Options, start_ns: int, end_ns: int) -> tuple[FrameRun, ...]:
    """The frames around all steps of each thread, from before the first until after the last."""
    frames: list[FrameRun] = []
    for thread, names in enumerate(_roots(options)):
        parent = None
        for depth, name in enumerate(names, start=1):
            ns = end_ns - start_ns - 180 * depth + 2_000
            frames.append(FrameRun(len(frames) + 1, name, start_ns + 90 * depth, ns, parent, thread))
            parent = len(frames)
    return tuple(frames)


def first_ns(options: Options) -> int:
    """When the outermost frame begins."""
    return START_NS + options.rank * SKEW_NS


def _roots(options: Options) -> tuple[tuple[str, ...], ...]:
    """The outermost frames of each thread."""
    main = GraphCapture.roots if options.mode == "capture" else Engine.roots
    return (main, SIDE_ROOTS)[: options.threads]


@dataclass(slots=True)
class _Counters:
    """Numbers that the threads of a process share."""

    python_id: int
    op_count: int = 0
    correlation: int = _FIRST_CORRELATION


class _Player:
    def __init__(self, options: Options, counters: _Counters, thread: int) -> None:
        roots = _roots(options)
        self._thread = thread
        rank = 0 if options.in_lockstep else options.rank  # there, all ranks have the same draws
        self._random = random.Random(f"{options.seed}/{rank}" + "/side" * thread).random
        self._peers: list[Peer] = peers_of(options) if thread == 0 else []
        self._factor = compute_factor(options, options.rank)
        self._grows = options.fault == "attention-growth"
        self._lean = options.lean
        self._slow = re.compile(options.slow[0]) if options.slow else None
        self._slow_factor = options.slow[1] if options.slow else 1.0
        self._hip = options.mode == "capture"
        self._program: int | None = None  # what is open where a captured program begins
        self._edits = Edits(options)
        self.now = first_ns(options) + 25_000
        self._free: dict[int, int] = {MAIN_STREAM: 0}
        self._counters = counters
        self._parent = sum(map(len, roots[: thread + 1]))
        self._op_id: int | None = None
        self._mark_id: int | None = None
        self._open: list[Open] = [Frame(name) for name in roots[thread]]

    def play(self, run: StepRun, program: Program) -> StepRun:
        self._run = run
        self._play(program.before)
        self._play_frame(program.run_batch)
        if program.mark is None:
            batch = run.frames[-1]
            run.start_ns, run.end_ns = batch.start_ns, batch.start_ns + batch.dur_ns
        self._play(program.after)
        run.loop_end_ns = self.now
        self._spend(9_000)
        return run

    def play_beside(self, run: StepRun, start_ns: int, program: tuple[Frame, ...]) -> None:
        """Adds what this thread does from a little after `start_ns` on, or as soon as it has the time."""
        self._run = run
        self.now = max(self.now, start_ns + 40_000)
        self._play(program)
        run.loop_end_ns = max(run.loop_end_ns, self.now)

    def _about(self, usual_ns: int) -> int:
        """Between 0.8 and 1.2 times the usual time, and above 0."""
        return int(usual_ns * (0.8 + 0.4 * self._random())) + 1

    def _spend(self, usual_ns: int) -> None:
        self.now += self._about(usual_ns)

    def _play(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, Frame):
                self._play_frame(node)
            elif isinstance(node, Op):
                self._play_op(node)
            elif isinstance(node, Launch | Copy | Fill):
                self._play_work(node)
                self._spend(90)
            elif isinstance(node, Call):
                self._call(node.api, self._about(usual_ns(node.api)), flows_out=False)
                self._spend(90)
            else:
                self._play_rare(node)
                self._spend(90)

    def _play_rare(self, node: Mark | Wait | Busy | Join | Capture | Replay) -> None:
        if isinstance(node, Mark):
            self._play_mark(node)
        elif isinstance(node, Wait):
            idle_at, began = max(self._free.values()) + _WAKE_NS, self.now
            self._call(node.api, max(_LEAST_WAIT_NS, idle_at - self.now), flows_out=True)
            for peer in self._peers:
                peer.wait(began, _LEAST_WAIT_NS, _WAKE_NS, self.now)
        elif isinstance(node, Busy):
            dur_ns = self._about(node.ns)
            self.now += dur_ns
            self._run.fault_ns += dur_ns
        elif isinstance(node, Join):
            for api in ("cudaEventRecord", "cudaStreamWaitEvent"):
                self._call(api, self._about(usual_ns(api)), flows_out=False)
                self._spend(90)
            for free in (self._free, *(peer.free for peer in self._peers)):
                free[node.stream] = max(free.get(node.stream, 0), free.get(node.other, 0))
        elif isinstance(node, Capture):
            self._program = len(self._open)
            self._play(node.body)
            self._program = None
        else:
            self._play_replay(node)

    def _play_frame(self, node: Frame) -> None:
        if node.small and self._lean:
            return
        start, parent = self.now, self._parent
        self._counters.python_id += 1
        self._parent = own_id = self._counters.python_id
        self._open.append(node)
        self._spend(110)
        if node.body:
            self._play(node.body)
            self._spend(70)
        self._open.pop()
        self._parent = parent
        self._run.frames.append(FrameRun(own_id, node.name, start, self.now - start, parent, self._thread))
        self._spend(45)

    def _play_op(self, node: Op) -> None:
        start, outer_id = self.now, self._op_id
        number, own_id = self._next_op()
        self._op_id = own_id
        self._open.append(node)
        self._spend(420)
        if node.body:
            self._play(node.body)
            self._spend(260)
        self._open.pop()
        self._op_id = outer_id
        self._run.ops.append(OpRun(number, node, start, self.now - start, own_id, self._thread))
        self._spend(130)

    def _play_mark(self, node: Mark) -> None:
        start, outer_id = self.now, self._mark_id
        number, self._mark_id = self._next_op()
        external_id = self._mark_id
        self._open.append(node)
        self._spend(900)
        self._play(node.body)
        self._open.pop()
        self._mark_id = outer_id
        self._run.ops.append(OpRun(number, node, start, self.now - start, external_id, self._thread))
        self._run.start_ns, self._run.end_ns = start, self.now  # the outermost is the last to say so

    def _next_op(self) -> tuple[int, int]:
        number = self._counters.op_count
        self._counters.op_count += 1
        return number, _FIRST_EXTERNAL_ID + number

    def _play_work(self, node: Work) -> None:
        if isinstance(node, Launch):
            api, stream, dur_ns = node.api, node.stream, self._kernel_ns(node)
        else:
            api = "cudaMemcpyAsync" if isinstance(node, Copy) else "cudaMemsetAsync"
            usual = 780 + node.bytes * 10**9 // _PCIE_BYTES_PER_S
            stream = node.stream if isinstance(node, Copy) else MAIN_STREAM
            dur_ns = int(usual * (0.95 + 0.1 * self._random()))
        place = len(self._run.device)  # before its call: so Kineto writes them
        launch = node if self._hip and isinstance(node, Launch) else None
        self._call(api, self._about(usual_ns(api)), flows_out=True, launch=launch)
        if self._program is None:
            self._run.device.insert(place, self._queue(node, stream, dur_ns, _GAP_NS, None))

    def _play_replay(self, node: Replay) -> None:
        self._call("cudaGraphLaunch", self._about(usual_ns("cudaGraphLaunch")), flows_out=True)
        kernels = self._edits.of(node)
        for launch, place, recorded in kernels:
            work = self._queue(launch, launch.stream, self._kernel_ns(launch), _GRAPH_GAP_NS, place)
            if recorded:
                self._run.device.append(work)
        dropped = tuple(kernel.place.number for kernel in kernels if not kernel.recorded)
        added = len(kernels) - len(node.kernels)
        self._run.replays.append(
            ReplayRun(self._counters.correlation, node.graph_id, node.batch, len(node.kernels), dropped, added)
        )

    def _queue(self, node: Work, stream: int, dur_ns: int, gap_ns: int, graph: GraphNode | None) -> WorkRun:
        """Runs the work after its stream's previous one, and after the call that has just returned."""
        gap_ns += int(gap_ns * self._random() / 2)
        earliest = self.now + _QUEUE_NS
        start = max(self._free.get(stream, 0) + gap_ns, earliest)
        dur_ns = self._among_ranks(node, stream, start, dur_ns, gap_ns, earliest) if self._peers else dur_ns
        self._free[stream] = start + dur_ns
        correlation, around = self._counters.correlation, tuple(self._open)
        return WorkRun(
            node, stream, start, dur_ns, correlation, self._op_id, graph, around, self._mark_id, self._thread
        )

    def _among_ranks(self, node: Work, stream: int, start: int, dur_ns: int, gap_ns: int, earliest: int) -> int:
        """How long the work takes on this rank: a collective lasts until the last rank has brought its part."""
        is_collective = isinstance(node, Launch) and _COLLECTIVE.search(node.kernel) is not None
        starts = [peer.begin(stream, gap_ns, earliest) for peer in self._peers]
        last = max(start, *starts)
        for peer, began in zip(self._peers, starts, strict=True):
            peer.free[stream] = last + dur_ns if is_collective else began + round(dur_ns * peer.factor)
        return last - start + dur_ns if is_collective else round(dur_ns * self._factor)

    def _call(self, api: str, dur_ns: int, *, flows_out: bool, launch: Launch | None = None) -> None:
        self._counters.correlation += 1
        api = HIP_CALLS.get(api, api) if self._hip else api
        times, ids = (api, self.now, dur_ns), (self._counters.correlation, self._op_id)
        around = () if self._program is None else tuple(self._open)
        run = CallRun(*times, *ids, flows_out, self._thread, launch, around, self._program)
        self._run.device.append(run)
        self.now += dur_ns

    def _kernel_ns(self, launch: Launch) -> int:
        """Within 4 % of the usual time; three in a thousand take 1.7 times as long, as on a busy card."""
        draw = self._random()
        ns = launch.ns * (1.7 if draw > 0.997 else 0.96 + 0.08 * draw)
        if self._grows and _GROWING in launch.kernel:
            ns *= 1 + _GROWTH_A_STEP * self._run.number
        if self._slow is not None and self._slow.search(launch.kernel):
            ns *= self._slow_factor
        return round(ns)
