"""The store: a trace as a folder `NAME.ifm/` of Parquet files and `facts.json`.

`facts.json` holds the schema version, the facts, the losses and, for each table, its rows, its files and their
checksums. A table may have several files (`launches-00000.parquet`, …); their rows follow each other. A store is
written beside its place and then moved there: what is there is whole. One of a newer major schema is refused.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import msgspec
import polars as pl
from isal import isal_zlib
from msgspec.structs import replace

from inferometer.errors import FormatError, InputError
from inferometer.trace.facts import Facts, without_folders
from inferometer.trace.losses import Losses, Severity
from inferometer.trace.parquet_pages import ImpossibleParquet, check_parquet
from inferometer.trace.tables import ALL_TABLES, TABLES, Table
from inferometer.trace.trace import Trace

SCHEMA = (1, 6)  # 1.1: `rank` in the tables of the host; 1.2: in all tables; 1.3: `unit` in `function_metrics`;
# 1.4: times of steps may be null; 1.5: the table `graph_nodes`; 1.6: `collectives`
_ADDED = {"graph_nodes": (1, 5), "collectives": (1, 6)}  # tables that an older store can't have
_MARK = "inferometer-trace"
_MANIFEST = "facts.json"
_READ_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 64 << 20
_DAMAGED = "The store is damaged: import the original file again."
_NOT_FINISHED = "it is still being written, or its process ended without closing it"
_MOST_TRIES = 20  # a recording that is being written replaces its files every few seconds at most
_SMALL_BYTES = 4 << 20  # a process may keep about a thousand files open
_FILE_NAME = re.compile(r"[a-z_]+-[0-9]{5}\.parquet")
MOST_FILES = 100_000  # of one table: the names have five digits


class StoredTable(msgspec.Struct):
    """A table in the manifest: its rows in all, its files in order and the CRC-32 of each."""

    rows: int
    files: list[str]
    crc32: list[int]


class _StoredLoss(msgspec.Struct):
    name: str
    severity: Severity
    count: int
    dropped: bool
    category: str | None
    example: str | None


class _StoredLosses(msgspec.Struct):
    scope: list[str]
    events: dict[str, int]
    entries: list[_StoredLoss]


class _Manifest(msgspec.Struct):
    mark: str
    schema: tuple[int, int]
    facts: Facts
    losses: _StoredLosses
    tables: dict[str, StoredTable]


class _Version(msgspec.Struct):
    """The two fields that every version of the manifest has."""

    mark: str
    schema: tuple[int, int]


def is_store(path: Path) -> bool:
    """Whether `path` is a folder with a store's `facts.json`."""
    return path.is_dir() and (path / _MANIFEST).is_file()


def write_store(trace: Trace, path: Path, *, force: bool = False) -> Path:
    """Write the tables that were read. Raises `InputError` when `path` exists and `force` is not set."""
    with StoreFolder(path, force=force) as folder:
        write_manifest(folder, trace.facts, trace.losses, write_tables(trace, folder), scope=trace.scope)
    return path


def write_tables(trace: Trace, folder: Path) -> dict[str, tuple[int, list[Path]]]:
    """Write each table that has rows as a Parquet file; rows and file of each, for `write_manifest`."""
    parts: dict[str, tuple[int, list[Path]]] = {}
    for name, frame in trace.tables.items():
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
        name: StoredTable(rows, [file.name for file in files], [_checksum(file) for file in files])
        for name, (rows, files) in parts.items()
    }
    (folder / _MANIFEST).write_bytes(encode_manifest(facts, losses, tables, scope=scope))


def encode_manifest(
    facts: Facts, losses: Losses, tables: dict[str, StoredTable], *, scope: frozenset[str] | None = None
) -> bytes:
    """The text of `facts.json`; `scope`, where `losses` count more tables."""
    stored = msgspec.convert(losses.as_dict(), _StoredLosses)
    stored.scope = sorted(losses.scope if scope is None else scope)
    if Path(facts.source).is_absolute():  # a store may be handed on: whose folder it came from is nobody's business
        facts = replace(facts, source=without_folders(facts.source))
    manifest = _Manifest(_MARK, SCHEMA, facts, stored, tables)
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def replace_manifest(folder: Path, text: bytes) -> None:
    """Put `text` in the place of `facts.json` at once: whoever reads meanwhile gets the old one or this one, whole."""
    new = folder / (_MANIFEST + ".new")
    with new.open("wb") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(folder / _MANIFEST)


def read_store(path: Path, tables: Iterable[str] | None = None) -> Trace:
    """Open a store; columns are read only when a question touches them.

    Raises:
        FormatError: Not a store, of a newer major schema, or a file is missing or names a place outside the store.
        InputError: It doesn't hold a table of `tables`.
    """
    _check_name(path)
    manifest = _read_manifest(path)
    for _ in range(_MOST_TRIES):
        try:
            return _open(path, manifest, tables)
        except FormatError:
            newer = _read_manifest(path)
            if newer == manifest:
                raise
            manifest = newer  # a recording merged its files meanwhile
    return _open(path, manifest, tables)


