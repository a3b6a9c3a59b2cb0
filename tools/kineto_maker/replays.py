"""What a profiler records of a replay, when it isn't just the program that was captured.

Lost records leave a hole: the device runs such a kernel, and takes its time. An added kernel runs as well. It is
either of a name that the program doesn't have or of one that it has elsewhere, and never that of a neighbour.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from .kernels import Kernels
from .nodes import Captured, Launch, Replay
from .options import Options
from .runs import GraphNode


class Replayed(NamedTuple):
    """A kernel that the device runs; it may miss in the file."""

    launch: Launch
    place: GraphNode
    recorded: bool


class Edits:
    """Draws from numbers of its own, so that losing records changes nothing else."""

    def __init__(self, options: Options) -> None:
        self._drop, self._add = options.drop_kernels, options.add_kernels
        self._random = random.Random(f"{options.seed}/{options.rank}/replays")
        self._foreign = Kernels(options).launch("fill", (1, 1, 1))

    def of(self, replay: Replay) -> list[Replayed]:
        """The replay's kernels in order. Those that were added have numbers beyond the program's."""
        done: list[Replayed] = []
        extra = len(replay.kernels)
        for number, kernel in enumerate(replay.kernels, start=1):
            recorded = not (self._drop and self._random.random() < self._drop)
            done.append(Replayed(kernel.launch, GraphNode(replay.graph_id, number, kernel), recorded))
            if self._add and self._random.random() < self._add:
                extra += 1
                launch = self._stranger(replay.kernels, number)
                done.append(Replayed(launch, GraphNode(replay.graph_id, extra, None), recorded=True))
        return done

    def _stranger(self, kernels: tuple[Captured, ...], place: int) -> Launch:
        """A kernel that may stand between the first `place` ones and the rest without looking like one of them."""
        near = {kernel.launch.kernel for kernel in kernels[max(0, place - 1) : place + 1]}
        twin = self._random.choice(kernels).launch
        return self._foreign if twin.kernel in near or self._random.random() < 0.5 else twin
