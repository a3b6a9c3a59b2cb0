"""Writes a store: Parquet files and their manifest, in a folder that takes its place when it is whole."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl
from isal import isal_zlib
from msgspec.structs import replace

from inferometer.errors import FormatError, InputError
from inferometer.new_files import NO_ROOM, NewFolder
from inferometer.trace.facts import Facts, without_folders
from inferometer.trace.losses import Losses, Severity

SCHEMA = (1, 12)  # 1.1: `rank` in the tables of the host; 1.2: in all tables; 1.3: `unit` in `function_metrics`;
# 1.4: times of steps may be null; 1.5: the table `graph_nodes`; 1.6: `collectives`;
# 1.7: `settings` in the facts; 1.8: `kernel_counters`; 1.9: shapes in `spans`;
# 1.10: `hlo_ops`, `memory_blocks`, `memory_events`, and AMD's queues, registers, scratch;
# 1.11: `tests`, `op_nodes`, and the ids and totals that tie ops and allocations to others' records
# 1.12: the storages of `ops` and `op_nodes`
MARK = "inferometer-trace"
MANIFEST = "facts.json"
MOST_FILES = 100_000  # of one table: the names have five digits
_READ_BYTES = 1 << 20


class StoredTable(msgspec.Struct):
    """A table in the manifest: its rows in all, its files in order and the CRC-32 of each."""

    rows: int
    files: list[str]
    crc32: list[int]


class StoredLoss(msgspec.Struct):
    """One entry of the losses."""

    name: str
    severity: Severity
    count: int
    dropped: bool
    category: str | None
    example: str | None


class StoredLosses(msgspec.Struct):
    """The losses of the tables in `scope`."""

    scope: list[str]
    events: dict[str, int]
    entries: list[StoredLoss]


class Manifest(msgspec.Struct):
    """What `facts.json` holds."""

    mark: str
    schema: tuple[int, int]
    facts: Facts
    losses: StoredLosses
    tables: dict[str, StoredTable]


def is_store(path: Path) -> bool:
    """Whether `path` is a folder with a store's `facts.json`."""
    return path.is_dir() and (path / MANIFEST).is_file()


def folder_bytes(folder: Path) -> int:
    """Bytes of the files right inside: a store's, or the tables of a fleet."""
    return sum(file.stat().st_size for file in folder.iterdir())


def write_store(
    path: Path,
    facts: Facts,
    tables: Mapping[str, pl.LazyFrame],
    losses: Losses,
    *,
    scope: frozenset[str] | None = None,
    force: bool = False,
) -> Path:
    """Write these tables. Raises `InputError` when `path` exists and `force` is not set."""
    with StoreFolder(path, force=force) as folder:
        write_manifest(folder, facts, losses, write_tables(tables, folder), scope=scope)
    return path


def write_tables(tables: Mapping[str, pl.LazyFrame], folder: Path) -> dict[str, tuple[int, list[Path]]]:
    """Write each table that has rows as a Parquet file; rows and file of each, for `write_manifest`."""
    parts: dict[str, tuple[int, list[Path]]] = {}
    for name, frame in tables.items():
        file = folder / f"{name}-00000.parquet"
        frame.sink_parquet(file, compression="zstd", compression_level=1)
        rows = pl.scan_parquet(file, glob=False).select(pl.len()).collect().item()
        parts[name] = (rows, [file])
        if rows == 0:
            file.unlink()
            del parts[name]
    return parts


def write_manifest(
    folder: Path,
    facts: Facts,
    losses: Losses,
    parts: Mapping[str, tuple[int, Sequence[Path]]],
    *,
    scope: frozenset[str] | None = None,
) -> None:
    """Write `facts.json` for Parquet files that are already in `folder`; `scope`, where `losses` count more tables."""
    tables = {
        name: StoredTable(rows, [file.name for file in files], [checksum_of(file) for file in files])
        for name, (rows, files) in parts.items()
    }
    (folder / MANIFEST).write_bytes(encode_manifest(facts, losses, tables, scope=scope))


def encode_manifest(
    facts: Facts, losses: Losses, tables: dict[str, StoredTable], *, scope: frozenset[str] | None = None
) -> bytes:
    """The text of `facts.json`; `scope`, where `losses` count more tables."""
    stored = msgspec.convert(losses.as_dict(), StoredLosses)
    stored.scope = sorted(losses.scope if scope is None else scope)
    if Path(facts.source).is_absolute():  # a store may be handed on: whose folder it came from stays private
        facts = replace(facts, source=without_folders(facts.source))
    manifest = Manifest(MARK, SCHEMA, facts, stored, tables)
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def replace_manifest(folder: Path, text: bytes) -> None:
    """Replace `facts.json` by `text` atomically."""
    new = folder / (MANIFEST + ".new")
    with new.open("wb") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(folder / MANIFEST)


class StoreFolder(NewFolder):
    """A folder next to `path` that becomes `path` when the block ends without an error, and vanishes otherwise.

    With `force` it replaces a store, and nothing else.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        check_name(path)
        super().__init__(path, ours=lambda _: True, force=force)

    def _check(self) -> None:
        if self._path.exists() and not is_store(self._path):
            raise InputError(f"{self._path}: exists and is not a store; it is not replaced", hint="Give another name.")

    def _is_of_writing(self, error: OSError) -> bool:
        return error.errno in NO_ROOM  # others may be of what is read

    def _refusal(self, error: OSError | ValueError) -> InputError:
        why = error.strerror if isinstance(error, OSError) else error
        return InputError(f"{self._path}: no store can be made there: {why}", hint="Give another name.")


def check_name(path: Path) -> None:
    """Polars takes only names that are text, though a file's may be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{str(path)!r}: a store's name must be text in UTF-8", hint="Give another name.") from error


def checksum_of(file: Path) -> int:
    """CRC-32 of a file: Polars would take flipped bits for numbers. About 5 GB/s."""
    checksum = 0
    try:
        with file.open("rb") as stream:
            while block := stream.read(_READ_BYTES):
                checksum = isal_zlib.crc32(block, checksum)
    except OSError as error:
        raise FormatError(f"{file}: {error.strerror}", hint="Check its permissions.") from error
    return checksum
