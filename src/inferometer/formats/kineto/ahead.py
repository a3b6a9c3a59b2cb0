"""What can begin before polars is imported: whether a scan is enough, and the processes that read for it."""

from collections.abc import Collection, Mapping

from inferometer.formats.kineto.cut import CutFailed
from inferometer.formats.source import Limits, Source
from inferometer.processes import asked_processes, own_cores

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
    asked, cores = asked_processes(), len(own_cores())
    if source.path is None or (asked or cores) < 2:
        return 0
    try:
        size = source.path.stat().st_size
        if source.is_packed:
            return int(asked is not None or size >= FROM_PACKED_BYTES)
    except OSError:
        return 0
    if asked is not None:
        return asked
    return min(cores, _MOST_PROCESSES, 1 + size // BYTES_PER_PROCESS) if size >= FROM_BYTES else 0
