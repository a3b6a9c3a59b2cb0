"""Batches of records of one process to rows of tables."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from inferometer.formats.rocprof import rows
from inferometer.formats.rocprof.process import Process
from inferometer.formats.rocprof.records import CopyRecord, CounterRecord, Dispatch, Handle, KernelRecord, Record, Value
from inferometer.trace.builder import TraceBuilder

_TIMES = {"start": "start_timestamp", "end": "end_timestamp"}
_CORRELATION = {"correlation": "correlation_id.internal", "external": "correlation_id.external"}
_DISPATCH = {  # paths into a `Dispatch`, which records of kernels and of counters have
    "agent": "agent_id.handle",
    "queue": "queue_id.handle",
    "kernel_id": "kernel_id",
    "scratch": "private_segment_size",
    "lds": "group_segment_size",
    **{f"{name}_{axis}": f"{name}_size.{axis}" for name in ("workgroup", "grid") for axis in "xyz"},
}
_KERNEL = {
    **_TIMES,
    **_CORRELATION,
    **{name: f"dispatch_info.{path}" for name, path in _DISPATCH.items()},
    "stream": "stream_id.handle",
    "graph": "graph_exec_id",
    "graph_node": "graph_node_id",
}
_COPY = {
    **_TIMES,
    **_CORRELATION,
    "source": "src_agent_id.handle",
    "destination": "dst_agent_id.handle",
    "stream": "stream_id.handle",
    "bytes": "bytes",
}
_CALL = {**_TIMES, **_CORRELATION, "thread": "thread_id"}
_BY_SYMBOL = ("kernel", "vgpr", "agpr", "sgpr")
_WRAPPED = ("external", "graph", "graph_node")  # in some releases a number, in others an object around it
LIBRARIES = {"rccl_api": "RCCL", "marker_api": "ROCTx"}


class Batches:
    """Hands the records of one process to the builder, many at a time. `counted`: dispatches with counters so far."""

    def __init__(self, out: TraceBuilder, process: Process, counted: int) -> None:
        self._out = out
        self._process = process
        self._kernels = process.kernels().with_columns(pl.col("kernel").cast(pl.Categorical))
        self._devices = process.devices()
        self._about: dict[str, int | str | None] = {"process": process.pid}
        self._of_work = {**self._about, "host": process.host}
        self.counted = counted

    def kernels(self, records: Sequence[KernelRecord]) -> None:
        """`kernel_dispatch`."""
        parts = set(rows.launch_parts(self._out.narrow("launches")))
        parts |= {"agent"} if "device" in parts else set()
        parts |= {"kernel_id"} if parts.intersection(_BY_SYMBOL) else set()
        frame = _frame(records, {name: path for name, path in _KERNEL.items() if name in parts})
        if "stream" in parts and frame["stream"].null_count() == frame.height:
            frame = frame.drop("stream").with_columns(_frame(records, {"queue": _KERNEL["queue"]}))
        if "agent" in parts:
            frame = frame.join(self._devices, on="agent", how="left", maintain_order="left")
        if "kernel_id" in parts:
            frame = self._named(frame, "kernel_dispatch")
        rows.add_launches(self._out, frame, "kernel", "kernel_dispatch", self._of_work)

    def _named(self, frame: pl.DataFrame, category: str) -> pl.DataFrame:
        """With the symbols' names and registers; a kernel without a name is called by its number, and counted."""
        joined = frame.join(self._kernels, on="kernel_id", how="left", maintain_order="left")
        return rows.with_kernel_names(self._out, joined, joined["kernel"], joined["kernel_id"], category)

    def copies(self, records: Sequence[CopyRecord]) -> None:
        """`memory_copy`."""
        frame = _frame(records, _COPY)
        for end in ("source", "destination"):
            named = self._devices.rename({"agent": end, "device": f"{end}_device"})
            frame = frame.join(named, on=end, how="left", maintain_order="left")
        frame = frame.with_columns(
            rows.copy_names(self._names(records, "memory_copy")).alias("kernel"),
            rows.copy_devices(frame["source_device"], frame["destination_device"]),
        )
        rows.add_launches(self._out, frame, "memcpy", "memory_copy", self._of_work)

    def calls(self, records: Sequence[Record], array: str) -> None:
        """`hip_api` and `hsa_api`."""
        frame = _frame(records, _CALL).with_columns(self._names(records, array).alias("name"))
        rows.add_calls(self._out, frame, array, self._about)

    def spans(self, records: Sequence[Record], array: str) -> None:
        """`marker_api` by its texts, and `rccl_api`."""
        frame, names = _frame(records, _CALL), self._names(records, array)
        if array == "marker_api":
            texts = [self._process.range_text(record.correlation_id.internal) for record in records]
            given = pl.Series(texts, dtype=pl.String)
            names = pl.select(pl.coalesce(given, names.cast(pl.String))).to_series()
        rows.add_spans(self._out, frame.with_columns(names.alias("name")), array, LIBRARIES[array], self._about)

    def counters(self, records: Sequence[CounterRecord]) -> None:
        """`counter_collection`: one row for each counter of a dispatch, summed over its instances."""
        first, self.counted = self.counted, self.counted + len(records)
        sums = [(i, *each) for i, record in enumerate(records) for each in self._sums(record)]
        self._out.losses.see("counter_collection", len(sums))
        known = [(i, metric, value) for i, metric, value in sums if value is not None]
        self._out.losses.count("counter_without_value", len(sums) - len(known), category="counter_collection")
        if not known:
            return
        at, metrics, values = zip(*known, strict=True)
        dispatches = [record.dispatch_data.dispatch_info if record.dispatch_data else Dispatch() for record in records]
        frame = _frame(dispatches, _DISPATCH).join(self._devices, on="agent", how="left", maintain_order="left")
        rows.add_counters(
            self._out,
            self._named(frame, "counter_collection")[list(at)].with_columns(
                pl.Series("launch", at) + first, pl.Series("metric", metrics), pl.Series("value", values)
            ),
            self._about,
        )

    def _sums(self, record: CounterRecord) -> list[tuple[str, float | None]]:
        """The name and value of each counter, over its instances; None where no instance has a value."""
        found: dict[int | None, float | None] = {}
        for count in record.records:
            before = found.get(count.counter_id.handle)
            found[count.counter_id.handle] = before if count.value is None else count.value + (before or 0.0)
        names = self._process.counters
        return [("counter ?" if key is None else names.get(key, f"counter {key}"), n) for key, n in found.items()]

    def _names(self, records: Sequence[Record], array: str) -> pl.Series:
        """Names of operations as categories; one without is called by its numbers, and counted."""
        pairs = list(map(attrgetter("kind", "operation"), records))
        known = {pair: self._process.operation(*pair) for pair in set(pairs)}
        missing = sum(known[pair] is None for pair in pairs)
        self._out.losses.count("without_string", missing, category=array)
        texts = {pair: name or f"[operation {pair[0]}.{pair[1]}]" for pair, name in known.items()}
        return pl.Series([texts[pair] for pair in pairs], dtype=pl.String).cast(pl.Categorical)


def _frame(records: Sequence[Any], paths: Mapping[str, str]) -> pl.DataFrame:
    """A column for each path into the records; wrapped ids are unwrapped."""
    columns = []
    for name, path in paths.items():
        values = list(map(attrgetter(path), records))
        if name in _WRAPPED and any(isinstance(value, Value | Handle) for value in values):
            values = [_unwrapped(value) for value in values]
        columns.append(pl.Series(name, values, dtype=pl.Int64))
    return pl.DataFrame(columns)


def _unwrapped(value: int | Value | Handle | None) -> int | None:
    return value.value if isinstance(value, Value) else value.handle if isinstance(value, Handle) else value
