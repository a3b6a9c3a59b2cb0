"""Device work of an export: kernels, copies, sets, and graphs that were recorded as a whole.

Only the columns that the question needs are read: for a table of kernels that is a name and a duration.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.nsys.ids import Strings
from inferometer.formats.nsys.tracks import Tracks
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.timed_rows import keep_timed

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
TABLES = (KERNELS, COPIES, SETS, GRAPHS)

_NEEDS = {  # our column: theirs, the first that is there; a column of ours that isn't named here needs only itself
    "device": ("deviceId", "globalPid"),
    "process": ("globalPid",),
    "context": ("contextId",),
    "stream": ("streamId",),
    "start_ns": ("start",),
    "dur_ns": ("dur_ns",),
    "correlation_id": ("correlationId",),
    "graph_id": ("graphId",),
    "graph_node_id": ("graphNodeId",),
    "grid": ("gridX", "gridY", "gridZ"),
    "block": ("blockX", "blockY", "blockZ"),
    "registers": ("registersPerThread",),
    "shared_bytes": ("staticSharedMemory", "dynamicSharedMemory"),
    "bytes": ("bytes",),
}
_COPY_KINDS = {  # of `ENUM_CUDA_MEMCPY_OPER`, where the export lacks that
    0: "Unknown", 1: "Host-to-Device", 2: "Device-to-Host", 3: "Host-to-Array", 4: "Array-to-Host", 5: "Array-to-Array",
    6: "Array-to-Device", 7: "Device-to-Array", 8: "Device-to-Device", 9: "Host-to-Host", 10: "Peer-to-Peer",
    11: "Unified Host-to-Device", 12: "Unified Device-to-Host", 13: "Unified Device-to-Device",
}  # fmt: skip
_NAMES = ("demangledName", "shortName", "mangledName")

Named = Callable[[pl.DataFrame], pl.Series | str]


class Launches:
    """Reads the four tables of device work into `launches`."""

    def __init__(self, export: Export, out: TraceBuilder, strings: Strings, tracks: Tracks) -> None:
        self._export = export
        self._out = out
        self._strings = strings
        self._tracks = tracks
        self._wanted = out.narrow("launches")

    def read(self) -> Iterator[int]:
        """Yields the number of rows of each batch, for progress."""
        name_id = next((name for name in _NAMES if name in self._export.columns(KERNELS)), None)
        names = [name_id] if name_id else []
        yield from self._table(KERNELS, "kernel", names, lambda rows: self._kernel_names(rows, name_id))
        yield from self._table(COPIES, "memcpy", ["copyKind"], self._copy_names)
        yield from self._table(SETS, "memset", [], lambda rows: "[CUDA memset]")
        yield from self._table(GRAPHS, "graph", ["graphId"], _graph_names)

    def _table(self, table: str, kind: str, names: Sequence[str], named: Named) -> Iterator[int]:
        present = self._export.columns(table)
        if not present:
            return
        parts = [part for column in _NEEDS if column in self._wanted for part in _NEEDS[column]]
        parts += names if "kernel" in self._wanted else []
        numbers = [part for part in dict.fromkeys(parts) if part in present - {"start"}]
        if "start_ns" in self._wanted:
            batches = self._export.batches(table, [*numbers, "start", "end"])
        else:
            batches = self._export.durations(table, numbers)
        for rows in batches:
            self._out.losses.see(table, rows.height)
            kept = keep_timed(rows, table, self._out.losses)
            columns = {"kind": kind, "kernel": named(kept) if "kernel" in self._wanted else None, **self._columns(kept)}
            columns = {name: value for name, value in columns.items() if name in self._wanted}
            self._out.add("launches", kept.height, columns)
            yield rows.height

    def _columns(self, rows: pl.DataFrame) -> Mapping[str, pl.Series | str | None]:
        rows = self._tracks.place(rows) if {"device", "process"} & self._wanted else rows
        have = set(rows.columns)
        columns: dict[str, pl.Series | str | None] = {"host": self._tracks.host}
        for ours, theirs in _NEEDS.items():
            if ours in have:
                columns[ours] = rows[ours]
            elif set(theirs) <= have:
                columns[ours] = rows.select(_VALUES.get(ours, pl.col(theirs[0]))).to_series()
        return columns

    def _kernel_names(self, rows: pl.DataFrame, name_id: str | None) -> pl.Series | str:
        return self._strings.name(rows[name_id], KERNELS) if name_id else "[unnamed kernel]"

    def _copy_names(self, rows: pl.DataFrame) -> pl.Series | str:
        if "copyKind" not in rows.columns:
            return "[CUDA memcpy]"
        labels = _COPY_KINDS | _labels(self._export, "ENUM_CUDA_MEMCPY_OPER")
        words = {kind: f"[CUDA memcpy {label}]" for kind, label in labels.items()}
        return (
            rows["copyKind"]
            .replace_strict(words, default="[CUDA memcpy Unknown]", return_dtype=pl.String)
            .cast(pl.Categorical)
        )


def _graph_names(rows: pl.DataFrame) -> pl.Series | str:
    if "graphId" not in rows.columns:
        return "[CUDA graph]"
    number = pl.col("graphId").cast(pl.String).fill_null("?")
    return rows.select(pl.concat_str(pl.lit("[CUDA graph "), number, pl.lit("]"))).to_series()


def _labels(export: Export, table: str) -> dict[int, str]:
    return dict(read_all(export, table, ["id"], ["label"]).drop_nulls().rows())


_VALUES = {
    "grid": pl.concat_arr("gridX", "gridY", "gridZ"),
    "block": pl.concat_arr("blockX", "blockY", "blockZ"),
    "shared_bytes": pl.col("staticSharedMemory") + pl.col("dynamicSharedMemory"),
    "graph_id": pl.col("graphId").replace({0: None}),
    "graph_node_id": pl.col("graphNodeId").replace({0: None}),
}
