"""What slowed, as far as times show: the step, whole classes of functions, single kinds of calls, or waiting.

Where the device is the CPU itself, its kernels are of class `cpu`, too: other causes slow them than those of a GPU.

The step counts as slower or faster only where its mean changed and its median went the same way: a few steps out of
line move the mean of a whole run, and leave it uneven. Where the mean is much longer, but its interval reaches into
what runs of one program differ by, it is unclear. A class counts only where most of its functions slowed, by time: one
slower kernel is no sign of a slower device. Single functions count for a cause that slows just those, in a run whose
mean step is longer.
"""

import re
from functools import cached_property
from typing import Literal

import msgspec

from inferometer.analyses.compare.activity.activity import COMPUTE
from inferometer.analyses.compare.causes.metric_roles import CauseClass, MetricRole
from inferometer.analyses.compare.causes.resampling import median_ratio_interval
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.contributions import WAITING as WAITING_LINE
from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.analyses.comparison_limits import (
    AGREES,
    CLEAR_CHANGE,
    DISAGREES,
    FEW_CHANGE,
    MIN_CHANGE,
    MIN_CYCLES,
    MIN_SHARE,
    UNKNOWN,
)

Speed = Literal["slower", "faster", "same", "unclear", "uneven", "unknown"]
WAITING, CPU = "waiting", "cpu"
_CALLS = {  # host calls and copies that a cause slows, whatever else the class does
    "disk": r"p?(?:read|write)(?:v|64)?|fsync|fdatasync|open(?:at)?|disk_.*",
    "memory_pressure": r"m(?:un|re)?map|brk|madvise|page_fault.*|cudaHostAlloc.*|.*malloc.*|.*free.*",
    "network": r"(?:recv|send)(?:from|to|msg|mmsg)?|epoll_wait.*|poll|select|read|write",
    "pcie_traffic": r"Memcpy (?:HtoD|DtoH).*|\[CUDA memcpy (?:Host-to-Device|Device-to-Host)\]",
    "gpu_memory": r"(?:cu(?:da)?|hip)(?:Malloc|Free|MemAlloc|MemFree|MemCreate|MemMap|MemRelease).*",
    "cpu_clock": r"oncpu",
    "cpu_contention": r"runq",
    "cpu_quota": r"runq",  # the kernel counts the wait for a quota so
}


class Slowdown(msgspec.Struct, frozen=True, dict=True):
    """`classes`: whose functions slowed together; `lines`: functions that slowed; `waits`: more time on nothing.

    `on_cpu`: whether the device of the kernels is the CPU. `communicates`: whether the program may wait for others.
    `may_be_longer`: whether the mean step is. `least_ns`: what functions must add to it to be worth a word.
    """

    speed: Speed
    classes: frozenset[str]
    lines: tuple[Contribution, ...]
    waits: bool
    has_times: bool
    on_cpu: bool = False
    communicates: bool = False
    may_be_longer: bool = False
    least_ns: float = 0.0

    @property
    def is_any(self) -> bool:
        """Whether the step or a whole class of functions slowed."""
        return self.speed == "slower" or bool(self.classes)

    @property
    def may_be_slower(self) -> bool:
        """Whether something slowed, in a step that isn't faster; single functions only where it may be longer."""
        is_open = self.speed == "unknown" and self.may_be_longer
        return self.speed != "faster" and (self.is_any or (is_open and bool(self.lines)))

    def shows(self, cause_class: CauseClass) -> bool:
        """Whether something slowed that this cause may explain."""
        calls = _CALLS.get(cause_class)
        if self.may_be_slower or calls is None or not self.may_be_longer:
            return self.may_be_slower
        slowed = sum(line.delta_ns for line in self.lines if any(re.fullmatch(calls, name) for name in line.of[0]))
        return slowed > self.least_ns

    @cached_property
    def slower_names(self) -> tuple[str, ...]:
        """Raw names of the functions that slowed."""
        return tuple(name for line in self.lines for name in line.of[0])

    def agreement(self, role: MetricRole) -> float:
        """How well a metric fits what slowed."""
        if role.cause_class == "network" and not self.communicates:
            return DISAGREES
        if not self.has_times or not (self.is_any or self.lines):
            return UNKNOWN
        calls = _CALLS.get(str(role.cause_class))
        slowed = self.classes | {CPU} if self.on_cpu and COMPUTE in self.classes else self.classes
        if slowed.intersection(role.slows) or (self.waits and WAITING in role.slows):
            return AGREES
        if calls and any(re.fullmatch(calls, name) for name in self.slower_names):
            return AGREES
        return DISAGREES


def find_slowdown(changes: Changes, *, has_times: bool, on_cpu: bool = False) -> Slowdown:
    """What slowed from base to candidate."""
    if not has_times:
        return Slowdown("unknown", frozenset(), (), waits=False, has_times=False)
    lines = tuple(line for line in changes.changed if line.kind == "slower" and line.cls not in REMAINDERS)
    remainders = [line for line in changes.changed if line.cls in REMAINDERS]
    return Slowdown(
        speed=_speed(changes),
        classes=frozenset(one.cls for one in changes.domain.classes if one.is_slower and _is_broad(changes, one.cls)),
        lines=lines,
        waits=any(line.delta_ns > MIN_CHANGE * changes.base_step_ns for line in remainders),
        has_times=True,
        on_cpu=on_cpu,
        communicates=any(_communicates(line) for line in changes.contributions),
        may_be_longer=(changes.step_ratio or 1.0) > 1,
        least_ns=MIN_SHARE * changes.base_step_ns,
    )


def _communicates(line: Contribution) -> bool:
    return line.cls == "collective" or any(re.fullmatch(_CALLS["network"], name) for names in line.of for name in names)


def has_few_steps(changes: Changes) -> bool:
    """Whether one step out of line may be mistaken for a change; whole windows have no single steps."""
    before, after = changes.step_times
    return bool(len(before) and len(after)) and min(len(before), len(after)) <= MIN_CYCLES


def _speed(changes: Changes) -> Speed:
    if changes.step_ratio_interval is None:
        return "unknown"
    low, high = changes.step_ratio_interval
    ratio = changes.step_ratio or 1.0
    least = FEW_CHANGE if has_few_steps(changes) else MIN_CHANGE
    medians = median_ratio(changes)
    if low > 1 + least:
        return "slower" if medians is None or medians[0] > 1 else "uneven"
    if low > 1 and ratio > 1 + CLEAR_CHANGE:
        return "unclear"
    return "faster" if high < 1 - least and (medians is None or medians[1] < 1) else "same"


def median_ratio(changes: Changes) -> tuple[float, float] | None:
    """The interval of the ratio of median steps; None where a run has no single steps."""
    return median_ratio_interval(*changes.step_times) if (changes.step_times[0] > 0).all() else None


def _is_broad(changes: Changes, cls: str) -> bool:
    """Whether functions with more than half of the class's time slowed."""
    lines = [line for line in changes.contributions if line.cls == cls and line.base_ns > 0 and line.base_calls > 0]
    lines = [line for line in lines if not line.name.endswith(WAITING_LINE)]  # of others: no cost of the function
    whole = sum(line.base_ns for line in lines)
    slower = sum(line.base_ns for line in lines if _call_ratio(line) > 1 + MIN_CHANGE)
    return slower > whole / 2


def _call_ratio(line: Contribution) -> float:
    """The time of one call, candidate over base; of one that is gone 0."""
    if not line.candidate_calls or not line.base_ns:
        return 0.0
    return (line.candidate_ns / line.candidate_calls) / (line.base_ns / line.base_calls)
