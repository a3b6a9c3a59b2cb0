"""Traffic of the disks: in all, and without the recorded processes' own; how busy the busiest one is.

Source: /proc/diskstats (the kernel's documentation of I/O statistics), whole disks only, without loops, RAM disks and
those made of other disks (dm, md), whose traffic would count twice; /proc/PID/io. The recorded processes' writes are
taken off when they make them, not when the kernel writes them out later: over some seconds `others_disk_write` holds,
in a single sample it may not.

| metric | unit | role |
| --- | --- | --- |
| `disk_read`, `disk_write` | B/s, of all disks | cause |
| `disk_util` | % of the time, busiest disk | cause |
| `others_disk_read`, `others_disk_write` | B/s | cause |
| `process_disk_read`, `process_disk_write` | B/s | effect |
"""

import re

from inferometer.errors import Unavailable
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

_SECTOR = 512  # bytes, whatever the disk's own are
_NO_DISK = re.compile(r"loop|ram|zram|dm-|md|sr|fd|nbd")
METRICS = (
    Metric("disk_read", "B/s", "Read from all disks.", "cause"),
    Metric("disk_write", "B/s", "Written to all disks.", "cause"),
    Metric("disk_util", "%", "Time in which the busiest disk had work.", "cause"),
    Metric("others_disk_read", "B/s", "`disk_read` without what the recorded processes read.", "cause"),
    Metric("others_disk_write", "B/s", "`disk_write` without what the recorded processes wrote.", "cause"),
    Metric("process_disk_read", "B/s", "What the recorded processes had read from disks.", "effect", own=True),
    Metric("process_disk_write", "B/s", "What they gave to be written to disks.", "effect", own=True),
)


class _Disks:
    def __init__(self, place: SystemRoots, disks: frozenset[str]) -> None:
        self._place, self._disks, self._rates = place, disks, Rates()
        self._known: dict[int, tuple[int, int]] = {}

    def read(self, now_ns: int) -> Reading:
        found: dict[str, float | None] = {}
        sums, busy = [0, 0], dict[str, float | None]()
        for fields in map(str.split, self._place.files.read("/proc/diskstats").splitlines()):
            if fields[2] in self._disks:
                sums[0], sums[1] = sums[0] + int(fields[5]), sums[1] + int(fields[9])
                self._rates.per_s(busy, fields[2], int(fields[12]), now_ns, 0.1)  # ms per second to %
        own = self._own()
        for i, way in enumerate(("read", "write")):
            self._rates.per_s(found, f"disk_{way}", sums[i], now_ns, _SECTOR)
            if own is not None:
                self._rates.per_s(found, f"process_disk_{way}", own[i], now_ns)
                whole, part = found.get(f"disk_{way}"), found.get(f"process_disk_{way}")
                if whole is not None and part is not None:
                    found[f"others_disk_{way}"] = max(0.0, whole - part)
        shares = [share for share in busy.values() if share is not None]
        return found | ({"disk_util": min(100.0, max(shares))} if shares else {})

    def _own(self) -> tuple[int, int] | None:
        """Bytes of all recorded processes, of those that ended what they had; None where that is forbidden."""
        for process in self._place.family.members:
            try:
                lines = self._place.files.read(f"/proc/{process}/io").splitlines()
            except PermissionError:
                self._place.lack(f"host_disk: /proc/{process}/io is forbidden: own traffic isn't known")
                continue
            except OSError:  # it has ended, or the kernel doesn't account
                continue
            counts = dict(line.split(": ") for line in lines)
            self._known[process] = int(counts["read_bytes"]), int(counts["write_bytes"])
        if not self._known:
            return None
        reads, writes = zip(*self._known.values(), strict=True)
        return sum(reads), sum(writes)


def _open(place: SystemRoots) -> list[HostProbe]:
    names = [line.split()[2] for line in place.files.read("/proc/diskstats").splitlines()]
    try:
        whole = frozenset(place.files.names("/sys/block"))
    except OSError:
        whole = frozenset(names)
    disks = frozenset(name for name in names if name in whole and not _NO_DISK.match(name))
    if not disks:
        raise Unavailable("no disk in /proc/diskstats")
    return [HostProbe(_Disks(place, disks).read)]


SOURCE = CounterSource("host_disk", METRICS, _open, most_hz=5.0)
