"""What Prometheus reads of a watch: step times with what was expected, the state, alarms, causes of what is slow now.

Source of the format: Prometheus, "Exposition formats", text-based, version 0.0.4. The number of series is bounded: 64
owners and phases, 16 slowdowns that last; what is left out is counted.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from inferometer.watch.recent import Recent
from inferometer.watch.session import Event, What
from inferometer.watch.watched import Slowdown
from inferometer.watch.watcher import Judged, State

PREFIX = "inferometer_watch_"
_MOST_SLOW = 16
_LONGEST_LABEL = 100
_S = 1e9

Sample = tuple[Mapping[str, str | None], float | None]

_HELP = {
    "up": ("gauge", "Whether the source that is watched gives steps."),
    "state": ("gauge", "1 for the state that the watch is in."),
    "steps_total": ("counter", "Steps seen, or intervals of an engine's metrics."),
    "step_seconds_total": ("counter", "Their time together."),
    "step_seconds": ("gauge", "Mean time of the last 16 steps."),
    "expected_seconds": ("gauge", "Mean of what these should have taken."),
    "expected_low_seconds": ("gauge", "Mean of where 1 % of normal steps would have been faster."),
    "expected_high_seconds": ("gauge", "Mean of where 1 % of normal steps would have been slower."),
    "alarms_total": ("counter", "Alarms raised."),
    "last_step_timestamp_seconds": ("gauge", "End of the last step, since 1970."),
    "slow_since_timestamp_seconds": ("gauge", "Onset of each slowdown that lasts, since 1970."),
    "slow_ratio": ("gauge", "Time over expected time of each slowdown that lasts."),
    "cause_info": ("gauge", "1 for what was found of each slowdown that lasts; cause is empty where none is named."),
    "left_out_steps_total": ("counter", "Steps of owners beyond the first 64 series, of which nothing else is shown."),
    "cpu_seconds_total": ("counter", "Processor time of the watcher."),
    "peak_resident_bytes": ("gauge", "Memory of the watcher, at most so far; on Linux."),
}


class Gauges:
    """Takes steps and events from the watch, and answers scrapes from any thread.

    Args:
        base_ns: Added to times of steps it gives ns since 1970; None: not known, then there are no timestamps.
    """

    def __init__(self, base_ns: int | None = None) -> None:
        self.base_ns, self.is_up = base_ns, True
        self._recent = Recent()
        self._state = State.LEARNING
        self._alarms = 0
        self._slow: dict[int, Slowdown] = {}
        self._lock = threading.Lock()

    def add_step(self, judged: Judged, state: State) -> None:
        """A step, and the state of the watch."""
        with self._lock:
            self._recent.add(judged)
            self._state = state

    def add_event(self, event: Event) -> None:
        """A change, or a cause."""
        with self._lock:
            self._alarms += event.what is What.ALARM
            self._slow[event.number] = event.slowdown
            if event.slowdown.recovered:
                del self._slow[event.number]

    def resume(self, slowdowns: Iterable[Slowdown], state: State) -> None:
        """Those of a watch that goes on."""
        with self._lock:
            for number, one in enumerate(slowdowns):
                self._alarms += 1
                if one.recovered is None:
                    self._slow[number] = one
            self._state = state

    def text(self) -> str:
        """The answer to a scrape."""
        with self._lock:
            found = dict(self._samples())
        lines = []
        for name, (kind, meaning) in _HELP.items():
            samples = [line for labels, value in found[name] if (line := _line(name, labels, value))]
            if samples:
                lines += [f"# HELP {PREFIX}{name} {meaning}", f"# TYPE {PREFIX}{name} {kind}", *samples]
        return "\n".join(lines) + "\n"

    def _samples(self) -> Iterator[tuple[str, list[Sample]]]:
        now = [({"of": each.owner, "phase": each.phase}, each) for each in self._recent.now()]
        yield "up", [({}, float(self.is_up))]
        yield "state", [({"state": state.value}, float(state is self._state)) for state in State]
        yield "steps_total", [(labels, each.steps) for labels, each in now]
        yield "step_seconds_total", [(labels, each.total_ns / _S) for labels, each in now]
        yield "step_seconds", [(labels, each.took_ns / _S) for labels, each in now]
        yield "expected_seconds", [(labels, _seconds(each.expected_ns)) for labels, each in now]
        yield "expected_low_seconds", [(labels, _seconds(each.low_ns)) for labels, each in now]
        yield "expected_high_seconds", [(labels, _seconds(each.high_ns)) for labels, each in now]
        yield "alarms_total", [({}, self._alarms)]
        yield "last_step_timestamp_seconds", [({}, self._since_1970(self._recent.last_end_ns))]
        slow = [(_labels_of(number, one), one) for number, one in list(self._slow.items())[-_MOST_SLOW:]]
        yield "slow_since_timestamp_seconds", [(labels, self._since_1970(one.alarm.since_ns)) for labels, one in slow]
        yield "slow_ratio", [(labels, one.ratio) for labels, one in slow]
        yield "cause_info", [(labels | _cause_of(one), 1) for labels, one in slow]
        yield "left_out_steps_total", [({}, self._recent.left_out)]
        yield "cpu_seconds_total", [({}, time.process_time())]
        yield "peak_resident_bytes", [({}, _peak_bytes())]

    def _since_1970(self, at_ns: int | None) -> float | None:
        return None if at_ns is None or self.base_ns is None else (at_ns + self.base_ns) / _S


def _peak_bytes() -> float | None:
    """From Linux's /proc: what `getrusage` says may be that of the process which started this one."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return None
    return next((float(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), None)


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / _S


def _labels_of(number: int, one: Slowdown) -> dict[str, str | None]:
    return {"slowdown": str(number + 1), "of": one.alarm.owner, "phase": one.slow[0].phase}


def _cause_of(one: Slowdown) -> dict[str, str | None]:
    if one.why is None:
        return {"verdict": "not looked for yet", "cause": "", "device": ""}
    return {"verdict": one.why.verdict, "cause": one.why.metric or "", "device": one.why.device or ""}


def _line(name: str, labels: Mapping[str, str | None], value: float | None) -> str | None:
    if value is None:
        return None
    written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items() if text is not None)
    return f"{PREFIX}{name}{{{written}}} {float(value)!r}" if written else f"{PREFIX}{name} {float(value)!r}"


def _escaped(text: str) -> str:
    return text[:_LONGEST_LABEL].replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
