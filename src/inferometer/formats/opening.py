"""Open any source: a profiler's file, a store, a folder of ranks, or standard input.

What needs polars is imported late: for a large file, another process is already at work by then.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.errors import InputError
from inferometer.formats.base import find_format, find_inside, is_one_profile
from inferometer.formats.reading import fill, is_folder, is_store, open_store, read_source, refuse_format
from inferometer.formats.source import Limits, Progress, Source
from inferometer.samples import without_prefix

if TYPE_CHECKING:
    from inferometer.trace.builder import RowsListener, Wanted
    from inferometer.trace.trace import Trace


def open_trace(
    path: str | Path,
    tables: "Wanted" = None,
    *,
    ranks: Iterable[int] | None = None,
    format: str | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    listener: "RowsListener | None" = None,
) -> "Trace":
    """Open a profile as a trace: any format that `inferometer formats` lists, a store (`NAME.ifm`), a folder, or `-`.

    Args:
        path: A file, a store's folder, a folder with one profile per rank (files and stores of any format), `-` for
            standard input, or `sample:NAME` for one of `samples.py`.
        tables: Names of the tables that you need, all by default. Fewer are read faster: for `{"launches"}` of a
            Kineto file only the text around device work is decoded. A mapping from tables to columns lets a reader
            leave out other columns too.
        ranks: Only these ranks, all by default. Of a folder of ranks, no other file is read.
        format: A format's name, when sniffing it from the content is not wanted.
        limits: What to refuse; see `Limits`.
        progress: Called with bytes read and bytes in all (None for a pipe).
        listener: Given rows as they are read from a single profile, not from a store or a folder of ranks.

    Raises:
        InputError: The file can't be read, is of no known format, or is damaged beyond repair; two files of a folder
            claim one rank. Damage that leaves something to read is counted in `trace.losses` instead.
        UnknownName: There is no such table, column, rank or format.
    """
    if isinstance(tables, str):
        raise InputError(f"tables: expected a set of names, found the text {tables!r}", hint=f"Write {{{tables!r}}}.")
    wanted = None if ranks is None else frozenset(ranks)
    path = _find(path)
    if is_store(path):
        refuse_format(path, format)
        return _restricted(open_store(Path(path), tables), wanted)
    source = Source(path, limits=limits, progress=progress)
    if source.path and source.is_folder and not is_one_profile(source, format):
        from inferometer.formats.ranks.files import Reading
        from inferometer.formats.ranks.reading import open_ranks

        return open_ranks(source.path, Reading(tables, wanted, format, limits), progress)
    return _restricted(read_source(source, find_format(source, format), tables, listener=listener), wanted)


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
    from inferometer.trace.store import read_store
    from inferometer.trace.store_writer import StoreFolder, write_manifest

    path = _find(path)
    if is_store(path):
        open_trace(path, format=format).save(store, force=force)
        return read_store(Path(store))
    source = Source(path, limits=limits, progress=progress)
    if source.path and source.is_folder and not is_one_profile(source, format):
        from inferometer.formats.ranks.files import Reading
        from inferometer.formats.ranks.reading import import_ranks

        import_ranks(source.path, Path(store), Reading(format=format, limits=limits), progress, force=force)
        return read_store(Path(store))
    fmt = find_format(source, format)
    with StoreFolder(Path(store), force=force) as folder:
        builder = TraceBuilder(folder=folder)
        trace = fill(builder, source, fmt)
        write_manifest(folder, trace.facts, trace.losses, builder.parts())
    return read_store(Path(store))


def _find(path: str | Path) -> str | Path:
    """What to open: a sample's file for its name, what a profiler put into a folder for that."""
    path = without_prefix(path)
    return find_inside(Path(path)) if is_folder(path) and not is_store(path) else path


def _restricted(trace: "Trace", ranks: frozenset[int] | None) -> "Trace":
    if ranks is None:
        return trace
    from inferometer.trace.restrict import restrict_ranks

    return restrict_ranks(trace, ranks)
