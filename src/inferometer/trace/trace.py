"""A trace: facts, tables, losses. Every format reads into one, every analysis starts from one.

Tables are Polars LazyFrames, so a question pays only for the columns that it touches, also when they lie on disk.
"""

import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import polars as pl
from msgspec.structs import replace

from inferometer.errors import InputError
from inferometer.privacy.metadata import Names
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.shared import Shared
from inferometer.trace.tables import ALL_TABLES, REPEATED_TEXT, TABLES


class Scratch(Protocol):
    """Temporary files that live as long as a trace."""

    def cleanup(self) -> None:
        """Drop them; doing so twice is no error."""


class Trace:
    """Facts, tables and losses of one recording.

    `trace.launches` and `trace.tables["launches"]` are the same LazyFrame with exactly the declared columns. A table
    that the source can't fill is there and empty; asking for one that was not *read* raises `InputError`, since an
    empty answer would be a wrong one. `scope` names those that were read; the losses of a store may count more. Close
    it (or use `with`) to drop temporary files early. `names` are people and machines that the source named next to its
    events: what a copy to share must not hold; they are known to who opened the source, and written nowhere. `shared`
    is of `shared_columns`.
    """

    def __init__(
        self,
        facts: Facts,
        frames: Mapping[str, pl.LazyFrame],
        losses: Losses,
        *,
        scope: frozenset[str] | None = None,
        scratch: Scratch | None = None,
        names: Names | None = None,
    ) -> None:
        self.facts = facts
        self.losses = losses
        self.names = names or Names()
        self.scope = losses.scope if scope is None else scope
        self.tables = _Tables(frames, self.scope, facts.source)
        self.shared: Shared | None = None
        self._scratch = scratch
        self._finalizer = weakref.finalize(self, scratch.cleanup) if scratch else None

    def __getattr__(self, name: str) -> pl.LazyFrame:
        if name in ALL_TABLES:
            return self.tables[name]
        raise AttributeError(f"a trace has no table or attribute {name!r}; tables: {', '.join(sorted(ALL_TABLES))}")

    def compact(self, table: str) -> pl.LazyFrame:
        """The same rows as `tables[table]`, with text of few different values as categories: groups of them are quick.

        Text that comes as such becomes categories on the way, so that a group of names never copies the names.
        """
        frame = self.tables.raw(table)
        names = [name for name in REPEATED_TEXT if name in frame.collect_schema()]
        return frame.with_columns(pl.col(names).cast(pl.Categorical))

    def require(self, tables: Iterable[str]) -> None:
        """Raise `InputError` unless all of `tables` were read."""
        for table in tables:
            _ = self.tables[table]

    def count_rows(self) -> dict[str, int]:
        """Rows of each table that was read."""
        counts = pl.collect_all([frame.select(pl.len()) for frame in self.tables.values()])
        return {name: count.item() for name, count in zip(self.tables, counts, strict=True)}

    def window(self) -> tuple[int, int] | None:
        """Earliest start and latest end over the tables that were read, ns; None when nothing has a time.

        What lasted for an unknown time, such as an engine's step, reaches as far as its start.
        """
        bounds = []
        for name, frame in self.tables.items():
            time = TABLES[name].time
            if time:
                start = pl.col(time)
                end = start + pl.col("dur_ns").fill_null(0) if "dur_ns" in TABLES[name].schema else start
                bounds.append(frame.select(start.min().alias("start_ns"), end.max().alias("end_ns")))
        if not bounds:
            return None
        ends = pl.concat(pl.collect_all(bounds)).select(pl.col("start_ns").min(), pl.col("end_ns").max())
        start_ns, end_ns = ends.row(0)
        return None if start_ns is None else (start_ns, end_ns)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write it as a store (`NAME.ifm/`), readable by `inferometer.open`; see `trace.store`."""
        from inferometer.trace.store_writer import write_store

        return write_store(Path(path), self.facts, self.tables, self.losses, scope=self.scope, force=force)

    def under_name(self, source: str) -> "Trace":
        """The same trace, called `source` in results: files to share name a file, not its folders."""
        facts = replace(self.facts, source=source)
        frames = {name: self.tables.raw(name) for name in self.tables}
        return Trace(facts, frames, self.losses, scope=self.scope, scratch=_Borrowed(self), names=self.names)

    def close(self) -> None:
        """Drop the temporary files of a trace that was too large for memory. Its tables can't be used afterwards."""
        if self._finalizer:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Trace {self.facts.source} ({self.facts.format}), tables read: {', '.join(sorted(self.scope))}>"


class _Borrowed:
    """The temporary files of another trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def cleanup(self) -> None:
        """Close that trace."""
        self._trace.close()


class _Tables(Mapping[str, pl.LazyFrame]):
    """The tables that were read; a declared table outside the scope is refused with what to do."""

    def __init__(self, frames: Mapping[str, pl.LazyFrame], scope: frozenset[str], source: str) -> None:
        self._frames = {name: frames.get(name, TABLES[name].empty) for name in TABLES if name in scope}
        self._source = source

    def __getitem__(self, name: str) -> pl.LazyFrame:
        return TABLES[name].plain(self.raw(name)) if name in TABLES else self.raw(name)

    def raw(self, name: str) -> pl.LazyFrame:
        """The table as it is kept: text may be categories."""
        if name in self._frames:
            return self._frames[name]
        if name in TABLES:
            raise InputError(
                f"{self._source}: the table {name!r} was not read, only {', '.join(sorted(self._frames)) or 'none'}",
                hint=f"Open it with tables={{..., {name!r}}}, or with all tables (the default).",
            )
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)
