"""A fleet, opened: its tables lazily, what was lost of its traces, and which traces are asked about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl

from inferometer.errors import FormatError, InputError, UnknownName, printable
from inferometer.fleet.files import MANIFEST, TABLES, Manifest, check_mark
from inferometer.fleet.joined import JOINED, TRACES
from inferometer.fleet.tables import SOURCES, TRACE
from inferometer.trace.losses import Losses, written_kind
from inferometer.trace.store_writer import checksum_of

GROUPS = ("model", "gpu", "engine", "version", "deployment", "date", "format")
"""What traces are grouped by; `date` is the day, in UTC, on which a trace begins."""


@dataclass(frozen=True)
class Fleet:
    """The traces of a fleet that are asked about: all of them, or those with what `only` says of the columns `GROUPS`.

    `traces` has a row for each, as declared, and the column `date`.
    """

    source: str
    folder: Path
    manifest: Manifest
    traces: pl.DataFrame
    only: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> pl.LazyFrame:
        """A joined table, of these traces alone.

        Raises:
            FormatError: Its file is damaged.
        """
        rows = self._scan(name)
        return rows if not self.only else rows.join(self.traces.lazy().select(TRACE), on=TRACE, how="semi")

    def sources(self) -> pl.DataFrame:
        """All paths that were given, also those that were set aside."""
        return self._scan(SOURCES.name).collect()

    def losses(self) -> Losses:
        """What was lost, in all these traces together."""
        found = Losses(JOINED)
        keys = ("name", "severity", "dropped")
        rows = self.table("losses").group_by(keys).agg(pl.col("count").sum()).sort(keys).collect()
        for name, severity, dropped, count in rows.iter_rows():
            found.count(name, count, kind=written_kind(name, severity, dropped=dropped))
        return found

    def _scan(self, name: str) -> pl.LazyFrame:
        return _scan(self.folder / TABLES, name, self.manifest)


def open_fleet(path: str | Path, only: Mapping[str, str] | None = None) -> Fleet:
    """The fleet at `path`.

    Args:
        path: What `inferometer mine` made.
        only: Values of columns of `GROUPS`: of traces that have all of them.

    Raises:
        InputError: It is no fleet, or was never finished.
        FormatError: It is damaged, or of another version.
        UnknownName: No trace has such a value.
    """
    folder = Path(path)
    check_mark(folder)
    file = folder / TABLES / MANIFEST
    hint = "Run `inferometer mine` on the same paths again: it goes on where it ended."
    if not file.is_file():
        raise InputError(
            f"{printable(str(path))}: expected a whole fleet, found one whose mining has not ended", hint=hint
        )
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise FormatError(f"{file}: expected the list of tables: {error}", hint=hint) from error
    traces = _scan(folder / TABLES, TRACES.name, manifest).collect()
    dated = traces.with_columns(pl.Series("date", list(map(_day, traces["began_ns"])), dtype=pl.String))
    only = dict(only or {})
    for column, value in only.items():
        kept = dated.filter(pl.col(column) == value)
        if kept.is_empty():
            raise UnknownName(column, value, dated[column].drop_nulls().unique().sort())
        dated = kept
    return Fleet(printable(str(path)), folder, manifest, dated, only)


def _scan(folder: Path, name: str, manifest: Manifest) -> pl.LazyFrame:
    """A table; Polars would take flipped bits for numbers, so its checksum is looked at first."""
    file, about = folder / f"{name}.parquet", manifest.tables.get(name)
    if about is None or not file.is_file() or checksum_of(file) != about.crc32:
        raise FormatError(f"{file}: expected the table as it was written, found another file, or none",
                          hint="Run `inferometer mine` again: it joins the digests anew.")  # fmt: skip
    return pl.scan_parquet(file, glob=False)


def _day(began_ns: int | None) -> str | None:
    return None if began_ns is None else datetime.fromtimestamp(began_ns // 10**9, UTC).date().isoformat()
