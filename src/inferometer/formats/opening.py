"""Open any source: a profiler's file, a store, or standard input."""

from collections.abc import Iterable
from pathlib import Path

from inferometer.errors import InputError
from inferometer.formats.base import find_format
from inferometer.formats.source import Limits, Progress, Source
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.store import StoreFolder, is_store, read_store, write_manifest
from inferometer.trace.tables import ALL_TABLES, TABLES
from inferometer.trace.trace import Trace


def open_trace(
    path: str | Path,
    tables: Iterable[str] | None = None,
    *,
    format: str | None = None,  # the field's word, and the option's
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Open a profile as a trace: any format that `inferometer formats` lists, a store (`NAME.ifm`), or `-`.

    Args:
        path: A file, a store's folder, or `-` for standard input.
        tables: Names of the tables that you need, all by default. Fewer are read faster: for `{"launches"}` of a
            Kineto file only the text around device work is decoded.
        format: A format's name, when sniffing it from the content is not wanted.
        limits: What to refuse; see `Limits`.
        progress: Called with bytes read and bytes in all (None for a pipe).

    Raises:
        InputError: The file can't be read, is of no known format, or is damaged beyond repair. Damage that leaves
            something to read is counted in `trace.losses` instead.
    """
    wanted = _check_tables(tables)
    if str(path) != "-" and is_store(Path(path)):
        return read_store(Path(path), None if tables is None else wanted)
    source = Source(path, limits=limits, progress=progress)
    fmt = find_format(source, format)
    builder = TraceBuilder(wanted)
    return builder.finish(fmt.read(source, builder, wanted))


def import_trace(
    path: str | Path,
    store: str | Path,
    *,
    format: str | None = None,
    force: bool = False,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Read all tables of `path` straight into the store `store` in bounded memory, and open that.

    Raises:
        InputError: As `open_trace`; or `store` exists and `force` is not set.
    """
    if str(path) != "-" and is_store(Path(path)):
        open_trace(path).save(store, force=force)
        return read_store(Path(store))
    source = Source(path, limits=limits, progress=progress)
    fmt = find_format(source, format)
    with StoreFolder(Path(store), force=force) as folder:
        builder = TraceBuilder(folder=folder)
        trace = builder.finish(fmt.read(source, builder, ALL_TABLES))
        write_manifest(folder, trace.facts, trace.losses, builder.parts())
    return read_store(Path(store))


def _check_tables(tables: Iterable[str] | None) -> frozenset[str]:
    if isinstance(tables, str):
        raise InputError(
            f"tables: want a set of names, found the text {tables!r}", hint=f"Write tables={{{tables!r}}}."
        )
    wanted = ALL_TABLES if tables is None else frozenset(tables)
    if unknown := sorted(wanted - ALL_TABLES):
        from inferometer.errors import UnknownName

        raise UnknownName("table", unknown[0], sorted(TABLES))
    return wanted
