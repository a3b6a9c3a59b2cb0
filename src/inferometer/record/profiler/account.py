"""What the profiler cost and lost, kept as the recording goes: notes of the recording, and a counter for each gap."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from inferometer.analyses.timeline.recorder_pauses import GAP, PAUSE
from inferometer.record.profiler.kineto_stderr import StderrLines
from inferometer.record.profiler.window_rows import About
from inferometer.record.profiler.window_tables import Joined
from inferometer.record.sink import Sink
from inferometer.trace.builder import Values
from inferometer.trace.facts import Device, Facts

_WINDOWS, _CLOCK, _LOST, _KINETO = "torch.profiler: ", "torch.profiler's clock: ", "torch.profiler lost ", "Kineto "
_NO_RIGHT = "INSUFFICIENT_PRIVILEGES"


@dataclass
class Account:
    """Sums over the windows; `say` writes them as notes, each in the place of its last version."""

    sink: Sink
    process: int
    window_s: float
    windows: int = 0
    recorded_ns: int = 0
    gap_ns: int = 0
    pause_ns: int = 0
    longest_ns: int = 0
    duplicates: int = 0
    cut: int = 0
    lost_windows: int = 0
    why_lost: str | None = None
    errors_ns: list[int] = field(default_factory=list)
    drifts: list[float] = field(default_factory=list)
    by_window_only: int = 0
    stderr_lines: StderrLines = field(default_factory=StderrLines)
    _known: set[Device] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, at_ns: int, pause_ns: int, recorded_ns: int) -> None:
        """A window ended at `at_ns` on the recording's clock, and Python may have stood still for `pause_ns`."""
        with self._lock:
            self.windows += 1
            self.pause_ns += pause_ns
            self.longest_ns = max(self.longest_ns, pause_ns)
            self.recorded_ns += recorded_ns
        self._count(PAUSE, at_ns, pause_ns)

    def gap(self, at_ns: int, gap_ns: int) -> None:
        """From `at_ns` on nothing was recorded for `gap_ns`, until the next window began."""
        with self._lock:
            self.gap_ns += gap_ns
        self._count(GAP, at_ns, gap_ns)

    def _count(self, metric: str, at_ns: int, value: int) -> None:
        columns: dict[str, Values] = {"metric": metric, "process": self.process, "unit": "ns"}
        self.sink.add("counters", 1, columns | {"time_ns": [at_ns], "value": [float(value)]})

    def wrote(self, joined: Joined) -> None:
        """A window's rows were written."""
        with self._lock:
            self.duplicates += joined.duplicates
            self.cut += joined.cut
            if joined.alignment is not None:
                self.errors_ns.append(joined.alignment.error_ns)
                self.drifts.append(joined.alignment.drift)
                self.by_window_only += joined.alignment.how == "window"
        self.say()

    def lose_window(self, why: str) -> None:
        """A window's rows can't be had."""
        with self._lock:
            self.lost_windows += 1
            self.why_lost = self.why_lost or why
        self.say()

    def found(self, about: About) -> None:
        """Devices and versions that a window's file names."""
        new = [device for device in about.devices if device not in self._known]
        if not new:
            return
        self._known.update(new)

        def add(facts: Facts) -> Facts:
            named = {device.device for device in facts.devices}
            devices = (*facts.devices, *(device for device in new if device.device not in named))
            return msgspec.structs.replace(facts, devices=devices, versions={**about.versions, **facts.versions})

        self.sink.change_facts(add)

    def problem(self, text: str) -> None:
        """Say once what isn't recorded, and why."""
        self.sink.change_facts(_noted(_WINDOWS + text, _WINDOWS + text))

    def say(self) -> None:
        """Bring the notes up to date."""
        with self._lock:
            notes = [self._of_windows(), self._of_clock(), self._of_lost(), self._of_kineto()]
        for start, text in notes:
            if text:
                self.sink.change_facts(_noted(start + text, start))

    def _of_windows(self) -> tuple[str, str]:
        start = f"{_WINDOWS}recorded "
        total = max(1, self.recorded_ns + self.gap_ns)
        text = (
            f"{self.windows} windows; between them nothing was recorded for {self.gap_ns / 1e6:.1f} ms "
            f"({self.gap_ns / total:.2%} of the time), and the program may have stood still for "
            f"{self.pause_ns / 1e6:.1f} ms ({self.pause_ns / total:.2%}, at most {self.longest_ns / 1e6:.1f} ms at "
            f"once). A kill loses the last window ({self.window_s:g} s) and what is still being read."
        )
        if self.cut:
            text += f" {self.cut} ops were open where a window ended: that is their end."
        return start, text if self.windows else ""

    def _of_clock(self) -> tuple[str, str]:
        if not self.errors_ns:
            return _CLOCK, ""
        drift = max(self.drifts, key=abs)
        text = (
            f"times since 1970 were put on the recording's clock by marks: up to {drift * 1e6:+.3f} us a second of "
            f"drift, error at most {max(self.errors_ns) / 1e3:.2f} us (half-width of the bounds, "
            f"{len(self.errors_ns)} windows)"
        )
        if self.by_window_only:
            text += f"; in {self.by_window_only} of them only the begin and end of the profile gave it"
        return _CLOCK, text

    def _of_lost(self) -> tuple[str, str]:
        return _LOST, f"{self.lost_windows} windows: {self.why_lost}" if self.lost_windows else ""

    def _of_kineto(self) -> tuple[str, str]:
        lines = self.stderr_lines.lines
        if not lines:
            return _KINETO, ""
        most = max(lines, key=lambda line: lines[line])
        text = f"warned {sum(lines.values())} times while windows ended, mostly: {most}"
        if any(_NO_RIGHT in line for line in lines):
            text += " (device work isn't recorded: the driver keeps profiling to administrators)"
        return _KINETO, text


def _noted(text: str, start: str) -> Callable[[Facts], Facts]:
    """Put `text` in the place of the note that begins with `start`, else after the others."""

    def change(facts: Facts) -> Facts:
        notes = list(facts.notes)
        for at, note in enumerate(notes):
            if note.startswith(start):
                notes[at] = text
                break
        else:
            notes.append(text)
        return msgspec.structs.replace(facts, notes=tuple(notes))

    return change
