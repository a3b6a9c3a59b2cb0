"""One section's rows as Parquet files with what else was found in it, and how that joins what came before.

What depends on the sections before is put right as they are joined, in the file's order: a text id is counted once,
begin and end events find each other, an allocator's records and profiler ranges are numbered on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.events import decode_events
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.sections import SectionReader
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.losses import Losses

Compression = Literal["zstd", "lz4"]
_COUNTED_ONCE = "text_id"


class Part(msgspec.Struct):
    """Rows of one table in a file."""

    table: str
    rows: int
    path: str


class SectionParts(msgspec.Struct):
    """What one section holds: from `start` to `stop`, places in the text.

    `naming` are the calls of the header's methods that name processes and threads, in order. `pairs` is the JSON text
    of begin and end events. `places` and `ranges` say how many records and ranges were numbered.
    """

    start: int
    stop: int
    is_last: bool
    parts: list[Part] = []
    losses: dict[str, Any] = {}
    naming: list[tuple[str, list[Any]]] = []
    hosts: list[str] = []
    others: dict[str, int] = {}
    processes: list[int | None] = []
    pairs: bytes = b""
    places: dict[str, int] = {}
    ranges: int = 0


class _NotingHeader(FileHeader):
    """Notes who is named, for another header to be told."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self.naming: list[tuple[str, list[Any]]] = []

    def name_thread(self, process: int | None, thread: int | None, name: str | None) -> None:
        self.naming.append(("thread", [process, thread, name]))

    def name_process(self, process: int | None, name: str | None, label: str | None) -> None:
        self.naming.append(("process", [process, name, label]))

    def name_text_id(self, number: int, text: str, *, is_process: bool) -> None:
        self.naming.append(("text id", [text, is_process]))


def read_parts(
    text: Window,
    limit: int,
    reader: SectionReader,
    *,
    tables: frozenset[str],
    constants: dict[str, int | str | None],
    stem: Path,
    compression: Compression,
) -> SectionParts:
    """Read the section that begins where `text` stands; its files' names begin as `stem` does."""
    out = TraceBuilder(tables)
    out.constants.update(constants)
    header = _NotingHeader(out.losses)
    sorter = Sorter(out, header)
    found = SectionParts(text.offset, 0, False)
    found.is_last = reader.read(text, out.losses, sorter, limit)
    found.stop = text.offset
    found.parts = _write(out, stem, compression)
    found.losses = out.losses.as_dict()
    found.naming = header.naming
    found.hosts, found.others = sorted(header.hosts), dict(header.others)
    found.processes = list(sorter.columns.call_processes)
    found.pairs = msgspec.json.encode(sorter.pairs) if sorter.pairs else b""
    found.places = {device or "": n for device, n in sorter.columns.records.seen.items()}
    found.ranges = sorter.columns.ranges
    out.reset()  # Python's cycle collector is off while files are read, and would be what frees the rows
    return found


def join_parts(found: SectionParts, out: TraceBuilder, header: FileHeader, sorter: Sorter) -> None:
    """Add a section to what was read before it."""
    losses = Losses.from_dict(
        found.losses | {"entries": [each for each in found.losses["entries"] if each["name"] != _COUNTED_ONCE]}
    )
    out.losses.add(losses)
    columns = sorter.columns
    _number_on(found.parts, columns.records.seen, columns.ranges)
    for part in found.parts:
        out.take_part(part.table, Path(part.path), part.rows)
    _name(found.naming, header, sorter)
    header.hosts.update(found.hosts)
    header.others.update(found.others)
    columns.call_processes.update(found.processes)
    if found.pairs:
        sorter.take_pairs(decode_events(found.pairs))
    columns.records.seen.update({device or None: n for device, n in found.places.items()})
    columns.ranges += found.ranges


def _write(out: TraceBuilder, stem: Path, compression: Compression) -> list[Part]:
    parts = []
    for table in sorted(out.tables):
        rows = out.rows(table)
        if rows:
            path = stem.with_name(f"{stem.name}-{table}.parquet")
            level = 1 if compression == "zstd" else None
            out.frame(table).collect().write_parquet(path, compression=compression, compression_level=level)
            parts.append(Part(table, rows, str(path)))
    return parts


def _number_on(parts: Sequence[Part], places: dict[str | None, int], ranges: int) -> None:
    """Numbers that a section began at 0 go on from those before it."""
    for part in parts:
        if part.table == "memory_events" and places:
            devices = list(places)
            before = pl.col("device").replace_strict(devices, [places[each] for each in devices], default=0)
            _rewrite(part.path, pl.col("order") + before.cast(pl.Int64))
        elif part.table == "kernel_counters" and ranges:
            _rewrite(part.path, pl.col("launch") + ranges)


def _rewrite(path: str, column: pl.Expr) -> None:
    pl.read_parquet(path, glob=False).with_columns(column).write_parquet(path)


def _name(naming: Sequence[tuple[str, list[Any]]], header: FileHeader, sorter: Sorter) -> None:
    for what, given in naming:
        if what == "thread":
            header.name_thread(*given)
        elif what == "process":
            header.name_process(*given)
        else:
            text, is_process = given
            ids = sorter.columns.ids
            _ = ids.process(text) if is_process else ids.thread(text)
