"""What a process does, as the system says and not the process itself: CPU time, threads, children, signals.

Linux only; elsewhere nothing is known, and nothing refused for it.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_IS_LINUX = sys.platform == "linux"
_WAKING = tuple(
    getattr(signal, name) for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2", "SIGIO", "SIGURG")
)
"""Signals that interrupt a process that waits, and that no library of numbers handles."""


class Clock:
    """What a process worked and waited for, from one moment to another.

    Wall time alone would hold what the machine lets both wait, since others run on its CPUs: of both the system counts
    how long they could have run and didn't (the second number of `schedstat`).
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._files = [_open_waits(f"{pid}/schedstat"), _open_waits("thread-self/schedstat")]
        self._cpu_ns: int | None = None
        self._waited_ns = [0, 0]

    def start(self) -> int | None:
        """From now on; CPU time of the process so far."""
        self._cpu_ns = cpu_ns(self._pid)
        self._waited_ns = [_waited_ns(file) for file in self._files]
        return self._cpu_ns

    def stop(self, wall_ns: int) -> float:
        """Of this wall time, what neither spent waiting for a CPU; at least the CPU time of all its threads."""
        waited = sum(_waited_ns(file) - before for file, before in zip(self._files, self._waited_ns, strict=True))
        now = cpu_ns(self._pid)
        worked = 0 if now is None or self._cpu_ns is None else now - self._cpu_ns
        return float(max(worked, wall_ns - waited))

    def close(self) -> None:
        """Once."""
        for file in self._files:
            if file is not None:
                os.close(file)


def _open_waits(name: str) -> int | None:
    with suppress(OSError):
        return os.open(_PROC / name, os.O_RDONLY)
    return None


def _waited_ns(file: int | None) -> int:
    """Until now, for a CPU; 0 where it isn't known."""
    if file is None:
        return 0
    with suppress(OSError, ValueError, IndexError):
        return int(os.pread(file, 128, 0).split()[1])
    return 0


@dataclass(frozen=True)
class Standing:
    """A process at one moment.

    `children_ns`: CPU time of all that it started and that is still there, by process id.
    """

    threads: int = 0
    children_ns: tuple[tuple[int, int], ...] = ()
    handled: frozenset[str] = frozenset()

    def since(self, before: "Standing", began: "Standing", *, busy_ns: int) -> list[str]:
        """What it does besides its calls; children that were idle do no harm.

        Args:
            before: When it was last looked at, or had just loaded the candidate.
            began: When the round began.
            busy_ns: CPU time that a child may take in the round.
        """
        found = []
        if (more := self.threads - before.threads) > 0:
            found.append(f"threads went on after its calls ({more} more than before): work that isn't timed")
        known = dict(began.children_ns)
        busy = [pid for pid, ns in self.children_ns if ns - known.get(pid, 0) > busy_ns]
        if busy:
            found.append(f"processes that it started worked between its calls ({len(busy)}): work that isn't timed")
        if handled := sorted(self.handled - before.handled):
            found.append(f"it handles {', '.join(handled)}: work between its calls")
        return found


def cpu_ns(pid: int) -> int | None:
    """CPU time of all threads of a process so far; None where it isn't known, or the process has ended."""
    if not _IS_LINUX:
        return None
    with suppress(OSError):
        return time.clock_gettime_ns(((~pid) << 3) | 2)  # clock_getcpuclockid(3), by process
    return None


def look_at(pid: int) -> Standing:
    """How a process stands now."""
    if not _IS_LINUX:
        return Standing()
    children = tuple((each, cpu_ns(each) or 0) for each in descendants(pid))
    return Standing(_threads(pid), children, _handled(pid))


def descendants(pid: int) -> Sequence[int]:
    """All processes below one, in order."""
    parents: dict[int, int] = {}
    for each in _PROC.iterdir() if _IS_LINUX else ():
        if each.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                parents[int(each.name)] = int((each / "stat").read_bytes().rpartition(b")")[2].split()[1])
    found = {pid}
    while grown := {each for each, parent in parents.items() if parent in found} - found:
        found |= grown
    return sorted(found - {pid})


def _threads(pid: int) -> int:
    with suppress(OSError):
        return sum(1 for _ in (_PROC / str(pid) / "task").iterdir())
    return 0


def _handled(pid: int) -> frozenset[str]:
    with suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_text("ascii", "replace").splitlines():
            if line.startswith("SigCgt:"):
                mask = int(line.split()[1], 16)
                return frozenset(each.name for each in _WAKING if mask >> (each - 1) & 1)
    return frozenset()
