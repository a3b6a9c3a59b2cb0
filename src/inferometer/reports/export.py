"""A trace to files that other tools open: Chrome trace, Perfetto, Parquet, CSV.

Files and folders appear whole or not at all. What a form has no place for is counted in the result, never dropped
silently.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from msgspec.structs import replace

from inferometer.errors import InputError, UnknownName, printable
from inferometer.new_files import ANY, FileKind, NewFile, NewFolder, begins_with
from inferometer.reports.chrome.document import find_ranks, write_chrome
from inferometer.reports.perfetto.packets import write_perfetto
from inferometer.reports.redacted import redact_trace
from inferometer.reports.table_files import ABOUT, write_about, write_csv, write_parquet
from inferometer.trace.facts import without_folders
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES, TABLES
from inferometer.trace.trace import Trace

FORMS = ("perfetto", "chrome", "parquet", "csv")
TABLE_FORMS = ("parquet", "csv")
Rows = dict[str, int]


@dataclass(frozen=True)
class ExportedFile:
    """One file that was written, with its rows by table and its size."""

    path: str
    rows: Rows
    size_bytes: int


@dataclass(frozen=True)
class Exported:
    """What was written.

    `left_out`: rows of tables asked for that the form has no place for. `redacted`: of a copy to share, how many
    different texts of each kind were blanked.
    """

    to: str
    files: tuple[ExportedFile, ...]
    left_out: Rows
    losses: Losses
    redacted: dict[str, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data, stable under `--json`; `redacted` is null where it wasn't asked for."""
        files = [{"path": file.path, "rows": file.rows, "bytes": file.size_bytes} for file in self.files]
        about = {"to": self.to, "files": files, "left_out": self.left_out, "redacted": self.redacted}
        return {**about, "losses": self.losses.as_dict()}


def export_trace(
    trace: Trace,
    path: str | Path,
    *,
    to: str,
    tables: Iterable[str] | None = None,
    redact: bool = False,
    force: bool = False,
) -> Exported:
    """Write the trace, or some of its tables, in a form that other tools open.

    Args:
        trace: Opened with the tables to write, and with all of their columns.
        path: A file for `chrome` and `perfetto`; compressed when its name ends in `.gz`. A folder for `parquet` and
            `csv`, or a file that ends in `.parquet`, `.csv` or `.csv.gz` for one table. A Chrome trace of several ranks
            is a folder with a file each.
        to: `perfetto`, `chrome`, `parquet` or `csv`.
        tables: Tables to write; all that were read and have rows when None.
        redact: Blank what shows who and where: see `redact_trace`.
        force: Replace a file, or a folder that holds nothing but such files.

    Raises:
        UnknownName: No such form or table.
        InputError: There is nothing to write, or it can't be written there.
    """
    path = Path(path)
    rows = _rows_to_write(trace, to, tables)
    chosen = _only(trace, rows, redact=redact)
    if to == "perfetto":
        files = [_one_file(path, to, force, lambda file: write_perfetto(chosen, file))]
    elif to == "chrome":
        files = _chrome(chosen, path, force)
    elif path.name.endswith((".csv", ".csv.gz", ".parquet")):
        files = [_one_table(chosen, path, to, force)]
    else:
        files = _tables(chosen, path, to, force)
    return _exported(chosen, to, files, rows)


def write_export(
    trace: Trace, file: BinaryIO, *, to: str, tables: Iterable[str] | None = None, redact: bool = False
) -> Exported:
    """Write the trace into an open file: one table as `csv`, or a whole trace (of one rank) as `chrome` or `perfetto`.

    Raises:
        UnknownName: No such form or table.
        InputError: There is nothing to write, or it needs several files.
    """
    rows = _rows_to_write(trace, to, tables)
    chosen = _only(trace, rows, redact=redact)
    if to == "perfetto":
        written = write_perfetto(chosen, file)
    elif to == "chrome":
        ranks = find_ranks(chosen)
        if len(ranks) > 1:
            raise InputError(f"a Chrome trace has one rank, this trace {len(ranks)}", hint="Name a folder: -o FOLDER.")
        written = write_chrome(chosen, {ranks[0]: file})[ranks[0]]
    elif to == "csv" and len(rows) == 1:
        (table,) = rows
        written = {table: write_csv(chosen.tables[table], file)}
    else:
        raise InputError(f"{to} needs several files here", hint="Name a folder: -o FOLDER.")
    return _exported(chosen, to, [ExportedFile("-", written, 0)], rows)


def _rows_to_write(trace: Trace, to: str, tables: Iterable[str] | None) -> Rows:
    """Rows of each table to write, without empty ones unless they were asked for by name."""
    if to not in FORMS:
        raise UnknownName("form", to, FORMS)
    asked = None if tables is None else list(dict.fromkeys(tables))
    for table in asked or ():
        if table not in ALL_TABLES:
            raise UnknownName("table", table, ALL_TABLES)
    trace.require(asked or ())
    rows = {table: n for table, n in trace.count_rows().items() if (n if asked is None else table in asked)}
    if not any(rows.values()):
        found = f"the tables {', '.join(asked)} have" if asked else "the trace has"
        raise InputError(f"{trace.facts.source}: {found} no rows to export")
    for table in rows:
        if set(TABLES[table].schema) - set(trace.tables[table].collect_schema()):
            raise InputError(f"{table}: was opened with some of its columns only", hint="Open it with all of them.")
    return rows


