"""AMD's rocpd: the SQLite database that rocprofv3 of ROCm 7 writes by default.

Source: the schema of ROCm's rocprofiler-sdk, versions 3.0 and 4.1, read in 2026; no database of a real run was seen.
Fills launches, calls, spans and kernel_counters, of one or several merged runs. Modules: `part` finds the tables of a
run and what stands behind a track, `run` makes rows of them with `formats/rocprof/rows.py`.

Tables end in a suffix per run, and ids hold within it. The internal correlation id is called `stack_id` there, the
external one `correlation_id`. Views are never read: those of kernels leave out rows without a thread or an event. The
environment and the command line stand in the file; they are searched for secrets and never kept.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_MAGIC = b"SQLite format 3\0"
_PREFIX = "rocpd_"


def _sniff(head: bytes) -> bool:
    """An SQLite database with a table of rocpd; or with no table's name in its first pages, where there can be none."""
    return head.startswith(_MAGIC) and (_PREFIX.encode() in head or b"CREATE TABLE" not in head)


def _sniff_path(path: Path) -> bool:
    """By the names of all tables."""
    import sqlite3
    from contextlib import closing

    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
    query = f"SELECT count(*) FROM sqlite_master WHERE name GLOB '{_PREFIX}*'"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute(query).fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError, OverflowError):  # the reader says what is wrong
        return False


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.rocpd.reader import read

    return read(source, out)


FORMAT = Format(
    name="rocpd",
    title="AMD's rocpd databases of rocprofv3 (ROCm 7), .db",
    suffixes=(".db",),
    sniff=_sniff,
    sniff_path=_sniff_path,
    read=_read,
    tables=frozenset({"launches", "calls", "spans", "kernel_counters"}),
    limits=(
        "Allocations, samples, arguments and other tables that have no table of ours are counted by name, not read. "
        "The environment and the command line are never kept. Tables that are packed with LZ4 are refused."
    ),
    recorded_by=(
        "rocprofv3 --kernel-trace --hip-trace --memory-copy-trace --marker-trace --rccl-trace --output-format rocpd "
        "-- python app.py"
    ),
)
