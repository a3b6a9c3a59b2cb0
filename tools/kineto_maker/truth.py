"""What a generated trace holds, counted from the timed steps and not from the text.

Every number is exact. Nanoseconds are on the trace's own clock: `base_time_ns` plus 1000 times a `ts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace

from .chains import Site, chain_of
from .faults import Fault, rule_of
from .kineto_text import BASE_TIME_NS
from .launch_truth import LaunchTally, LaunchTruths
from .nodes import Launch, Mark, Open
from .options import Options, Phase
from .runs import StepRun


@dataclass(frozen=True, slots=True)
class StepTruth:
    """One step, or one capture: when the engine ran its batch, and the kernels that its thread queued.

    `fault_ns` is the Python time of the fault, during which the device has nothing to do.
    """

    step: int
    phase: Phase
    mark: str | None
    start_ns: int
    end_ns: int
    kernels: int
    kernel_ns: int
    fault_ns: int


@dataclass(frozen=True, slots=True)
class CallSite:
    """A kernel and the innermost op, frame and module around the call that queued it, as the file shows them."""

    kernel: str
    op: str | None
    frame: str | None
    module: str | None
    launches: int
    kernel_ns: int


@dataclass(slots=True)
class Truth:
    """The whole trace. `events` counts by category; those without one by phase (`M`, `i`).

    `rule` is that of `inferometer findings` which should name the fault; None without one.
    """

    fault: Fault
    rule: str | None = None
    base_time_ns: int = BASE_TIME_NS
    kernels: int = 0
    kernel_ns: int = 0
    events: dict[str, int] = field(default_factory=dict)
    steps: list[StepTruth] = field(default_factory=list)
    call_sites: list[CallSite] = field(default_factory=list)
    by_launch: LaunchTruths | None = None  # where it was asked for

    def as_json(self) -> dict[str, object]:
        """Plain values, ready for `json.dumps`."""
        told: dict[str, object] = asdict(replace(self, by_launch=None))
        del told["by_launch"]
        return told if self.by_launch is None else {**told, "by_launch": self.by_launch.as_json()}


class Tally:
    """Collects the truth step by step; of every launch if `launches`."""

    def __init__(self, options: Options, *, launches: bool) -> None:
        self._options = options
        self._launches = LaunchTally(stack=options.stack) if launches else None
        self._events: Counter[str] = Counter()
        self._steps: list[StepTruth] = []
        self._site_launches: Counter[tuple[str, Site]] = Counter()
        self._site_ns: Counter[tuple[str, Site]] = Counter()
        self.streams: set[int] = set()
        self.op_count = 0

    def add(self, run: StepRun) -> None:
        """Counts a step."""
        work = run.work()
        durations = [item.dur_ns for item in work if isinstance(item.node, Launch) and item.thread == 0]
        self._steps.append(
            StepTruth(
                run.number,
                run.phase,
                run.mark,
                run.start_ns,
                run.end_ns,
                len(durations),
                sum(durations),
                run.fault_ns,
            )
        )
        self.streams.update(item.stream for item in work)
        self.op_count += len(run.ops)
        self._count_events(run)
        self._count_sites(run)
        if self._launches is not None:
            self._launches.add(run, self._options.batch_at(run.number))

    def count(self, category: str, number: int) -> None:
        """Counts events that don't belong to a step."""
        self._events[category] += number

    def result(self) -> Truth:
        """The truth of all that was added; call sites by the time of their kernels, longest first."""
        sites = [
            CallSite(kernel, *site, launches, self._site_ns[kernel, site])
            for (kernel, site), launches in self._site_launches.items()
        ]
        return Truth(
            fault=self._options.fault,
            rule=rule_of(self._options.fault),
            kernels=self._site_launches.total(),
            kernel_ns=self._site_ns.total(),
            events={category: number for category, number in sorted(self._events.items()) if number},
            steps=self._steps,
            call_sites=sorted(sites, key=lambda site: -site.kernel_ns),
            by_launch=None if self._launches is None else self._launches.truths,
        )

    def _count_events(self, run: StepRun) -> None:
        for op in run.ops:
            self._events["user_annotation" if isinstance(op.node, Mark) else "cpu_op"] += 1
        if self._options.stack:
            self._events["python_function"] += len(run.frames)
        for item in run.device:
            self._events[item.category] += 1
        self._events["ac2g"] += len(run.device)
        self._events["gpu_user_annotation"] += len(run.device_marks())

    def _count_sites(self, run: StepRun) -> None:
        known: dict[tuple[Open, ...], Site] = {}
        for item in run.work():
            if not isinstance(item.node, Launch):
                continue
            if item.around not in known:
                known[item.around] = chain_of(item.around, stack=self._options.stack).site
            site = known[item.around]
            self._site_launches[item.node.kernel, site] += 1
            self._site_ns[item.node.kernel, site] += item.dur_ns
