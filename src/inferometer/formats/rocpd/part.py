"""The tables of one run in a rocpd database: their names end in its suffix, and ids hold within it.

A merged file has several suffixes. Schema 4 moves agent, queue, stream and thread behind a track, and one release of it
the times, too: what a table lacks is looked for there.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.databases.places import ById

KERNELS, COPIES, REGIONS, COUNTS = "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region", "rocpd_pmc_event"
DATA = (KERNELS, COPIES, REGIONS)
_BESIDE = ("node", "process", "thread", "agent", "queue", "stream", "pmc", "code_object", "kernel_symbol", "category")
BASES = (
    *(*DATA, COUNTS, "rocpd_metadata", "rocpd_string", "rocpd_event", "rocpd_track", "rocpd_timestamp"),
    *(f"rocpd_info_{name}" for name in _BESIDE),
)
_TRACK = "track_id"
_TIMES = {"start": "start_id", "end": "end_id"}


def find_parts(export: Export) -> list["Part"]:
    """The runs in a database, in the order of their suffixes."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for table in export.tables():
        base = max((base for base in BASES if table == base or table.startswith(f"{base}_")), key=len, default=None)
        if base:
            found[table.removeprefix(base)][base] = table
    parts = [Part(export, found[suffix]) for suffix in sorted(found)]
    return [part for part in parts if any(part.columns(base) & {"start", *_TIMES.values()} for base in DATA)]


class Part:
    """One run."""

    def __init__(self, export: Export, names: Mapping[str, str]) -> None:
        self._export = export
        self._names = names
        self._tracks: ById | None = None
        self._timestamps: ById | None = None

    def columns(self, base: str) -> frozenset[str]:
        """Names of the columns of a table; empty when there is no such table."""
        return self._export.columns(self._names[base]) if base in self._names else frozenset()

    def count(self, base: str) -> int:
        """Rows of a table, reported at once."""
        return self._export.estimate(self._names[base]) if base in self._names else 0

    def read_all(self, base: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> pl.DataFrame:
        """A small table; a column that it lacks is null."""
        return read_all(self._export, self._names.get(base, ""), numbers, texts)

    def by_id(self, base: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> ById:
        """A table whose rows are looked up."""
        return ById(self.read_all(base, ["id", *numbers], texts))

    def batches(self, base: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """Rows with these columns, all that are there or behind a track."""
        have = self.columns(base)
        behind = [name for name in numbers if name not in have]
        asked = [name for name in numbers if name in have]
        tracked = _TRACK in have and any(self._track_columns() & {name} for name in behind)
        asked += [_TRACK] if tracked else []
        asked += [ids for name, ids in _TIMES.items() if name in behind and ids in have]
        if not asked:
            return
        for batch in self._export.batches(self._names[base], asked, [name for name in texts if name in have]):
            yield batch.with_columns(self._behind(batch, behind))

    def _track_columns(self) -> frozenset[str]:
        return self.columns("rocpd_track") - {"id"}

    def _behind(self, batch: pl.DataFrame, names: Sequence[str]) -> list[pl.Series]:
        found = []
        for name in names:
            if _TRACK in batch.columns and name in self._track_columns():
                found.append(self._track().find(batch[_TRACK], name))
            elif _TIMES.get(name) in batch.columns:
                found.append(self._timestamp().find(batch[_TIMES[name]], "value").alias(name))
        return found

    def _track(self) -> ById:
        if self._tracks is None:
            names = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")
            self._tracks = self.by_id("rocpd_track", [name for name in names if name in self._track_columns()])
        return self._tracks

    def _timestamp(self) -> ById:
        if self._timestamps is None:
            self._timestamps = self.by_id("rocpd_timestamp", ["value"])
        return self._timestamps
