"""Samples counters of device and host next to a run: two threads, one for what is quick, one for what takes long.

A thread and no process of its own: nothing is started, forked or left behind, and the lag is small. Measured on two
cores at 10 Hz: 0.1 ms late while the user's Python idles or computes in NumPy or torch, 5 ms (Python's switch interval)
under a busy loop of Python. Only a long call in C that keeps the GIL (sorting millions of items) holds it up for as
long as that lasts; rates are over the real time between samples, so they stay right, and such ticks are missing.

All metrics of one probe share a time stamp, the middle of its reading; so a tick has a stamp a probe, less than a
millisecond apart. How far off a stamp may be, half the time that the reading took, is stored as a note.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from inferometer.errors import InputError
from inferometer.record.clock import monotonic_ns
from inferometer.record.counters.family import Family
from inferometer.record.counters.files import Files
from inferometer.record.counters.lane import SamplingThread
from inferometer.record.counters.metric import CounterSource, SystemRoots
from inferometer.record.sink import Sink
from inferometer.registry import collect
from inferometer.trace.facts import Device, Facts

LEAST_HZ, MOST_HZ = 0.1, 100.0
LOSS = "counter_unavailable"
_JOIN_S = 2.0
_NOTE = "Counters: "


@dataclass(frozen=True)
class Alignment:
    """How far off time stamps may be, ns: half of how long a reading took, `median_ns` and at most; how late it began.

    `cpu_share`: processor time of the sampling threads, of one core.
    """

    samples: int
    median_ns: int
    greatest_ns: int
    late_ns: int
    latest_ns: int
    cpu_share: float

    def describe(self) -> str:
        """One line for the recording's notes."""
        return (
            f"{_NOTE}time stamps are within {self.greatest_ns / 1e6:.2f} ms of the reading (median "
            f"{self.median_ns / 1e6:.3f} ms), ticks were {self.late_ns / 1e6:.1f} ms late (most "
            f"{self.latest_ns / 1e6:.0f} ms), {self.samples:,} readings; sampling took {self.cpu_share:.2%} of a core."
        )


class CounterSampler:
    """Rows of `counters` from `start` to `stop`; neither raises on what can't be read: it is reported once, and lost.

    Args:
        sink: Takes the rows; its clock stamps them.
        hz: Ticks a second, 0.1 to 100. Sources that need not or can't are read less often, /proc at most 10 times.
        sources: In the place of all that the folder and plugins have.
        processes: Ids of the recorded processes, the first one the main; their children count, too.
        place: In the place of this machine.
        clock: In the place of the monotonic clock.

    Raises:
        InputError: `hz` is out of range.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        hz: float = 10.0,
        sources: Sequence[CounterSource] | None = None,
        processes: Sequence[int] | None = None,
        place: SystemRoots | None = None,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        if not LEAST_HZ <= hz <= MOST_HZ:
            raise InputError(f"expected {LEAST_HZ:g} to {MOST_HZ:g} samples per second, found {hz:g}")
        self._sink, self._hz, self._clock = sink, hz, clock
        self._sources = tuple(find_sources().values() if sources is None else sources)
        self._processes = tuple(processes or (os.getpid(),))
        self._place = place
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._owner = 0
        self.lanes: list[SamplingThread] = []

    def start(self) -> None:
        """Begin, in the background: opening NVML takes a tenth of a second. A second start does nothing."""
        if self._threads:
            return
        self._owner = os.getpid()
        for lane in self.make_lanes():
            name = f"inferometer-counters-{'slow' if lane.is_slow else 'quick'}"
            self._threads.append(threading.Thread(target=self._run, args=(lane,), name=name, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Hand over all rows and note the alignment. Doing so twice, or in a fork, does nothing."""
        if not self._threads or self._stop.is_set() or os.getpid() != self._owner:
            return
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._note()

    def make_lanes(self) -> list[SamplingThread]:
        """The quick sources together, the slow ones together; each with files of its own. For tests, too."""
        for is_slow in (False, True):
            sources = [source for source in self._sources if source.is_slow == is_slow]
            if sources:
                lane = SamplingThread(
                    sources, self._place_of_lane(), self._sink, self._hz, clock=self._clock, lack=self.lack
                )
                self.lanes.append(lane)
        return self.lanes

    def lack(self, what: str) -> None:
        """Say once that something can't be had."""
        with self._lock:
            if what in self._reported:
                return
            self._reported.add(what)
        self._sink.lose(LOSS, example=what)

    def alignment(self) -> Alignment | None:
        """How far off all samples so far are; None before the first."""
        widths = [width for lane in self.lanes for width in lane.half_widths.values]
        late = [each for lane in self.lanes if not lane.is_slow for each in lane.lateness.values]
        if not widths:
            return None
        wall_ns = max(lane.wall_ns for lane in self.lanes)
        return Alignment(
            samples=sum(lane.half_widths.count for lane in self.lanes),
            median_ns=int(np.median(widths)),
            greatest_ns=max(lane.half_widths.greatest for lane in self.lanes),
            late_ns=int(np.median(late)) if late else 0,
            latest_ns=max((lane.lateness.greatest for lane in self.lanes), default=0),
            cpu_share=sum(lane.cpu_ns for lane in self.lanes) / wall_ns if wall_ns else 0.0,
        )

    def _place_of_lane(self) -> SystemRoots:
        if self._place is not None:
            return replace(self._place, lack=self.lack, know=self._know)
        files = Files()
        return SystemRoots(files, Family(self._processes, files), self.lack, know=self._know)

    def _know(self, device: Device) -> None:
        """What a profiler has recorded of the device stays."""
        self._sink.change_facts(lambda facts: _with_device(facts, device))

    def _run(self, lane: SamplingThread) -> None:
        lane.run(self._stop, self._note)

    def _note(self) -> None:
        """In the place of the note before: a recording that is killed has one of some seconds ago."""
        alignment = self.alignment()
        if alignment is not None:
            self._sink.change_facts(lambda facts: _with_note(facts, alignment.describe()))


def find_sources() -> Mapping[str, CounterSource]:
    """All sources of this folder and of other packages, by name."""
    found: dict[str, CounterSource] = collect("inferometer.record.counters", "SOURCE")
    return found


def _with_device(facts: Facts, device: Device) -> Facts:
    if any(known.device == device.device for known in facts.devices):
        return facts
    return msgspec.structs.replace(facts, devices=(*facts.devices, device))


def _with_note(facts: Facts, words: str) -> Facts:
    kept = tuple(note for note in facts.notes if not note.startswith(_NOTE))
    return msgspec.structs.replace(facts, notes=(*kept, words))
