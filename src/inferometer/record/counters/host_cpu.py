"""How busy the processors are: in all, by the recorded processes, by others.

Source: /proc/stat and /proc/loadavg (proc(5)), and the processes' own clocks. Shares are of the time of all cores since
the last reading. /proc counts in ticks of 10 ms, so it isn't read more often than 10 times per second; a share of 100
ms on few cores comes in steps of some percent, its median doesn't. What a hypervisor took (steal) is part of the load
by others. In a container these are the whole machine's.

| metric | unit | role |
| --- | --- | --- |
| `others_cpu_usage` | % of all cores | cause |
| `host_cpu_usage` | % of all cores | effect |
| `process_cpu_usage` | % of one core | effect |
| `host_cpu_steal` | % of all cores | context |
| `host_context_switches` | 1/s | context |
| `run_queue` | tasks that run or could | context |
| `load_average` | tasks, over a minute | context |
"""

from inferometer.errors import Unavailable
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

_IDLE = (3, 4)  # fields of /proc/stat: idle, and waiting for disks
_STEAL = 7
_COUNTED = 8  # the fields after these are part of `user` already
METRICS = (
    Metric("others_cpu_usage", "%", "Time of all cores that others took.", "cause"),
    Metric("host_cpu_usage", "%", "Time of all cores that wasn't idle.", "effect"),
    Metric("process_cpu_usage", "% of one core", "Time that the recorded processes took.", "effect", own=True),
    Metric("host_cpu_steal", "%", "Time of all cores that a hypervisor took.", "context"),
    Metric("host_context_switches", "1/s", "Changes from one task to another.", "context"),
    Metric("run_queue", "tasks", "Tasks that run or wait for a processor.", "context"),
    Metric("load_average", "tasks", "Such tasks and those that wait for disks, over a minute.", "context"),
)


class _Cpu:
    def __init__(self, place: SystemRoots) -> None:
        self._place, self._rates = place, Rates()

    def read(self, now_ns: int) -> Reading:
        found: dict[str, float | None] = {}
        lines = self._place.files.read("/proc/stat").splitlines()
        own_ns = self._place.family.cpu_ns()
        self._shares([int(each) for each in lines[0].split()[1 : _COUNTED + 1]], own_ns, found)
        self._rates.per_s(found, "process_cpu_usage", own_ns, now_ns, 100 / 1e9)
        for line in reversed(lines):  # after one line per core, and one of interrupts that may be long
            name, _, count = line.partition(" ")
            if name == "procs_running":
                found["run_queue"] = int(count)
            elif name == "ctxt":
                self._rates.per_s(found, "host_context_switches", int(count), now_ns)
                break
        return found

    def _shares(self, ticks: list[int], own_ns: int, found: dict[str, float | None]) -> None:
        """Of the ticks of all cores; one is 10 ms (USER_HZ, which is 100 on all of Linux's architectures in use)."""
        total = self._rates.grown("total", sum(ticks))
        idle = self._rates.grown("idle", sum(ticks[i] for i in _IDLE))
        steal = self._rates.grown("steal", ticks[_STEAL])
        own = self._rates.grown("own", own_ns)
        if not total or idle is None or own is None:
            return
        found["host_cpu_usage"] = usage = 100 * max(0.0, total - idle) / total
        found["others_cpu_usage"] = max(0.0, usage - 100 * own / 1e7 / total)
        found["host_cpu_steal"] = None if steal is None else 100 * steal / total


class _Load:
    def __init__(self, place: SystemRoots) -> None:
        self._files = place.files
        self._next_ns = 0

    def read(self, now_ns: int) -> Reading:
        """Once a second: the kernel reckons it every five."""
        if now_ns < self._next_ns:
            return {}
        self._next_ns = now_ns + 1_000_000_000
        return {"load_average": float(self._files.read("/proc/loadavg").split()[0])}


def _open(place: SystemRoots) -> list[HostProbe]:
    text = place.files.read("/proc/stat")
    if len(text.partition("\n")[0].split()) <= _COUNTED:
        raise Unavailable("/proc/stat tells no times of processors")
    return [HostProbe(_Cpu(place).read), HostProbe(_Load(place).read)]


SOURCE = CounterSource("host_cpu", METRICS, _open)
