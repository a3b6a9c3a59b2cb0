"""Gives every node of a step's program its time, on one host thread and the device's in-order streams.

All times are integer nanoseconds on the trace's clock. A child lies inside its parent, siblings never touch, a
kernel starts after the call that queued it has returned and after its stream's previous kernel has ended. The times
are the same with and without stacks and shapes: leaving those out only removes text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from .engine import ROOT_FRAMES, Engine, Program
from .nodes import (
    MAIN_STREAM,
    Busy,
    Call,
    Copy,
    Fill,
    Frame,
    Join,
    Launch,
    Mark,
    Node,
    Op,
    Replay,
    Wait,
    Work,
)
from .options import Options
from .runs import CallRun, FrameRun, OpRun, Site, StepRun, WorkRun

START_NS: Final = 1_612_377_604_118_263  # of the first step, after `baseTimeNanoseconds`
_RANK_SKEW_NS: Final = 17_250
_FIRST_EXTERNAL_ID: Final = 1025
_FIRST_CORRELATION: Final = 40_212

_CALL_NS: Final = {
    "cudaGraphLaunch": 21_000,
    "cudaMemcpyAsync": 5_200,
    "cudaMemsetAsync": 2_900,
    "cudaEventRecord": 900,
    "cudaStreamWaitEvent": 700,
    "cudaFuncSetAttribute": 240,
    "cudaStreamIsCapturing": 210,
}
_LAUNCH_CALL_NS: Final = 3_100
_QUEUE_NS: Final = 420  # from the end of a call to the earliest start of its work
_WAKE_NS: Final = 1_900  # from the end of the last work to the return of a call that waits for it
_GAP_NS: Final = 700  # between two kernels of a stream
_GRAPH_GAP_NS: Final = 450
_PCIE_BYTES_PER_S: Final = 25 * 10**9


def play(options: Options) -> Iterator[StepRun]:
    """The steps of a trace, one at a time; every call gives the same ones."""
    engine = Engine(options)
    player = _Player(options)
    for number in range(options.steps):
        program = engine.step(number)
        yield player.play(StepRun(number, options.phase(number), program.mark), program)


def root_frames(start_ns: int, end_ns: int) -> tuple[FrameRun, ...]:
    """The frames around all steps, from before the first until after the last."""
    return tuple(
        FrameRun(number, name, start_ns + 90 * number, end_ns - start_ns - 180 * number + 2_000, number - 1 or None)
        for number, name in enumerate(ROOT_FRAMES, start=1)
    )


def first_ns(options: Options) -> int:
    """When the outermost frame begins."""
    return START_NS + options.rank * _RANK_SKEW_NS


class _Player:
    def __init__(self, options: Options) -> None:
        self._random = random.Random(f"{options.seed}/{options.rank}").random
        self._lean = options.lean
        self._slow = re.compile(options.slow[0]) if options.slow else None
        self._slow_factor = options.slow[1] if options.slow else 1.0
        self._now = first_ns(options) + 25_000
        self._free: dict[int, int] = {MAIN_STREAM: 0}
        self._op_count = 0
        self._correlation = _FIRST_CORRELATION
        self._python_id = len(ROOT_FRAMES)
        self._parent = len(ROOT_FRAMES)
        self._op_id: int | None = None
        self._site = Site(None, ROOT_FRAMES[-1], None)

    def play(self, run: StepRun, program: Program) -> StepRun:
        self._run = run
        self._play(program.before)
        self._play_frame(program.run_batch)
        if program.mark is None:
            batch = run.frames[-1]
            run.start_ns, run.end_ns = batch.start_ns, batch.start_ns + batch.dur_ns
        self._play(program.after)
        run.loop_end_ns = self._now
        self._spend(9_000)
        run.ops.sort()
        run.frames.sort()
        return run

    def _about(self, usual_ns: int) -> int:
        """Between 0.8 and 1.2 times the usual time, and above 0."""
        return int(usual_ns * (0.8 + 0.4 * self._random())) + 1

    def _spend(self, usual_ns: int) -> None:
        self._now += self._about(usual_ns)

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
                self._call(node.api, self._about(_CALL_NS[node.api]), flows_out=False)
                self._spend(90)
            else:
                self._play_rare(node)
                self._spend(90)

    def _play_rare(self, node: Mark | Wait | Busy | Join | Replay) -> None:
        if isinstance(node, Mark):
            self._play_mark(node)
        elif isinstance(node, Wait):
            idle_at = max(self._free.values()) + _WAKE_NS
            self._call(node.api, max(1_200, idle_at - self._now), flows_out=True)
        elif isinstance(node, Busy):
            dur_ns = self._about(node.ns)
            self._now += dur_ns
            self._run.fault_ns += dur_ns
        elif isinstance(node, Join):
            for api in ("cudaEventRecord", "cudaStreamWaitEvent"):
                self._call(api, self._about(_CALL_NS[api]), flows_out=False)
                self._spend(90)
            self._free[node.stream] = max(self._free.get(node.stream, 0), self._free[node.other])
        else:
            self._play_replay(node)

    def _play_frame(self, node: Frame) -> None:
        if node.small and self._lean:
            return
        start, parent, site = self._now, self._parent, self._site
        self._python_id += 1
        self._parent = own_id = self._python_id
        module = node.name[11:] if node.name.startswith("nn.Module: ") else site.module
        self._site = Site(site.op, node.name, module)
        self._spend(110)
        if node.body:
            self._play(node.body)
            self._spend(70)
        self._parent, self._site = parent, site
        self._run.frames.append(FrameRun(own_id, node.name, start, self._now - start, parent))
        self._spend(45)

    def _play_op(self, node: Op) -> None:
        start, outer_id, site = self._now, self._op_id, self._site
        number, own_id = self._next_op()
        self._op_id = own_id
        self._site = site._replace(op=node.name)
        self._spend(420)
        if node.body:
            self._play(node.body)
            self._spend(260)
        self._op_id, self._site = outer_id, site
        self._run.ops.append(OpRun(number, node, start, self._now - start, own_id))
        self._spend(130)

    def _play_mark(self, node: Mark) -> None:
        start = self._now
        number, external_id = self._next_op()
        self._spend(900)
        self._play(node.body)
        self._run.ops.append(OpRun(number, node, start, self._now - start, external_id))
        self._run.start_ns, self._run.end_ns = start, self._now

    def _next_op(self) -> tuple[int, int]:
        self._op_count += 1
        return self._op_count - 1, _FIRST_EXTERNAL_ID + self._op_count - 1

    def _play_work(self, node: Work) -> None:
        if isinstance(node, Launch):
            api, stream, dur_ns = node.api, node.stream, self._kernel_ns(node)
        else:
            api = "cudaMemcpyAsync" if isinstance(node, Copy) else "cudaMemsetAsync"
            usual_ns = 780 + node.bytes * 10**9 // _PCIE_BYTES_PER_S
            stream, dur_ns = MAIN_STREAM, int(usual_ns * (0.95 + 0.1 * self._random()))
        place = len(self._run.device)  # before its call: so Kineto writes them
        self._call(api, self._about(_CALL_NS.get(api, _LAUNCH_CALL_NS)), flows_out=True)
        self._run.device.insert(place, self._queue(node, stream, dur_ns, _GAP_NS, None))

    def _play_replay(self, node: Replay) -> None:
        self._call("cudaGraphLaunch", self._about(_CALL_NS["cudaGraphLaunch"]), flows_out=True)
        for number, launch in enumerate(node.launches, start=1):
            graph = (node.graph_id, number)
            work = self._queue(launch, launch.stream, self._kernel_ns(launch), _GRAPH_GAP_NS, graph)
            self._run.device.append(work)

    def _queue(self, node: Work, stream: int, dur_ns: int, gap_ns: int, graph: tuple[int, int] | None) -> WorkRun:
        """Runs the work after its stream's previous one, and after the call that has just returned."""
        gap_ns += int(gap_ns * self._random() / 2)
        start = max(self._free.get(stream, 0) + gap_ns, self._now + _QUEUE_NS)
        self._free[stream] = start + dur_ns
        return WorkRun(node, stream, start, dur_ns, self._correlation, self._op_id, graph, self._site)

    def _call(self, api: str, dur_ns: int, *, flows_out: bool) -> None:
        self._correlation += 1
        self._run.device.append(CallRun(api, self._now, dur_ns, self._correlation, self._op_id, flows_out))
        self._now += dur_ns

    def _kernel_ns(self, launch: Launch) -> int:
        """Within 4 % of the usual time; three in a thousand take 1.7 times as long, as on a busy card."""
        draw = self._random()
        ns = launch.ns * (1.7 if draw > 0.997 else 0.96 + 0.08 * draw)
        if self._slow is not None and self._slow.search(launch.kernel):
            ns *= self._slow_factor
        return round(ns)
