"""NVIDIA Nsight Systems: `.sqlite` and `parquetdir` exports, and `.nsys-rep` reports where `nsys` is installed.

Source: NVIDIA's documentation of the export schema, versions 2019 to 2025. The schema changes between versions, so the
tables and columns of each file are inspected and nothing is assumed. Modules: `parquet` and `report` give the
columns of an export, `launches`, `host`, `graphs` and `paths` make tables of them, `facts` reads the rest.

`formats/nsys` reads exports. `databases/export.py` says what any gives (tables, columns, batches of rows);
`databases/sqlite.py` and `parquet.py` are the two kinds, and `report.py` makes the first out of a `.nsys-rep` with the
`nsys` on PATH. The schema changes from version to version: what a file has is looked up, what it lacks is null.

Whole numbers of SQLite's tables come from their pages by the library in C++ (`databases/page_pass.py`), where it is
there and what a table holds is usual; else through ADBC, which the base installation has without pyarrow. A table is
cut into ranges of row ids that two connections read side by side, in the file's order. SQLite keeps any type in any
column, ADBC infers types from the first rows, and polars trusts text to be UTF-8. So text comes as bytes and is
checked, and a batch that is not what it should be is read again with care, counting what can't be kept. The rows of
each table are counted to see that none is missing. Only plain tables are read: a view or virtual table in the place of
one is refused, a generated column is no column. Times are subtracted here, not in SQL, where a text minus a number is a
number.

Ids. `ids.py` resolves strings (to categories) and unpacks `globalTid` and `globalPid`. `tracks.py` finds the physical
device after each process's own numbering. `paths.py` makes one tree of all call chains. Tables with rows that have
no table of ours are counted under their names.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_MAGIC = b"SQLite format 3\0"
_ROCPD = b"rocpd_"  # tables of `formats/rocpd`
_REPORTS = (".nsys-rep", ".qdrep")
_TABLES_OF_AN_EXPORT = ("StringIds", "META_DATA_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")


def _sniff(head: bytes) -> bool:
    """Any SQLite database but AMD's: the reader says what it is where it is another program's."""
    return head.startswith(_MAGIC) and _ROCPD not in head


def _sniff_path(path: Path) -> bool:
    """A report by its name, or a folder with Parquet files named after tables of an export."""
    if path.is_dir():
        return any((path / f"{table}.parquet").is_file() for table in _TABLES_OF_AN_EXPORT)
    return path.suffix in _REPORTS


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.nsys.reader import read

    return read(source, out)


FORMAT = Format(
    name="nsys",
    title="Nsight Systems: .sqlite and parquetdir exports; .nsys-rep and .qdrep where nsys is installed",
    suffixes=(".sqlite", ".nsys-rep", ".qdrep"),
    sniff=_sniff,
    sniff_path=_sniff_path,
    read=_read,
    tables=frozenset({"launches", "calls", "spans", "graph_nodes", "host_events", "call_paths", "counters", "log"}),
    recorded_by=(
        "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node -o report python serve.py; "
        "then nsys export --type sqlite report.nsys-rep"
    ),
    limits="Scheduling, graphics, network and other tables that have no table of ours are counted by name, not read.",
    aliases=("nsight-systems",),
)