def _open(path: Path, manifest: _Manifest, tables: Iterable[str] | None) -> Trace:
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
    return Trace(manifest.facts, frames, losses, scope=wanted)


class StoreFolder:
    """A folder beside `path` that becomes `path` when the block ends without an error, and vanishes otherwise."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        _check_name(path)
        self._path = path
        place = path.absolute()
        self._work = place.parent / f".{place.name}.{os.getpid()}.part"
        with _writing(path):
            if path.is_symlink():
                raise InputError(f"{path}: is a link; it is not replaced", hint="Give another name.")
            if path.exists() and not force:
                raise InputError(f"{path}: already exists", hint="Give another name, or --force to replace it.")
            if path.exists() and not is_store(path):
                raise InputError(f"{path}: exists and is not a store; it is not replaced", hint="Give another name.")
            if not place.parent.is_dir():
                raise InputError(f"{path.parent}: no such folder", hint="Make it first.")

    def __enter__(self) -> Path:
        with _writing(self._path):
            shutil.rmtree(self._work, ignore_errors=True)
            self._work.mkdir()
        return self._work

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._work, ignore_errors=True)
            return
        with _writing(self._path):
            if self._path.exists():
                shutil.rmtree(self._path)
            self._work.rename(self._path)


def _check_name(path: Path) -> None:
    """Polars takes only names that are text, though a file's may be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{str(path)!r}: a store's name must be text in UTF-8", hint="Give another name.") from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: no store can be made there: {why}", hint="Give another name.") from error


def _read_manifest(path: Path) -> _Manifest:
    file = path / _MANIFEST
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST_MANIFEST_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{path}: not a store: {_MANIFEST} can't be read ({error.strerror})") from error
    if len(text) > _MOST_MANIFEST_BYTES:
        raise FormatError(f"{file}: want at most {_MOST_MANIFEST_BYTES >> 20} MiB, found more", hint=_DAMAGED)
    try:
        version = msgspec.json.decode(text, type=_Version)
        if version.mark != _MARK:
            raise FormatError(f"{file}: want mark {_MARK!r}, found {version.mark!r}", hint="This is not a store.")
        if version.schema[0] > SCHEMA[0]:
            raise FormatError(
                f"{path}: the store has schema {_dotted(version.schema)}, this version reads up to {SCHEMA[0]}.x",
                hint="Update inferometer, or import the original file again.",
            )
        return msgspec.json.decode(text, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{file}: {error}", hint=_DAMAGED) from error


def _scope(manifest: _Manifest) -> frozenset[str]:
    """The tables that were read; of a store with all tables of its time, those added since are there and empty."""
    stored = frozenset(manifest.losses.scope)
    added = {name for name, since in _ADDED.items() if manifest.schema < since}
    return stored | added if stored >= ALL_TABLES - added else stored


def _scan(path: Path, name: str, table: StoredTable, *, hold: bool) -> pl.LazyFrame:
    files = []
    for file_name in table.files:
        if not _FILE_NAME.fullmatch(file_name) or (path / file_name).is_symlink():
            raise FormatError(
                f"{path / _MANIFEST}: tables.{name}.files: want a plain name like {name}-00000.parquet, "
                f"found {file_name!r}",
                hint="The store was tampered with or damaged: import the original file again.",
            )
        files.append(path / file_name)
        if not files[-1].is_file():
            raise FormatError(f"{files[-1]}: the store lacks this file", hint="Import the original file again.")
    frames = [_scan_file(file, TABLES[name], hold=hold) for file in files]
    for file, crc32 in zip_longest(files, table.crc32):
        if file is None or _checksum(file) != crc32:
            raise FormatError(
                f"{file or path}: want the checksum that {_MANIFEST} holds, found another",
                hint=_DAMAGED,
            )
    return pl.concat(frames)


def _checksum(file: Path) -> int:
    """CRC-32 of a file: Polars would take flipped bits for numbers. About 5 GB/s."""
    checksum = 0
    try:
        with file.open("rb") as stream:
            while block := stream.read(_READ_BYTES):
                checksum = isal_zlib.crc32(block, checksum)
    except OSError as error:
        raise FormatError(f"{file}: {error.strerror}", hint="Check its permissions.") from error
    return checksum


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
            raise FormatError(f"{file}: {column}: want {table.schema[column]}, found {dtype}")
    return table.complete(frame)


def _scan_held(file: Path) -> pl.LazyFrame:
    """A file that a recording may merge into another at any time: a small one is read, a large one is kept open."""
    if file.stat().st_size <= _SMALL_BYTES:
        return pl.scan_parquet(file.read_bytes())
    with file.open("rb") as stream:
        return pl.scan_parquet(stream)


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