def _only(trace: Trace, tables: Iterable[str], *, redact: bool) -> Trace:
    """The tables to write, of a trace called by its file's name: where that lies stays private."""
    frames = {table: trace.tables[table] for table in tables}
    facts = replace(trace.facts, source=without_folders(trace.facts.source))
    chosen = Trace(facts, frames, trace.losses, scope=frozenset(frames), names=trace.names)
    return redact_trace(chosen) if redact else chosen


def _exported(trace: Trace, to: str, files: list[ExportedFile], rows: Rows) -> Exported:
    left_out = {table: n - sum(file.rows.get(table, 0) for file in files) for table, n in rows.items()}
    return Exported(
        to, tuple(files), {table: n for table, n in left_out.items() if n}, trace.losses, trace.facts.redacted
    )


def kind_of(to: str, path: Path) -> FileKind:
    """What a file of this form and name replaces: another one of it; of a folder's name nothing is known."""
    if to in TABLE_FORMS and not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        return ANY
    if path.name.endswith(".gz"):
        return begins_with("gzip file", b"\x1f\x8b")
    return {
        "perfetto": begins_with("Perfetto trace", b"\x0a"),
        "chrome": FileKind("Chrome trace", _is_chrome),
        "parquet": begins_with("Parquet file", b"PAR1"),
        "csv": FileKind("table as CSV", _is_table),
    }[to]


def _is_chrome(head: bytes) -> bool:
    return head.lstrip()[:1] in (b"{", b"[") and any(
        word in head for word in (b'"schemaVersion"', b'"traceEvents"', b'"ph"')
    )


def _is_table(head: bytes) -> bool:
    """Whether the first line holds names of columns that tables have, and no others."""
    known = {column for table in ALL_TABLES for column in TABLES[table].schema}
    names = head.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r").split(",")
    return all(re.sub("_[xyz]$", "", name) in known for name in names)


def _one_file(path: Path, to: str, force: bool, write: Any) -> ExportedFile:
    with NewFile(path, force=force, kind=kind_of(to, path)) as place:
        with _opened(place, packed=path.name.endswith(".gz")) as file:
            rows = write(file)
        if not rows:
            raise InputError(f"{path}: no row has a place in such a file", hint="Export as parquet or csv.")
        size = place.stat().st_size
    return ExportedFile(printable(str(path)), rows, size)


def _chrome(trace: Trace, path: Path, force: bool) -> list[ExportedFile]:
    ranks = find_ranks(trace)
    if len(ranks) == 1:
        return [_one_file(path, "chrome", force, lambda file: write_chrome(trace, {ranks[0]: file})[ranks[0]])]
    if path.name.endswith((".json", ".gz")):
        raise InputError(
            f"{path}: the trace has {len(ranks)} ranks, a Chrome trace one", hint="Name a folder: -o FOLDER."
        )
    with NewFolder(path, ours=_is_ours, force=force) as folder:
        names = {rank: "no-rank.json.gz" if rank is None else f"rank{rank}.json.gz" for rank in ranks}
        with ExitStack() as stack:
            files = {rank: stack.enter_context(_opened(folder / name, packed=True)) for rank, name in names.items()}
            rows = write_chrome(trace, files)
        return [_in_folder(path, folder / name, rows[rank]) for rank, name in names.items()]


def _one_table(trace: Trace, path: Path, to: str, force: bool) -> ExportedFile:
    (*_, kind) = path.name.removesuffix(".gz").split(".")
    if len(trace.tables) > 1 or kind != to:
        found = f"{len(trace.tables)} tables" if len(trace.tables) > 1 else f"{to} was asked for"
        raise InputError(
            f"{path}: expected one table as {kind}, found {found}", hint="Choose --table NAME, or a folder."
        )
    ((table, frame),) = trace.tables.items()
    if to == "csv":
        return _one_file(path, to, force, lambda file: {table: write_csv(frame, file)})
    with NewFile(path, force=force, kind=kind_of(to, path)) as place:
        rows = write_parquet(frame, place)
        size = place.stat().st_size
    return ExportedFile(printable(str(path)), {table: rows}, size)


def _tables(trace: Trace, path: Path, to: str, force: bool) -> list[ExportedFile]:
    with NewFolder(path, ours=_is_ours, force=force) as folder:
        files, rows = [], {}
        for table, frame in trace.tables.items():
            place = folder / f"{table}.{to}"
            if to == "parquet":
                rows[table] = write_parquet(frame, place)
            else:
                with place.open("wb") as file:
                    rows[table] = write_csv(frame, file)
            files.append(_in_folder(path, place, {table: rows[table]}))
        write_about(trace, rows, folder / ABOUT)
        return [*files, _in_folder(path, folder / ABOUT, {})]


def _in_folder(path: Path, place: Path, rows: Mapping[str, int]) -> ExportedFile:
    return ExportedFile(printable(str(path / place.name)), dict(rows), place.stat().st_size)


def _is_ours(name: str) -> bool:
    """Whether an export writes files of this name into a folder."""
    stem, _, kind = name.partition(".")
    rank = stem.removeprefix("rank")
    is_rank = stem == "no-rank" or (rank != stem and rank.removeprefix("-").isdecimal())
    return name == ABOUT or (kind in TABLE_FORMS and stem in ALL_TABLES) or (kind == "json.gz" and is_rank)


@contextmanager
def _opened(path: Path, *, packed: bool) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        if not packed:
            yield file
            return
        from isal.igzip import IGzipFile

        with IGzipFile(filename="", mode="wb", compresslevel=2, fileobj=file, mtime=0) as unpacked:  # type: ignore[no-untyped-call]
            yield cast("BinaryIO", unpacked)
