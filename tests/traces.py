"""Traces made by hand, and what tests ask of any trace."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace

LAUNCH = {"kind": "kernel", "kernel": "k", "device": "gpu:0", "stream": 7, "start_ns": 0, "dur_ns": 1}


def trace_of(
    launches: Iterable[Mapping[str, Any]] = (),
    *,
    facts: Mapping[str, Any] | None = None,
    tables: Iterable[str] | None = None,
    **others: Sequence[Mapping[str, Any]],
) -> Trace:
    """A trace of these rows. A launch needs only what differs from `LAUNCH`; other tables are given by name."""
    out = TraceBuilder(ALL_TABLES if tables is None else tables)
    add_rows(out, "launches", [LAUNCH | dict(launch) for launch in launches])
    for table, rows in others.items():
        add_rows(out, table, rows)
    return out.finish(Facts(**{"format": "by-hand", "source": "by hand", **(facts or {})}))


def add_rows(out: TraceBuilder, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add `rows` in one batch; a key that a row lacks is null."""
    keys = dict.fromkeys(key for row in rows for key in row)
    out.add(table, len(rows), {key: [row.get(key) for row in rows] for key in keys})


def rows(trace: Trace, table: str, *columns: str) -> list[Any]:
    """Rows of a table in order: tuples of `columns`, or plain values where there is one column only."""
    found = trace.tables[table].select(columns or list(trace.tables[table].collect_schema())).collect().rows()
    return [row[0] for row in found] if len(columns) == 1 else found


def stored_facts(trace: Trace) -> Facts:
    """The facts as a store keeps them: not in whose folder the file lay."""
    return replace(trace.facts, source=Path(trace.facts.source).name)


def counted(trace: Trace) -> dict[str, int]:
    """Losses by name."""
    return {loss.name: trace.losses.total(loss.name) for loss in trace.losses}
