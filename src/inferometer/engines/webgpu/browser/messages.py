"""What the page answers, decoded and checked. Times of the page are ms of its own clock, device times are ns.

`Clock` brings the page's times to `time.perf_counter_ns`: the page asked for the time a few times, and the answer
that took least bounds how far both can be apart.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from inferometer.engines.webgpu.program import Pass
from inferometer.engines.webgpu.run.executor import Adapter, LoadPhase, Submission, Timing

Count = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
_FEWEST_TIMES = 16
_COARSE_NS = 1_000


class PageAdapter(msgspec.Struct, frozen=True):
    """The first answer: what the browser offers. `error`: why it offers nothing.

    `pings`: when the page asked for the time, what it was answered, and when it had the answer. `resolution`: the
    smallest step that the page saw its clock make, in ms.
    """

    error: str = ""
    name: str = ""
    kind: str = "unknown"
    features: tuple[str, ...] = ()
    limits: dict[str, int] = {}
    description: str = ""
    pings: tuple[tuple[float, str, float], ...] = ()
    resolution: float = 0.0


class PageLog(msgspec.Struct, frozen=True):
    """A line of the page's log."""

    level: Literal["debug", "log", "warning", "error"]
    time: float
    module: str
    text: str


class PagePhase(msgspec.Struct, frozen=True):
    """A part of loading."""

    name: str
    start: float
    duration: Milliseconds
    bytes: Count = 0


class PageLoad(msgspec.Struct, frozen=True):
    """Loading is over. `fetched` and `cached`: bytes by part that came from Python, and from the page's cache."""

    id: int
    phases: tuple[PagePhase, ...] = ()
    fetched: dict[str, int] = {}
    cached: dict[str, int] = {}
    error: str = ""


class PageSubmission(msgspec.Struct, frozen=True):
    """A submit. `times`: begin and end of each dispatch as ns after `base`, null where there are none."""

    id: int
    passes: tuple[Pass, ...]
    timing: Timing
    start: float
    record: Milliseconds
    submit: Milliseconds
    wait: Milliseconds
    read: Milliseconds
    tokens: tuple[Count, ...]
    base: str = "0"
    times: tuple[Count | None, ...] = ()
    untimed: Count = 0


class PageResult(msgspec.Struct, frozen=True):
    """The answer is over, or failed. `lost`: the device is gone."""

    id: int
    error: str = ""
    lost: bool = False
    stopped: bool = False


@dataclass(frozen=True)
class Clock:
    """The page's clock in terms of ours. Both are taken to go equally fast.

    Attributes:
        shift_ns: What to add to the page's time.
        error_ns: How far that can be off: half of the quickest round trip.
    """

    shift_ns: int
    error_ns: int

    def ns(self, ms: float) -> int:
        """A time of the page, as ns of `time.perf_counter_ns`."""
        return round(ms * 1e6) + self.shift_ns


def find_clock(pings: Iterable[tuple[float, str, float]]) -> Clock:
    """By the quickest of the round trips: its middle is when Python answered.

    Raises:
        ValueError: There is none, or one is not a time.
    """
    asked, known, had = min(pings, key=lambda ping: ping[2] - ping[0])
    trip_ns = round((had - asked) * 1e6)
    return Clock(int(known) - round(asked * 1e6) - trip_ns // 2, -(-trip_ns // 2))


def adapter_of(page: PageAdapter) -> Adapter:
    """The adapter in our words.

    Raises:
        KeyError: A limit is missing.
    """
    limits = page.limits
    return Adapter(
        name=page.name,
        backend="browser",
        kind=page.kind,
        features=frozenset(page.features),
        most_binding_bytes=limits["maxStorageBufferBindingSize"],
        most_buffer_bytes=limits["maxBufferSize"],
        most_storage_buffers=limits["maxStorageBuffersPerShaderStage"],
        most_workgroup_threads=limits["maxComputeInvocationsPerWorkgroup"],
        description=page.description,
    )


def phases_of(load: PageLoad, clock: Clock) -> tuple[LoadPhase, ...]:
    """Phases of loading on our clock."""
    return tuple(
        LoadPhase(each.name, clock.ns(each.start), round(each.duration * 1e6), each.bytes) for each in load.phases
    )


def submission_of(page: PageSubmission, clock: Clock) -> Submission:
    """A submit on our clock. The device has a clock of its own: its first dispatch is put where submit returned."""
    start_ns = clock.ns(page.start)
    record_ns, submit_ns, wait_ns, read_ns = (
        round(each * 1e6) for each in (page.record, page.submit, page.wait, page.read)
    )
    begins, ends = page.times[::2], page.times[1::2]
    first = min((each for each in begins if each is not None), default=None)
    shift = start_ns + record_ns + submit_ns - (first or 0)
    return Submission(
        passes=page.passes,
        timing=page.timing,
        start_ns=start_ns,
        record_ns=record_ns,
        submit_ns=submit_ns,
        wait_ns=wait_ns,
        read_ns=read_ns,
        tokens=page.tokens,
        begin_ns=tuple(None if each is None else each + shift for each in begins),
        end_ns=tuple(None if each is None else each + shift for each in ends),
        untimed=page.untimed,
        clock="none" if first is None else "aligned",
    )


class TimeStep:
    """Finds the ns that all device times are multiples of: browsers round times against spying."""

    def __init__(self) -> None:
        self._step_ns = 0
        self._seen = 0

    def add(self, page: PageSubmission) -> None:
        """Take the times of a submit in."""
        times = {int(page.base) + time for time in page.times if time is not None}
        self._step_ns = math.gcd(self._step_ns, *times)
        self._seen += len(times)

    def coarse_ns(self) -> int | None:
        """The step; None where it is finer than 1 µs, or the times are too few to tell."""
        return self._step_ns if self._seen >= _FEWEST_TIMES and self._step_ns >= _COARSE_NS else None
