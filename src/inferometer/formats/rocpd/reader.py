"""Reads a rocpd database: what a table has is looked up, what it lacks is null."""

from pathlib import Path
from tempfile import TemporaryDirectory

from inferometer.errors import FormatError
from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.databases.sqlite import MAGIC, SqliteExport, plain_file
from inferometer.formats.rocpd.part import BASES, COPIES, DATA, KERNELS, Part, find_parts
from inferometer.formats.rocpd.run import Run
from inferometer.formats.rocprof.agents import describe_devices, join_devices
from inferometer.formats.rocprof.reader import TOOL, check
from inferometer.formats.source import Source
from inferometer.privacy.metadata import join_names
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts, NamedId
from inferometer.trace.private import count_secrets
from inferometer.trace.tables import ALL_TABLES

NAME = "rocpd"
_HINT = "Record it again with rocprofv3 --output-format rocpd, or merge and convert with ROCm's rocpd."
_SHOWN_TABLES = 6
_UNREAD = ("rocpd_memory_allocate", "rocpd_sample", "rocpd_arg", "rocpd_graph_launch", "rocpd_hip_event")


def read(source: Source, out: TraceBuilder) -> Facts:
    """Read the tables that `out` wants."""
    if not source.head.startswith(MAGIC):
        raise FormatError(f"{source.name}: expected a rocpd database, found {source.head[:20]!r}", hint=_HINT)
    with TemporaryDirectory(prefix="inferometer-", ignore_cleanup_errors=True) as folder:
        export = SqliteExport(plain_file(source, Path(folder)), source.name, out.losses, damaged=_HINT)
        parts = find_parts(export)
        if not parts:
            _refuse(export)
        return _read(source, export, parts, out)


def _read(source: Source, export: Export, parts: list[Part], out: TraceBuilder) -> Facts:
    runs = [Run(part, out) for part in parts]
    rows, done, counted = sum(part.count(base) for part in parts for base in (KERNELS, COPIES)), 0, 0
    for run in runs:
        if out.wants("launches"):
            for n in (*run.kernels(), *run.copies()):
                done += n
                source.report_share(done / max(rows, 1))
        if out.wants("calls", "spans"):
            run.regions()
        if out.wants("kernel_counters"):
            counted = run.counters(counted)
    if out.tables == ALL_TABLES:
        _count_the_rest(export, out)
    check(out)
    out.names = join_names(count_secrets(out.losses, run.private()) for run in runs)
    version = _schema(export)
    return Facts(
        NAME,
        source.name,
        tool=TOOL,
        hosts=tuple(dict.fromkeys(host for run in runs for host in run.hosts())),
        devices=join_devices(describe_devices(run.agents) for run in runs),
        processes=tuple(NamedId(process) for process in sorted({each for run in runs for each in run.processes()})),
        versions={"rocpd_schema": version} if version else {},
    )


def _schema(export: Export) -> str | None:
    for table in export.tables():
        if table.startswith("rocpd_metadata"):
            metadata = dict(read_all(export, table, [], ["tag", "value"]).drop_nulls().rows())
            if version := metadata.get("schema_version"):
                return str(version)
    return None


def _count_the_rest(export: Export, out: TraceBuilder) -> None:
    """Tables with rows that have no table of ours, under their names without a suffix."""
    for table in export.tables():
        if table.startswith("rocpd_") and not any(table == base or table.startswith(f"{base}_") for base in BASES):
            category = next((base for base in _UNREAD if table.startswith(base)), table)
            rows = export.count(table)
            out.losses.see(category, rows)
            out.losses.count("unknown_category", rows, category=category)


def _refuse(export: Export) -> None:
    names = export.tables()
    some = ", ".join(names[:_SHOWN_TABLES]) + (", …" if len(names) > _SHOWN_TABLES else "")
    raise FormatError(
        f"{export.name}: is a database, but none of rocpd that can be read: expected plain tables such as "
        f"{', '.join(DATA)}, found {some or 'none'}",
        hint="Tables that are packed with LZ4 need ROCm's own reader: write them unpacked. " + _HINT,
    )
