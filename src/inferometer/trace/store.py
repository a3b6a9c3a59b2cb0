"""The store: a trace as a folder `NAME.ifm/` of Parquet files and `facts.json`.

`facts.json` holds the schema version, the facts, the losses and, for each table, its rows, its files and their
checksums. A table may have several files (`launches-00000.parquet`, …); their rows follow each other. A store is
written next to its place and then moved there: what is there is whole. One of a newer major schema is refused.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

import msgspec
import polars as pl

from inferometer.errors import FormatError, InputError
from inferometer.trace.cpu_launches import drop_beside_gpu
from inferometer.trace.losses import Losses
from inferometer.trace.parquet_pages import ImpossibleParquet, check_parquet
from inferometer.trace.store_writer import MANIFEST, MARK, SCHEMA, Manifest, StoredTable, check_name, checksum_of
from inferometer.trace.tables import ALL_TABLES, TABLES, Table
from inferometer.trace.trace import Trace

_ADDED = {  # an older store can't have them
    "graph_nodes": (1, 5),
    "collectives": (1, 6),
    "kernel_counters": (1, 8),
    **dict.fromkeys(("hlo_ops", "memory_blocks", "memory_events"), (1, 10)),
    "tests": (1, 11),
    "op_nodes": (1, 11),
}
_MOST_MANIFEST_BYTES = 64 << 20
_DAMAGED = "The store is damaged: import the original file again."
_NOT_FINISHED = "it is still being written, or its process ended without closing it"
_MOST_TRIES = 20  # a recording that is being written replaces its files every few seconds at most
_SMALL_BYTES = 4 << 20  # a process may keep about a thousand files open
_FILE_NAME = re.compile(r"[a-z_]+-[0-9]{5}\.parquet")


class _Version(msgspec.Struct):
    """The two fields that every version of the manifest has."""

    mark: str
    schema: tuple[int, int]


def read_store(path: Path, tables: Iterable[str] | None = None) -> Trace:
    """Open a store; columns are read only when a question touches them.

    Raises:
        FormatError: Not a store, of a newer major schema, or a file is missing or names a place outside the store.
        InputError: It doesn't hold a table of `tables`.
    """
    check_name(path)
    manifest = read_manifest(path)
    for _ in range(_MOST_TRIES):
        try:
            return _open(path, manifest, tables)
        except FormatError:
            newer = read_manifest(path)
            if newer == manifest:
                raise
            manifest = newer  # a recording merged its files meanwhile
    return _open(path, manifest, tables)


def _open(path: Path, manifest: Manifest, tables: Iterable[str] | None) -> Trace:
    losses = Losses.from_dict(msgspec.to_builtins(manifest.losses))
    stored = losses.scope = _scope(manifest)
    wanted = stored if tables is None else frozenset(tables)
    if missing := sorted(wanted - stored):
        raise InputError(
            f"{path}: the store was made without the tables {', '.join(missing)}",
            hint="Import the original file again to get all tables.",
        )
    finished = manifest.facts.recorded.get("finished", True)
    if not finished and not losses.total("recording_ended_early"):
        losses.count("recording_ended_early", example=_NOT_FINISHED)
    frames = {
        name: _scan(path, name, table, hold=not finished)
        for name, table in manifest.tables.items()
        if name in TABLES and name in wanted and table.files
    }
    facts = manifest.facts
    if "launches" in frames:
        facts, frames["launches"] = drop_beside_gpu(facts, frames["launches"])
    return Trace(facts, frames, losses, scope=wanted)


def read_manifest(path: Path) -> Manifest:
    """What `facts.json` says; no table is looked at.

    Raises:
        FormatError: It can't be read, or is none.
    """
    file = path / MANIFEST
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST_MANIFEST_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{path}: not a store: {MANIFEST} can't be read ({error.strerror})") from error
    if len(text) > _MOST_MANIFEST_BYTES:
        raise FormatError(f"{file}: expected at most {_MOST_MANIFEST_BYTES >> 20} MiB, found more", hint=_DAMAGED)
    try:
        version = msgspec.json.decode(text, type=_Version)
        if version.mark != MARK:
            raise FormatError(f"{file}: expected mark {MARK!r}, found {version.mark!r}", hint="This is not a store.")
        if version.schema[0] > SCHEMA[0]:
            raise FormatError(
                f"{path}: the store has schema {_dotted(version.schema)}, this version reads up to {SCHEMA[0]}.x",
                hint="Update inferometer, or import the original file again.",
            )
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{file}: {error}", hint=_DAMAGED) from error


def _scope(manifest: Manifest) -> frozenset[str]:
    """The tables that were read; of a store with all tables of its time, those added since are there and empty."""
    stored = frozenset(manifest.losses.scope)
    added = {name for name, since in _ADDED.items() if manifest.schema < since}
    return stored | added if stored >= ALL_TABLES - added else stored


def _scan(path: Path, name: str, table: StoredTable, *, hold: bool) -> pl.LazyFrame:
    files = []
    for file_name in table.files:
        if not _FILE_NAME.fullmatch(file_name) or (path / file_name).is_symlink():
            raise FormatError(
                f"{path / MANIFEST}: tables.{name}.files: expected a plain name like {name}-00000.parquet, "
                f"found {file_name!r}",
                hint="The store was tampered with or damaged: import the original file again.",
            )
        files.append(path / file_name)
        if not files[-1].is_file():
            raise FormatError(f"{files[-1]}: the store lacks this file", hint="Import the original file again.")
    frames = [_scan_file(file, TABLES[name], hold=hold) for file in files]
    for file, crc32 in zip_longest(files, table.crc32):
        if file is None or checksum_of(file) != crc32:
            raise FormatError(
                f"{file or path}: expected the checksum that {MANIFEST} holds, found another",
                hint=_DAMAGED,
            )
    return pl.concat(frames)


def _scan_file(file: Path, table: Table, *, hold: bool) -> pl.LazyFrame:
    """One file with exactly the columns of `table`; those that it lacks are null. `hold` outlives its removal."""
    try:
        check_parquet(file)
        frame = _scan_held(file) if hold else pl.scan_parquet(file, glob=False)
        found = frame.collect_schema()
    except (ImpossibleParquet, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FormatError(
            f"{file}: not a readable Parquet file ({error})",
            hint=_DAMAGED,
        ) from error
    for column, dtype in found.items():
        if column in table.schema and table.schema[column] != dtype:
            raise FormatError(f"{file}: {column}: expected {table.schema[column]}, found {dtype}")
    return table.complete(frame)


def _scan_held(file: Path) -> pl.LazyFrame:
    """A file that a recording may merge into another at any time: a small one is read, a large one is kept open."""
    if file.stat().st_size <= _SMALL_BYTES:
        return pl.scan_parquet(file.read_bytes())
    with file.open("rb") as stream:
        return pl.scan_parquet(stream)


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
