"""How busy the processor is while something is timed: clocks of its cores, load, and what others take.

Sources: /proc/stat, /proc/loadavg, /proc/PID/stat, /proc/cpuinfo and cpufreq's scaling_cur_freq of Linux (proc(5), and
the kernel's documentation of CPU performance scaling). What isn't there is left out.
"""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.processes import own_cores

Read = Callable[[str], str | None]
"""The text of a file, None where it can't be read."""

_WINDOW_TICKS = 100  # a second: in shorter windows, ticks of 10 ms show no shares
_CORES = 16  # to read a core's clock may interrupt that core: few, and once a window
_IDLE = (3, 4)  # fields of /proc/stat: idle, and waiting for disks
_COUNTED = 8  # the fields after these are part of `user` already


def read_text(path: str) -> str | None:
    """The whole file."""
    try:
        return Path(path).read_text("utf-8", errors="replace")
    except OSError:
        return None


@dataclass
class HostLoad:
    """Asked again and again; shares are of the time since the last window ended.

    Attributes:
        own: Ids of processes whose work isn't that of others; more may be added to it in between.
        cores: Whose clocks to tell.
        read: Reads a file.
    """

    own: Collection[int] = ()
    cores: Collection[int] = field(default_factory=own_cores)
    read: Read = read_text
    _last: tuple[int, int, int] | None = None
    _known: dict[int, int] = field(default_factory=dict)

    def state(self) -> dict[str, float]:
        """`load` (of a minute), `runnable` tasks, and once a second `others_share` and `core_clock_hz` (the median).

        `others_share`: of the time of all cores, what neither idled nor went to `own`, both since the last window.
        """
        found: dict[str, float] = {}
        load = (self.read("/proc/loadavg") or "").split()
        if len(load) > 3:
            found |= {"load": float(load[0]), "runnable": float(load[3].partition("/")[0])}
        now = self._ticks()
        if now is None:
            return found
        last = self._last or now
        if self._last is None or now[0] - last[0] >= _WINDOW_TICKS * (os.cpu_count() or 1):
            self._last = now
            clocks = sorted(self._clocks())
            found |= {"core_clock_hz": clocks[len(clocks) // 2]} if clocks else {}
            if now[0] > last[0]:
                total, busy, own = (after - before for after, before in zip(now, last, strict=True))
                found["others_share"] = max(0.0, busy - own) / total
        return found

    def _ticks(self) -> tuple[int, int, int] | None:
        """Since the start of the machine: of all cores, of these busy, and of our own processes."""
        line = (self.read("/proc/stat") or "").partition("\n")[0].split()
        if len(line) <= _COUNTED or line[0] != "cpu":
            return None
        ticks = [int(each) for each in line[1 : _COUNTED + 1]]
        return sum(ticks), sum(ticks) - sum(ticks[i] for i in _IDLE), sum(map(self._own_ticks, tuple(self.own)))

    def _own_ticks(self, process: int) -> int:
        """User and system time of all threads, and of the children that it waited for; once it has ended, its last."""
        text = self.read(f"/proc/{process}/stat") or ""
        fields = text.rpartition(")")[2].split()  # the name in parentheses may hold blanks
        if len(fields) > 14:
            self._known[process] = sum(map(int, fields[11:15]))
        return self._known.get(process, 0)

    def _clocks(self) -> Iterable[float]:
        few = sorted(self.cores)[:_CORES]
        paths = (f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq" for core in few)
        khz = [float(text) for path in paths if (text := self.read(path)) and text.strip().isdigit()]
        if khz:
            return [each * 1e3 for each in khz]
        lines = (self.read("/proc/cpuinfo") or "").splitlines()
        return [float(line.partition(":")[2]) * 1e6 for line in lines if line.startswith("cpu MHz")]
