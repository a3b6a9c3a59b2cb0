"""Time in which the recorded threads could run and didn't, since no processor was free or their quota was used up.

Source: /proc/PID/task/TID/schedstat (the kernel's documentation of scheduler statistics: ns run, ns waited, times
run), summed over threads; a thread is seen within a second of its start. The kernel counts what a quota held back as
waiting, too (`cpu_quota.py` tells it apart). What SIGSTOP holds back (cpulimit) counts nowhere: the sampler, a thread
of the stopped process, has a gap there.

| metric | unit | role |
| --- | --- | --- |
| `runq_share` | fraction of run and wait | cause |
| `process_context_switches` | 1/s | effect |
"""

from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

_LOOK_NS = 1_000_000_000
_MOST = 256  # threads: a file stays open for each
_PAUSE_NS = 1_000_000  # for each thread, whose file takes 5 µs: at most 0.5 % of a core
METRICS = (
    Metric("runq_share", "fraction", "Of the time that threads ran or could, what they waited.", "cause", own=True),
    Metric("process_context_switches", "1/s", "How often a thread got a processor.", "effect", own=True),
)


class _RunQueue:
    def __init__(self, place: SystemRoots) -> None:
        self._place, self._rates = place, Rates()
        self._threads: dict[str, tuple[int, int, int]] = {}
        self._next_ns = self._rested_ns = 0
        self._times = 0

    def read(self, now_ns: int) -> Reading:
        if now_ns < self._rested_ns:
            return {}
        if now_ns >= self._next_ns:
            self._look()
            self._next_ns = now_ns + _LOOK_NS
        self._rested_ns = now_ns + _PAUSE_NS * len(self._threads)
        ran_ns = waited_ns = 0
        for path, last in tuple(self._threads.items()):
            now = self._of_thread(path)
            if now is not None:
                self._threads[path] = now
                ran_ns, waited_ns = ran_ns + now[0] - last[0], waited_ns + now[1] - last[1]
                self._times += now[2] - last[2]
        found: dict[str, float | None] = {}
        if ran_ns + waited_ns > 0:
            found["runq_share"] = waited_ns / (ran_ns + waited_ns)
        self._rates.per_s(found, "process_context_switches", self._times, now_ns)
        return found

    def _look(self) -> None:
        """Take in threads that began."""
        files = self._place.files
        for process in self._place.family.members:
            try:
                names = files.names(f"/proc/{process}/task")
            except OSError:
                continue
            for path in (f"/proc/{process}/task/{name}/schedstat" for name in names):
                if path in self._threads:
                    continue
                if len(self._threads) >= _MOST:
                    self._place.lack(f"cpu_waits: more than {_MOST} threads, the others' waits aren't read")
                    return
                now = self._of_thread(path)
                if now is not None:
                    self._threads[path] = now

    def _of_thread(self, path: str) -> tuple[int, int, int] | None:
        try:
            ran_ns, waited_ns, times = map(int, self._place.files.read(path).split())
        except (OSError, ValueError):  # it has ended
            self._threads.pop(path, None)
            self._place.files.forget(path)
            return None
        return ran_ns, waited_ns, times


def _open(place: SystemRoots) -> list[HostProbe]:
    root = place.family.root
    place.files.read_once(f"/proc/{root}/schedstat")
    return [HostProbe(_RunQueue(place).read)]


SOURCE = CounterSource("cpu_waits", METRICS, _open, most_hz=100.0)
