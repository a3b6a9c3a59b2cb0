"""The truth about every single launch: what was open around the call that queued it, and what a replay replays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .chains import Chain, chain_of
from .nodes import Open
from .runs import StepRun, WorkRun


class LaunchTruth(NamedTuple):
    """Device work of the file. `chain` is around its call; a replay's kernels have one call, so one chain.

    `captured` is for a replayed kernel: the part of its chain that lies within the captured program, from the model's
    outermost frame on. The same node's chain in an eager run or in the capture ends in it: ops and modules are the
    whole chain's, frames are its last ones. None outside replays, and for a kernel that the program doesn't have.
    """

    kind: str  # Kineto's category
    kernel: str
    start_ns: int
    dur_ns: int
    stream: int
    correlation: int
    step: int
    thread: int
    chain: Chain
    graph_id: int | None
    node: int | None  # 1, 2... in the captured program; beyond its end for kernels that were added
    captured: Chain | None


class ReplayTruth(NamedTuple):
    """One replay. `kernels` is the program's number; `dropped` are nodes without a record, `added` kernels too many."""

    correlation: int
    step: int
    graph_id: int
    batch: int
    kernels: int
    dropped: tuple[int, ...]
    added: int


class CapturedCall(NamedTuple):
    """A call that added a kernel to the graph of a batch size, as its node `node`. The device did nothing."""

    kernel: str
    start_ns: int
    correlation: int
    batch: int
    node: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    chain: Chain
    captured: Chain  # its part within the captured program


@dataclass(slots=True)
class LaunchTruths:
    """Everything known of single launches, in the order of the file's steps."""

    launches: list[LaunchTruth] = field(default_factory=list)
    replays: list[ReplayTruth] = field(default_factory=list)
    captured_calls: list[CapturedCall] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Columns. Kernels and chains are numbers of rows in the tables `kernels` and `chains`."""
        tables = _Tables()
        return {
            "launches": tables.columns(LaunchTruth._fields, self.launches),
            "replays": tables.columns(ReplayTruth._fields, self.replays),
            "captured_calls": tables.columns(CapturedCall._fields, self.captured_calls),
            "kernels": list(tables.kernels),
            "chains": [chain._asdict() for chain in tables.chains],
        }


class LaunchTally:
    """Collects the truth step by step."""

    def __init__(self, *, stack: bool) -> None:
        self._stack = stack
        self._chains: dict[Chain, Chain] = {}
        self.truths = LaunchTruths()

    def add(self, run: StepRun, batch: int) -> None:
        """Adds a step, which decodes `batch` requests if it decodes."""
        known: dict[tuple[Open, ...], Chain] = {}
        self.truths.launches += [self._launch(run.number, work, known) for work in run.work()]
        self.truths.replays += [ReplayTruth(item.correlation, run.number, *item[1:]) for item in run.replays]
        for node, (call, captured) in enumerate(run.captured_calls(), start=1):
            chain, within = self._chain(call.around, known), self._chain(captured.around, known)
            launch, place = captured.launch, (call.start_ns, call.correlation, batch, node)
            row = CapturedCall(launch.kernel, *place, launch.grid, launch.block, chain, within)
            self.truths.captured_calls.append(row)

    def _launch(self, step: int, run: WorkRun, known: dict[tuple[Open, ...], Chain]) -> LaunchTruth:
        graph_id, node, captured = run.graph or (None, None, None)
        chain = self._chain(run.around, known)
        within = None if captured is None else self._chain(captured.around, known)
        what = (run.category, run.name, run.start_ns, run.dur_ns, run.stream, run.correlation)
        return LaunchTruth(*what, step, run.thread, chain, graph_id, node, within)

    def _chain(self, around: tuple[Open, ...], known: dict[tuple[Open, ...], Chain]) -> Chain:
        """The same object for the same names."""
        if around not in known:
            chain = chain_of(around, stack=self._stack)
            known[around] = self._chains.setdefault(chain, chain)
        return known[around]


class _Tables:
    """Numbers kernels and chains in the order in which they come."""

    def __init__(self) -> None:
        self.kernels: dict[str, int] = {}
        self.chains: dict[Chain, int] = {}

    def columns(self, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
        """A list for each name."""
        columns: dict[str, list[object]] = {name: [] for name in names}
        for row in rows:
            for name, value in zip(names, row, strict=True):
                columns[name].append(self._number(name, value))
        return columns

    def _number(self, name: str, value: object) -> object:
        if isinstance(value, Chain):
            return self.chains.setdefault(value, len(self.chains))
        if name == "kernel" and isinstance(value, str):
            return self.kernels.setdefault(value, len(self.kernels))
        return value
