"""How much the quota of its control group holds the recorded process back.

Source: cpu.stat of the process's cgroup, version 2 or 1 (the kernel's documentation of cgroup v2 and of CFS bandwidth
control). The kernel sums the time over cores: a group that could have used two and got none loses two seconds per
second, reported as 1.

| metric | unit | role |
| --- | --- | --- |
| `cpu_limited_share` | fraction of the time, at most 1 | cause |
| `cpu_limited_periods` | fraction of the quota's periods | cause |
"""

from inferometer.errors import Unavailable
from inferometer.record.counters.cgroups import find_file
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

METRICS = (
    Metric("cpu_limited_share", "fraction", "Part of the time that the quota held it back.", "cause", own=True),
    Metric("cpu_limited_periods", "fraction", "Part of the quota's periods in which it did.", "cause", own=True),
)


class _Quota:
    def __init__(self, place: SystemRoots, path: str) -> None:
        self._files, self._path, self._rates = place.files, path, Rates()

    def read(self, now_ns: int) -> Reading:
        counts = dict(line.split() for line in self._files.read(self._path).splitlines())
        found: dict[str, float | None] = {}
        taken = float(counts.get("throttled_usec", 0)) * 1e3 + float(counts.get("throttled_time", 0))  # v2, v1: ns
        self._rates.per_s(found, "cpu_limited_share", taken, now_ns, 1e-9)
        if found.get("cpu_limited_share") is not None:
            found["cpu_limited_share"] = min(1.0, found["cpu_limited_share"] or 0.0)
        periods, held = (self._rates.grown(name, float(counts.get(name, 0))) for name in ("nr_periods", "nr_throttled"))
        if periods and held is not None:
            found["cpu_limited_periods"] = held / periods
        return found


def _open(place: SystemRoots) -> list[HostProbe]:
    root = place.family.root
    path = find_file(place.files, root, "cpu", "cpu.stat")
    if path is None or "nr_periods" not in place.files.read_once(path):
        raise Unavailable("no cpu.stat of the process's control group tells of a quota")
    return [HostProbe(_Quota(place, path).read)]


SOURCE = CounterSource("cpu_quota", METRICS, _open, most_hz=5.0)
