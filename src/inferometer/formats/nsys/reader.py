"""Reads an export: finds out what it is, asks for the columns that the question needs, counts what has no table."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from inferometer.errors import FormatError
from inferometer.formats.databases.export import Export
from inferometer.formats.databases.sqlite import MAGIC, SqliteExport, plain_file
from inferometer.formats.nsys import graphs, host, launches, metrics, paths
from inferometer.formats.nsys.facts import find_private, read_facts
from inferometer.formats.nsys.ids import Strings
from inferometer.formats.nsys.parquet import ParquetExport
from inferometer.formats.nsys.report import export_report
from inferometer.formats.nsys.tracks import Tracks
from inferometer.formats.source import Source
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_device_work
from inferometer.trace.facts import Facts
from inferometer.trace.private import count_secrets
from inferometer.trace.tables import ALL_TABLES, TABLES

NAME = "nsys"
REPORTS = (".nsys-rep", ".qdrep")
DAMAGED = "The database is damaged or was cut off: export it again with `nsys export --type sqlite`."
_PLAIN = ("StringIds", "CUPTI_", "NVTX_", "CUDA_", "TARGET_INFO_")
_EVENTS = (*launches.TABLES, host.CALLS, host.NVTX, host.SYNCS, *host.LIBRARIES, host.SYSTEM, graphs.NODES)
_SIGNS = frozenset({*_EVENTS, "StringIds", "META_DATA_EXPORT", "ANALYSIS_DETAILS"})
_KNOWN = frozenset({*_EVENTS, metrics.SAMPLES, metrics.MESSAGES, paths.CHAINS})
_BESIDE = re.compile(
    r"StringIds|ThreadNames|ThreadGroups|ProcessStreams|PROCESSES|(ANALYSIS|ENUM|META_DATA|TARGET_INFO|EXPORT|sqlite)_\w+"
)
_SHOWN_TABLES = 6


def read(source: Source, out: TraceBuilder) -> Facts:
    """Read the tables that `out` wants."""
    with _open(source, out) as export:
        _check(export)
        return _read(source, export, out)


def _read(source: Source, export: Export, out: TraceBuilder) -> Facts:
    strings, tracks = Strings(export, out.losses), Tracks(export)
    if out.wants("launches"):
        rows, done = sum(map(export.estimate, launches.TABLES)), 0
        for n in launches.Launches(export, out, strings, tracks).read():
            done += n
            source.report_share(done / rows)
    chains = paths.read_paths(export, out, strings) if out.wants("calls", "call_paths") else None
    side = host.Host(export, out, strings, tracks)
    if out.wants("calls") and chains is not None:
        side.calls(chains)
    if out.wants("spans"):
        side.nvtx()
        side.syncs()
        side.libraries()
    if out.wants("graph_nodes"):
        graphs.read_nodes(export, out, strings)
    if out.wants("host_events"):
        side.system()
    if out.wants("counters"):
        metrics.read_counters(export, out)
    if out.wants("log"):
        metrics.read_messages(export, out)
    if out.tables == ALL_TABLES:
        _count_the_rest(export, out)
    check_device_work(out, whole=out.narrow("launches") == frozenset(TABLES["launches"].schema))
    out.names = count_secrets(out.losses, find_private(export))
    return read_facts(export, strings, tracks, NAME)


@contextmanager
def _open(source: Source, out: TraceBuilder) -> Iterator[Export]:
    """The export behind `source`: a folder, a database, or a report that is exported first."""
    if source.is_folder and source.path:
        yield ParquetExport(source.path, source.name, out.losses)
        return
    with TemporaryDirectory(prefix="inferometer-", ignore_cleanup_errors=True) as folder:
        database = _find_database(source, Path(folder))
        yield SqliteExport(database, source.name, out.losses, damaged=DAMAGED, plain=_PLAIN)


def _find_database(source: Source, folder: Path) -> Path:
    """The database as a plain file: SQLite can't read from a stream, nor compressed."""
    if not source.head.startswith(MAGIC):
        if source.path and source.path.suffix in REPORTS:
            return export_report(source.path, source.name, folder)
        raise FormatError(
            f"{source.name}: expected an SQLite export of Nsight Systems, found {source.head[:20]!r}",
            hint="Make one with `nsys export --type sqlite`.",
        )
    return plain_file(source, folder)


def _check(export: Export) -> None:
    """Refuse what is no export, or lacks what makes its rows readable."""
    names = export.tables()
    if _SIGNS.isdisjoint(names):
        some = ", ".join(names[:_SHOWN_TABLES]) + (", …" if len(names) > _SHOWN_TABLES else "")
        raise FormatError(
            f"{export.name}: is a database, but no export of Nsight Systems: expected tables such as StringIds and "
            f"{launches.KERNELS}, found {some or 'no table'}",
            hint="Make an export with `nsys export --type sqlite`.",
        )
    for table in launches.TABLES:
        columns = export.columns(table)
        if columns and not {"start", "end"} <= columns:
            raise FormatError(
                f"{export.name}: {table}: expected the columns start and end, found {', '.join(sorted(columns))}",
                hint="Export the report again with a current nsys.",
            )
    if not export.columns("StringIds") and export.estimate(launches.KERNELS):
        raise FormatError(
            f"{export.name}: expected the table StringIds, which holds the names of the kernels, found none",
            hint="Export the whole report again, with all tables.",
        )


def _count_the_rest(export: Export, out: TraceBuilder) -> None:
    """Tables with rows that have no table of ours: counted under their names."""
    for table in export.tables():
        if table in _KNOWN or _BESIDE.fullmatch(table):
            continue
        rows = export.count(table)
        out.losses.see(table, rows)
        out.losses.count("unknown_category", rows, category=table)
