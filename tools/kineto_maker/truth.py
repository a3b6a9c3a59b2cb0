"""What a generated trace holds, counted from the timed steps and not from the text.

Every number is exact. Nanoseconds are on the trace's own clock: `base_time_ns` plus 1000 times a `ts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field

from .kineto_text import BASE_TIME_NS
from .nodes import Copy, Launch, Mark
from .options import Fault, Options, Phase
from .runs import CallRun, Site, StepRun, WorkRun


@dataclass(frozen=True, slots=True)
class StepTruth:
    """One step: when the engine ran its batch, and the kernels that it queued.

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
    """The whole trace. `events` counts by category; those without one by phase (`M`, `i`)."""

    fault: Fault
    base_time_ns: int = BASE_TIME_NS
    kernels: int = 0
    kernel_ns: int = 0
    events: dict[str, int] = field(default_factory=dict)
    steps: list[StepTruth] = field(default_factory=list)
    call_sites: list[CallSite] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Plain values, ready for `json.dumps`."""
        return asdict(self)


class Tally:
    """Collects the truth step by step."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._events: Counter[str] = Counter()
        self._steps: list[StepTruth] = []
        self._site_launches: Counter[tuple[str, Site]] = Counter()
        self._site_ns: Counter[tuple[str, Site]] = Counter()
        self.streams: set[int] = set()
        self.op_count = 0

    def add(self, run: StepRun) -> None:
        """Counts a step."""
        work = run.work()
        durations = [item.dur_ns for item in work if isinstance(item.node, Launch)]
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
        for item in work:
            self._count_site(item)

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
            kernels=sum(step.kernels for step in self._steps),
            kernel_ns=sum(step.kernel_ns for step in self._steps),
            events={category: number for category, number in sorted(self._events.items()) if number},
            steps=self._steps,
            call_sites=sorted(sites, key=lambda site: -site.kernel_ns),
        )

    def _count_events(self, run: StepRun) -> None:
        for op in run.ops:
            self._events["user_annotation" if isinstance(op.node, Mark) else "cpu_op"] += 1
        if self._options.stack:
            self._events["python_function"] += len(run.frames)
        for item in run.device:
            self._events[_category(item)] += 1
        self._events["ac2g"] += len(run.device)
        self._events["gpu_user_annotation"] += len(run.device_marks())

    def _count_site(self, run: WorkRun) -> None:
        if isinstance(run.node, Launch):
            site = run.site if self._options.stack else Site(run.site.op, None, None)
            self._site_launches[run.node.kernel, site] += 1
            self._site_ns[run.node.kernel, site] += run.dur_ns


def _category(run: CallRun | WorkRun) -> str:
    if isinstance(run, CallRun):
        return "cuda_runtime" if run.api.startswith("cuda") else "cuda_driver"
    if isinstance(run.node, Launch):
        return "kernel"
    return "gpu_memcpy" if isinstance(run.node, Copy) else "gpu_memset"
