"""Open any source: a profiler's file, a store, or standard input.

What needs polars is imported late: for a large file, another process is already at work by then.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.errors import InputError, UnknownName
from inferometer.formats.base import find_format
from inferometer.formats.source import Limits, Progress, Source

if TYPE_CHECKING:
    from inferometer.trace.builder import Wanted
    from inferometer.trace.trace import Trace


def open_trace(
    path: str | Path,
    tables: "Wanted" = None,
    *,
    format: str | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> "Trace":
    """Open a profile as a trace: any format that `inferometer formats` lists, a store (`NAME.ifm`), or `-`.

    Args:
        path: A file, a store's folder, or `-` for standard input.
        tables: Names of the tables that you need, all by default. Fewer are read faster: for `{"launches"}` of a
            Kineto file only the text around device work is decoded. A mapping from tables to columns lets a reader
            leave out other columns too.
        format: A format's name, when sniffing it from the content is not wanted.
        limits: What to refuse; see `Limits`.
        progress: Called with bytes read and bytes in all (None for a pipe).

    Raises:
        InputError: The file can't be read, is of no known format, or is damaged beyond repair. Damage that leaves
            something to read is counted in `trace.losses` instead.
    """
    if isinstance(tables, str):
        raise InputError(f"tables: want a set of names, found the text {tables!r}", hint=f"Write {{{tables!r}}}.")
    if _is_store(path):
        _refuse_format(path, format)
        return _open_store(Path(path), tables)
    source = Source(path, limits=limits, progress=progress)
    fmt = find_format(source, format)
    wanted = None if tables is None else frozenset(tables) & fmt.tables
    try:
        if fmt.start:
            fmt.start(source, wanted)
        from inferometer.trace.builder import TraceBuilder

        builder = TraceBuilder(_known(tables))
        with _collector_paused():
            return builder.finish(fmt.read(source, builder, builder.tables & fmt.tables))
    finally:
        source.stop_ahead()


def import_trace(
    path: str | Path,
    store: str | Path,
    *,
    format: str | None = None,
    force: bool = False,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> "Trace":
    """Read all tables of `path` straight into the store `store` in bounded memory, and open that.

    Raises:
        InputError: As `open_trace`; or `store` exists and `force` is not set.
    """
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.store import StoreFolder, read_store, write_manifest

    if _is_store(path):
        open_trace(path, format=format).save(store, force=force)
        return read_store(Path(store))
    source = Source(path, limits=limits, progress=progress)
    fmt = find_format(source, format)
    with StoreFolder(Path(store), force=force) as folder:
        builder = TraceBuilder(folder=folder)
        with _collector_paused():
            trace = builder.finish(fmt.read(source, builder, builder.tables & fmt.tables))
        write_manifest(folder, trace.facts, trace.losses, builder.parts())
    return read_store(Path(store))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Reading makes millions of short-lived objects without cycles: Python's cycle collector would only cost time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _is_store(path: str | Path) -> bool:
    try:
        if str(path) == "-" or not Path(path).is_dir():
            return False
    except (OSError, ValueError):  # opening it as a file tells what is wrong
        return False
    from inferometer.trace.store import is_store

    return is_store(Path(path))


def _refuse_format(path: str | Path, format: str | None) -> None:
    if format is not None:
        raise InputError(f"{path}: a store is opened as a store, not as {format!r}", hint="Leave out the format.")


def _open_store(path: Path, tables: "Wanted") -> "Trace":
    from inferometer.trace.store import read_store

    known = _known(tables)
    return read_store(path, None if known is None else frozenset(known))


def _known(tables: "Wanted") -> "Wanted":
    """`tables` as they are, when every table and column of them is declared."""
    from inferometer.trace.tables import ALL_TABLES, TABLES

    for unknown in sorted(frozenset(tables or ()) - ALL_TABLES):
        raise UnknownName("table", unknown, sorted(ALL_TABLES))
    if isinstance(tables, Mapping):
        for table, columns in tables.items():
            for unknown in sorted(frozenset(columns) - frozenset(TABLES[table].schema)):
                raise UnknownName(f"column of {table}", unknown, list(TABLES[table].schema))
    return tables
