"""The recorded processes with their children, and the processor time that they took.

Children come from /proc/PID/task/TID/children where the kernel has it, else from the parents that all of
/proc/*/stat name. They are looked for once a second where anything began since (/proc/loadavg shows the last id given),
less often where that takes long: one that lives for less may be missed, and is then somebody else's.
"""

import time
from collections.abc import Callable, Collection, Iterator

from inferometer.record.counters.files import Files

_LOOK_NS = 1_000_000_000
_COST = 200  # looking takes at most this part of the time
_MOST = 512  # processes; more is a server of processes, not a run


def process_cpu_ns(process: int) -> int | None:
    """Processor time of all threads of a process, ns; None where it is gone.

    Linux's clock of another process: its number is (~pid << 3) | 2, as clock_getcpuclockid(3) makes it. No file of
    /proc shows this finer than 10 ms.
    """
    try:
        return time.clock_gettime_ns((~process << 3) | 2)
    except (OSError, AttributeError, OverflowError):
        return None


class Family:
    """`members`: ids of the roots and of all that they started, as far as seen.

    Args:
        roots: Ids of the recorded processes.
        files: Where /proc is.
        without: Ids that aren't counted: a recorder's own helpers.
        cpu_ns: In the place of `process_cpu_ns`.
    """

    def __init__(
        self,
        roots: Collection[int],
        files: Files,
        *,
        without: Collection[int] = (),
        cpu_ns: Callable[[int], int | None] = process_cpu_ns,
    ) -> None:
        self.root = next(iter(roots), 0)
        self.members: tuple[int, ...] = tuple(roots)
        self._roots, self._files, self._without, self._cpu_ns = tuple(roots), files, without, cpu_ns
        self._known_ns: dict[int, int] = {}
        self._next_ns: int | None = None
        self._last_id: str | None = None

    def refresh(self, now_ns: int, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        """Look for children, where it is time to."""
        if self._next_ns is not None and now_ns < self._next_ns:
            return
        began_ns = clock()
        self._next_ns = now_ns + _LOOK_NS
        last_id = self._newest()
        if last_id is not None and last_id == self._last_id:
            return
        self._last_id = last_id
        self.members = tuple(dict.fromkeys((*self._roots, *self._descendants())))[:_MOST]
        self._next_ns = now_ns + max(_LOOK_NS, _COST * (clock() - began_ns))

    def cpu_ns(self) -> int:
        """Processor time of all since each was first seen, ns; what those took that have ended stays in it."""
        for process in self.members:
            taken = self._cpu_ns(process)
            if taken is not None:
                self._known_ns[process] = taken
        return sum(self._known_ns.values())

    def _newest(self) -> str | None:
        try:
            return self._files.read("/proc/loadavg").split()[-1]
        except (OSError, IndexError):
            return None

    def _descendants(self) -> Iterator[int]:
        children = self._known_children if self._is_known() else self._found_children()
        waiting, seen = list(self._roots), set(self._without)
        while waiting:
            process = waiting.pop()
            if process in seen:
                continue
            seen.add(process)
            yield process
            waiting += children(process)

    def _is_known(self) -> bool:
        try:
            self._files.read_once(f"/proc/{self.root}/task/{self.root}/children")
        except OSError:
            return False
        return True

    def _known_children(self, process: int) -> list[int]:
        found: list[int] = []
        try:
            for thread in self._files.names(f"/proc/{process}/task"):
                found += map(int, self._files.read_once(f"/proc/{process}/task/{thread}/children").split())
        except OSError:  # it, or a thread of it, has just ended
            return found
        return found

    def _found_children(self) -> Callable[[int], list[int]]:
        children: dict[int, list[int]] = {}
        try:
            names = self._files.names("/proc")
        except OSError:
            names = []
        for name in names:
            if name.isdigit():
                children.setdefault(self._parent(name), []).append(int(name))
        return lambda process: children.get(process, [])

    def _parent(self, process: str) -> int:
        try:
            fields = self._files.read_once(f"/proc/{process}/stat").rpartition(")")[2].split()
            return int(fields[1])
        except (OSError, IndexError, ValueError):
            return -1
