"""What can begin before polars is imported: whether a scan is enough, and the processes that read for it."""

import os
from collections.abc import Collection, Mapping

from inferometer.formats.kineto.cut import CutFailed
from inferometer.formats.source import Limits, Source

FROM_BYTES = 32 << 20  # below this, another process costs more than it saves
FROM_PACKED_BYTES = 3 << 20
BYTES_PER_PROCESS = 64 << 20
_MOST_PROCESSES = 8


def is_scan(source: Source, tables: Collection[str] | None) -> bool:
    """Whether the launch scan may answer: launches alone are wanted, and a full read could still follow."""
    return tables is not None and set(tables) == {"launches"} and source.rewindable


def start(source: Source, tables: Mapping[str, Collection[str] | None] | None) -> None:
    """Start the processes where that pays; they become `source.ahead`. They know the usual limits only."""
    if tables is None or not is_scan(source, tables) or source.path is None or source.limits != Limits():
        return
    if count := _processes(source):
        from inferometer.formats.kineto import launch_workers

        try:
            source.ahead = launch_workers.LaunchWorkers(source.path, tables["launches"], count)
        except CutFailed:
            return


def _processes(source: Source) -> int:
    """How many are worth it for a file of this size, and have a core; 0: the one that we are is enough."""
    cores = _cores()
    if source.path is None or cores < 2:
        return 0
    try:
        size = source.path.stat().st_size
        if source.is_packed:
            return int(size >= FROM_PACKED_BYTES)
    except OSError:
        return 0
    return min(cores, _MOST_PROCESSES, 1 + size // BYTES_PER_PROCESS) if size >= FROM_BYTES else 0


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1
