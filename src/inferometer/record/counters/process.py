"""The recorded processes' own use of memory, and their page faults.

Source: /proc/PID/statm and /proc/PID/stat (proc(5)), summed over the processes and their children; memory that they
share counts once for each. `cpu_stopped` is of the first process: SIGSTOP holds it, as cpulimit does. Only a sampler in
another process can see that; one in the same stands still, too. Their processor time is in `host_cpu.py`, their
waits in `cpu_waits.py`, their disk traffic in `host_disk.py`.

| metric | unit | role |
| --- | --- | --- |
| `process_mem_rss` | bytes | effect |
| `process_minor_faults`, `process_major_faults` | 1/s | effect |
| `process_threads` | threads | effect |
| `process_count` | processes | effect |
| `cpu_stopped` | 0 or 1 | cause |
"""

import os

from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

METRICS = (
    Metric("process_mem_rss", "bytes", "Memory that is resident.", "effect", own=True),
    Metric("process_minor_faults", "1/s", "Page faults without a disk.", "effect", own=True),
    Metric("process_major_faults", "1/s", "Page faults that needed a disk.", "effect", own=True),
    Metric("process_threads", "threads", "Threads of all recorded processes.", "effect", own=True),
    Metric("process_count", "processes", "The recorded processes and their children.", "effect", own=True),
    Metric("cpu_stopped", "fraction", "1 while a signal has stopped the first process.", "cause", own=True),
)
_STOPPED = "Tt"  # by a signal, by a debugger
_MINOR, _MAJOR, _THREADS = 7, 9, 17  # fields of stat after the name in parentheses


class _Own:
    def __init__(self, place: SystemRoots) -> None:
        self._place, self._rates = place, Rates()
        self._faults: dict[int, tuple[int, int]] = {}
        self._page = os.sysconf("SC_PAGE_SIZE")

    def read(self, now_ns: int) -> Reading:
        pages = threads = alive = 0
        found: dict[str, float | None] = {}
        for process in self._place.family.members:
            try:
                statm = self._place.files.read(f"/proc/{process}/statm").split()
                fields = self._place.files.read(f"/proc/{process}/stat").rpartition(")")[2].split()
            except OSError:
                continue
            if len(fields) > _THREADS and len(statm) > 1:
                alive, pages, threads = alive + 1, pages + int(statm[1]), threads + int(fields[_THREADS])
                if process == self._place.family.root:
                    found["cpu_stopped"] = float(fields[0] in _STOPPED)
                self._faults[process] = int(fields[_MINOR]), int(fields[_MAJOR])
        if not alive:
            return {}
        found |= {"process_mem_rss": pages * self._page, "process_threads": threads, "process_count": alive}
        for i, metric in enumerate(("process_minor_faults", "process_major_faults")):
            self._rates.per_s(found, metric, sum(counts[i] for counts in self._faults.values()), now_ns)
        return found


def _open(place: SystemRoots) -> list[HostProbe]:
    place.files.read(f"/proc/{place.family.root}/stat")
    return [HostProbe(_Own(place).read)]


SOURCE = CounterSource("process", METRICS, _open, most_hz=5.0)
