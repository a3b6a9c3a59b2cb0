"""One thread's sources: opens them, reads each when it is due, hands rows to the sink.

What fails is reported once and tried again after a pause, which doubles up to a minute.
"""

import socket
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inferometer.errors import InferometerError
from inferometer.record.counters.metric import CounterSource, Probe, SystemRoots
from inferometer.record.sink import Sink

_HAND_OVER_NS = 500_000_000
_NOTE_NS = 10_000_000_000
_FIRST_PAUSE_NS, _LONGEST_PAUSE_NS = 1_000_000_000, 60_000_000_000
_KEPT = 4_096
_SLACK = 0.25  # of a tick's period: a probe that is due so soon is read now, not a whole tick later


class Spread:
    """The last values, how many there were, and the greatest of all."""

    def __init__(self) -> None:
        self.values = array("q")
        self.count = self.greatest = 0

    def add(self, value: int) -> None:
        """One more; of many the oldest are dropped."""
        if self.count < _KEPT:
            self.values.append(value)
        else:
            self.values[self.count % _KEPT] = value
        self.count += 1
        self.greatest = max(self.greatest, value)


@dataclass
class _Due:
    """A probe and when it is to be read."""

    source: CounterSource
    probe: Probe
    period_ns: int
    next_ns: int = 0
    pause_ns: int = _FIRST_PAUSE_NS
    cpu_ns: int = 0
    reads: int = 0


@dataclass
class _Rows:
    """Columns of `counters`, on the sink's clock."""

    metric: list[str] = field(default_factory=list)
    device: list[str | None] = field(default_factory=list)
    process: list[int | None] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    value: list[float | None] = field(default_factory=list)
    unit: list[str | None] = field(default_factory=list)


class SamplingThread:
    """Args as `CounterSampler`'s; `wall_ns` and `cpu_ns`: from the first tick on, in all and of this thread's."""

    def __init__(
        self,
        sources: Sequence[CounterSource],
        place: SystemRoots,
        sink: Sink,
        hz: float,
        *,
        clock: Callable[[], int],
        lack: Callable[[str], None],
    ) -> None:
        self._sources, self._place, self._sink, self._clock, self._lack = sources, place, sink, clock, lack
        self.is_slow = all(source.is_slow for source in sources)
        self.hz = hz
        self._units = {metric.name: metric.unit for source in sources for metric in source.metrics}
        self._own = {metric.name for source in sources for metric in source.metrics if metric.own}
        self._host = socket.gethostname()
        self._due: list[_Due] = []
        self._rows = _Rows()
        self._handed_ns = self._noted_ns = 0
        self._began_ns: int | None = None
        self._began_cpu_ns = 0
        self.wall_ns = self.cpu_ns = 0
        self.half_widths, self.lateness = Spread(), Spread()

    def open(self) -> None:
        """Look what is there; a source that has nothing here says why, once."""
        for source in self._sources:
            try:
                probes = source.open(self._place)
            except Exception as error:  # noqa: BLE001  the edge of a worker: a plugin's source may raise anything
                self._lack(f"{source.name}: {_words(error)}")
                continue
            period_ns = round(1e9 / min(self.hz, source.most_hz))
            self._due += [_Due(source, probe, period_ns) for probe in probes]
        if self._due:  # nothing there is read more often than that
            self.hz = 1e9 / min(due.period_ns for due in self._due)
        self._began_ns, self._began_cpu_ns = self._clock(), time.thread_time_ns()

    def run(self, stop: threading.Event, note: Callable[[], None]) -> None:
        """Until `stop`, with a first sample. `note` is called every some seconds."""
        self.open()
        period_ns = round(1e9 / self.hz)
        planned_ns = self._clock()
        while self._due:
            is_last = stop.wait(max(0, planned_ns - self._clock()) / 1e9)
            now_ns = self._clock()
            if not is_last:
                self.lateness.add(now_ns - planned_ns)
            self.sample(is_last=is_last)
            if is_last:
                break
            if now_ns - self._noted_ns >= _NOTE_NS:
                self._noted_ns = now_ns
                note()
            planned_ns += period_ns * max(1, -(-(self._clock() - planned_ns) // period_ns))
        self._place.files.close()

    def sample(self, *, is_last: bool = False) -> None:
        """Read what is due, and hand rows over from time to time, and at last."""
        now_ns = self._clock()
        self._place.family.refresh(now_ns)
        slack_ns = _SLACK / self.hz * 1e9
        for due in self._due:
            if now_ns >= due.next_ns - slack_ns:
                self._read(due)
        self.wall_ns = self._clock() - (self._began_ns or 0)
        self.cpu_ns = time.thread_time_ns() - self._began_cpu_ns
        if is_last or now_ns - self._handed_ns >= _HAND_OVER_NS:
            self._handed_ns = now_ns
            self._hand_over()

    def costs(self) -> dict[str, float]:
        """Processor time of a reading by source, ns."""
        found: dict[str, list[int]] = {}
        for due in self._due:
            sums = found.setdefault(due.source.name, [0, 0])
            sums[0], sums[1] = sums[0] + due.cpu_ns, max(sums[1], due.reads)
        return {name: cpu_ns / reads for name, (cpu_ns, reads) in found.items() if reads}

    def _read(self, due: _Due) -> None:
        began_cpu_ns, before_ns = time.thread_time_ns(), self._clock()
        try:
            found = due.probe.read(before_ns)
            device = due.probe.device
        except Exception as error:  # noqa: BLE001  the same
            self._lack(f"{due.source.name}: {_words(error)}")
            due.next_ns, due.pause_ns = before_ns + due.pause_ns, min(2 * due.pause_ns, _LONGEST_PAUSE_NS)
            return
        after_ns = self._clock()
        late_ns = before_ns - due.next_ns
        due.next_ns = due.next_ns + due.period_ns if 0 <= late_ns < due.period_ns else before_ns + due.period_ns
        due.pause_ns = _FIRST_PAUSE_NS
        if found:
            self.half_widths.add((after_ns - before_ns + 1) // 2)
            at_ns = self._sink.clock.at((before_ns + after_ns) // 2)
            self._rows.metric += found
            self._rows.value += found.values()
            self._rows.device += [device] * len(found)
            self._rows.time_ns += [at_ns] * len(found)
            root = self._place.family.root
            self._rows.process += [root if metric in self._own else None for metric in found]
            self._rows.unit += map(self._units.get, found)
        due.cpu_ns += time.thread_time_ns() - began_cpu_ns
        due.reads += 1

    def _hand_over(self) -> None:
        rows, self._rows = self._rows, _Rows()
        if rows.metric:
            columns = {
                name: getattr(rows, name) for name in ("metric", "device", "process", "time_ns", "value", "unit")
            }
            try:
                self._sink.add("counters", len(rows.metric), {**columns, "host": self._host})
            except Exception as error:  # noqa: BLE001  the sink may be closed, or the disk full: the run goes on
                self._lack(f"counters: the recording takes no rows: {_words(error)}")


def _words(error: Exception) -> str:
    if isinstance(error, InferometerError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
