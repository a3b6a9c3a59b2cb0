"""What can begin before polars is imported: whether a scan is enough, and the threads or processes that read for it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from inferometer.formats.base import Asked
from inferometer.formats.kineto.cut import CutFailed
from inferometer.formats.source import Limits, Source
from inferometer.processes import asked_processes, own_cores

if TYPE_CHECKING:
    from inferometer.formats.kineto.launch_workers import LaunchWorkers
    from inferometer.formats.kineto.native.launches import NativeLaunches
    from inferometer.formats.native.threads import DecoderThreads

FROM_BYTES = 32 << 20  # below this, another process costs more than it saves
FROM_PACKED_BYTES = 3 << 20
FROM_NATIVE_BYTES = 2 << 20
FROM_PACKED_NATIVE_BYTES = 256 << 10
BYTES_PER_PROCESS = 64 << 20
_MOST_PROCESSES = 8


def is_scan(source: Source, tables: Collection[str] | None) -> bool:
    """Whether the launch scan may answer: launches alone are wanted, and a full read could still follow."""
    return tables is not None and set(tables) == {"launches"} and source.rewindable


def start(source: Source, tables: Asked) -> None:
    """Start what pays; it becomes `source.ahead`. It knows the usual limits only."""
    if tables is None or not is_scan(source, tables) or source.limits != Limits():
        return
    source.ahead = _start_native(source) or start_workers(source, tables["launches"])


def decoders(tables: Asked) -> "DecoderThreads | None":
    """Threads for files that are read at the same time; None where the library doesn't decode them, or scans."""
    from inferometer.formats.native.library import find_library, reading_threads

    library = find_library()
    if library is None or (tables is not None and set(tables) == {"launches"}):
        return None
    from inferometer.formats.native.threads import DecoderThreads

    return DecoderThreads(library, reading_threads())


def start_workers(source: Source, columns: Collection[str] | None) -> "LaunchWorkers | None":
    """Processes for a file that is large enough; None where the one that we are does it."""
    count = _processes(source)
    if not count or source.path is None:
        return None
    from inferometer.formats.kineto import launch_workers

    try:
        return launch_workers.LaunchWorkers(source.path, columns, count)
    except CutFailed:
        return None


def _start_native(source: Source) -> "NativeLaunches | None":
    """Threads of the library, where there is one and the file is large enough."""
    path, is_packed = source.path, source.is_packed
    if path is None or (source.size or 0) < (FROM_PACKED_NATIVE_BYTES if is_packed else FROM_NATIVE_BYTES):
        return None
    from inferometer.formats.native.library import find_library, reading_threads

    library = find_library()
    if library is None:
        return None
    threads = reading_threads(source.at_once)
    try:
        if is_packed:
            from inferometer.formats.kineto.native.packed import PackedLaunches

            return PackedLaunches(library, path, threads)
        from inferometer.formats.kineto.native.launches import PlainLaunches

        return PlainLaunches(library, path, threads)
    except CutFailed:
        return None


def _processes(source: Source) -> int:
    """How many are worth it for a file of this size, and have a core; 0: the one that we are is enough."""
    asked, cores = asked_processes(), len(own_cores())
    if source.path is None or (asked or cores) < 2:
        return 0
    size = source.size or 0
    if source.is_packed:
        return int(asked is not None or size >= FROM_PACKED_BYTES)
    if asked is not None:
        return asked
    if size < FROM_BYTES:
        return 0
    beside = max(1, source.at_once - 1)  # files whose reading has begun
    return max(1, min(cores, _MOST_PROCESSES, 1 + size // BYTES_PER_PROCESS) // beside)
