"""One source read into one trace: what opening, importing and folders of ranks have in common.

What needs polars is imported late: for a large file, another process is already at work by then.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.errors import InputError, UnknownName
from inferometer.formats.base import Asked, Format
from inferometer.formats.source import Source

if TYPE_CHECKING:
    from inferometer.trace.builder import RowsListener, TraceBuilder, Wanted
    from inferometer.trace.trace import Trace


def read_source(
    source: Source,
    fmt: Format,
    tables: "Wanted",
    *,
    memory_bytes: int | None = None,
    spill_to: Path | None = None,
    listener: "RowsListener | None" = None,
) -> "Trace":
    """Read the tables asked for; the rest as in `TraceBuilder`, whose own measure of memory is the default."""
    try:
        begin(source, fmt, tables)
        from inferometer.trace.builder import MEMORY_BUDGET_BYTES, TraceBuilder

        memory_bytes = memory_bytes or MEMORY_BUDGET_BYTES
        wanted = known_tables(tables)
        builder = TraceBuilder(wanted, memory_bytes=memory_bytes, spill_to=spill_to, listener=listener)
        try:
            return fill(builder, source, fmt)
        except BaseException:
            builder.reset()  # what it wrote is gone before anyone is told
            raise
    finally:
        source.stop_ahead()


def begin(source: Source, fmt: Format, tables: "Wanted") -> None:
    """Begin what can be done before `read_source`, which goes on with it, and before polars is imported."""
    if fmt.start and source.ahead is None:
        fmt.start(source, asked_of(fmt, tables))


def asked_of(fmt: Format, tables: "Wanted") -> Asked:
    """What is asked of the format."""
    if tables is None:
        return None
    named: Mapping[str, Iterable[str]] = tables if isinstance(tables, Mapping) else {}
    return {table: tuple(named[table]) if table in named else None for table in tables if table in fmt.tables}


def fill(out: "TraceBuilder", source: Source, fmt: Format) -> "Trace":
    """Read what `out` wants into it, and finish it."""
    with collector_paused():
        trace = out.finish(fmt.read(source, out, out.tables & fmt.tables))
    if change := source.change():
        trace.losses.count("changed_while_read", example=change)
    return trace


def open_store(path: Path, tables: "Wanted") -> "Trace":
    """The store at `path`."""
    from inferometer.trace.store import read_store

    known = known_tables(tables)
    return read_store(path, None if known is None else frozenset(known))


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there; False for what can't even be looked at."""
    try:
        return str(path) != "-" and Path(path).is_dir()
    except (OSError, ValueError):  # opening it as a file says what is wrong
        return False


def is_store(path: str | Path) -> bool:
    """Whether a store is there."""
    if not is_folder(path):
        return False
    from inferometer.trace.store_writer import is_store

    return is_store(Path(path))


def refuse_format(path: str | Path, format: str | None) -> None:
    """A store is read as what it is."""
    if format is not None:
        raise InputError(f"{path}: a store is opened as a store, not as {format!r}", hint="Leave out the format.")


def known_tables(tables: "Wanted") -> "Wanted":
    """`tables` as they are, when every table and column of them is declared."""
    from inferometer.trace.tables import ALL_TABLES, TABLES

    for unknown in sorted(frozenset(tables or ()) - ALL_TABLES):
        raise UnknownName("table", unknown, sorted(ALL_TABLES))
    if isinstance(tables, Mapping):
        for table, columns in tables.items():
            for unknown in sorted(frozenset(columns) - frozenset(TABLES[table].schema)):
                raise UnknownName(f"column of {table}", unknown, list(TABLES[table].schema))
    return tables


@contextmanager
def collector_paused() -> Iterator[None]:
    """Reading makes millions of short-lived objects without cycles: Python's cycle collector would only cost time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
