"""What the host did: calls of the runtime and driver, named ranges, synchronisation, the operating system's calls."""

from collections.abc import Iterator

import polars as pl

from inferometer.formats.databases.export import Export
from inferometer.formats.nsys.ids import Strings, process_of, thread_of
from inferometer.formats.nsys.tracks import Tracks
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.timed_rows import keep_timed

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
LIBRARIES = {"CUBLAS_EVENTS": "cuBLAS", "CUDNN_EVENTS": "cuDNN"}
SYSTEM = "OSRT_API"

_MARK, _PUSH_POP, _START_END, _DOMAIN = 34, 59, 60, 75
_DEFAULT_DOMAIN = "NVTX"
_UNNAMED_RANGE = "[no message]"  # NVTX allows ranges without one
_SYNC_NAMES = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}  # as Kineto calls them
_NO_STREAM = 2**32 - 1  # CUPTI_SYNCHRONIZATION_INVALID_VALUE: a wait that is not for one stream


def _place(rows: pl.DataFrame) -> dict[str, Values]:
    """Process and thread, where the rows have them."""
    if "globalTid" not in rows.columns:
        return {}
    packed = pl.col("globalTid")
    placed = rows.select(process_of(packed).alias("process"), thread_of(packed).alias("thread"))
    return {"process": placed["process"], "thread": placed["thread"]}


def _times(rows: pl.DataFrame) -> dict[str, Values]:
    return {"start_ns": rows["start"], "dur_ns": rows["dur_ns"]}


def _present(export: Export, table: str, *columns: str) -> list[str]:
    return [column for column in columns if column in export.columns(table)]


class Host:
    """Reads tables of the host side into `calls`, `spans` and `host_events`."""

    def __init__(self, export: Export, out: TraceBuilder, strings: Strings, tracks: Tracks) -> None:
        self._export = export
        self._out = out
        self._strings = strings
        self._tracks = tracks

    def calls(self, paths: pl.DataFrame) -> None:
        """Runtime and driver calls; `paths` has the `path_id` of each `callchainId`."""
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "callchainId")
        for rows in self._batches(CALLS, *columns):
            chained = "callchainId" in rows.columns and paths.height > 0
            if chained:
                rows = rows.join(paths, on="callchainId", how="left", maintain_order="left")
            self._out.add(
                "calls",
                rows.height,
                {
                    "api": self._names(rows, CALLS),
                    **_place(rows),
                    **_times(rows),
                    "correlation_id": rows["correlationId"] if "correlationId" in rows.columns else None,
                    "path_id": rows["path_id"] if chained else None,
                },
            )

    def nvtx(self) -> None:
        """Push-pop ranges, start-end ranges and marks; what else NVTX records are names, which aren't rows."""
        if not {"start", "end"} <= self._export.columns(NVTX):
            return
        domains = self._domains()
        columns = ("start", "end", "eventType", "globalTid", "textId", "domainId")
        texts = [name for name in ("text",) if name in self._export.columns(NVTX)]
        for batch in self._export.batches(NVTX, _present(self._export, NVTX, *columns), texts):
            self._out.losses.see(NVTX, batch.height)
            kept = keep_timed(self._ranges(batch), NVTX, self._out.losses)
            self._out.add(
                "spans",
                kept.height,
                {"span": self._texts(kept), "domain": self._domain(kept, domains), **_place(kept), **_times(kept)},
            )

    def _ranges(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Ranges that ended, and marks with the end that they lack; the others are counted."""
        kind = pl.col("eventType") if "eventType" in batch.columns else pl.lit(_PUSH_POP)
        ranges = batch.filter(kind.is_in([_PUSH_POP, _START_END, _MARK]))
        self._out.losses.count("nvtx_naming_event", batch.height - ranges.height, category=NVTX)
        ended = ranges.filter(pl.col("end").is_not_null() | (kind == _MARK))
        self._out.losses.count("begin_without_end", ranges.height - ended.height, category=NVTX)
        return ended.with_columns(pl.col("end").fill_null(pl.col("start")))

    def syncs(self) -> None:
        """Synchronisation as the device's side saw it: on the track of a device."""
        for rows in self._batches(SYNCS, "start", "end", "deviceId", "streamId", "globalPid", "syncType"):
            placed = self._tracks.place(rows)
            kind = rows["syncType"] if "syncType" in rows.columns else pl.repeat(0, rows.height, eager=True)
            names = kind.replace_strict(_SYNC_NAMES, default="Synchronization", return_dtype=pl.String)
            where: dict[str, Values] = {"process": placed["process"]}
            where |= {"device": placed["device"]} if "device" in placed.columns else {}
            where |= {"stream": rows["streamId"].replace({_NO_STREAM: None})} if "streamId" in rows.columns else {}
            self._out.add("spans", rows.height, {"span": names, "domain": "cuda_sync", **where, **_times(rows)})

    def libraries(self) -> None:
        """Calls into cuBLAS and cuDNN: ranges of the host that name what was asked for."""
        for table, domain in LIBRARIES.items():
            for rows in self._batches(table, "start", "end", "globalTid", "nameId"):
                span = {"span": self._names(rows, table), "domain": domain}
                self._out.add("spans", rows.height, {**span, **_place(rows), **_times(rows)})

    def system(self) -> None:
        """Calls into the operating system's libraries."""
        for rows in self._batches(SYSTEM, "start", "end", "globalTid", "nameId"):
            columns = {"kind": self._names(rows, SYSTEM), **_place(rows), **_times(rows)}
            self._out.add("host_events", rows.height, columns)

    def _batches(self, table: str, *columns: str) -> Iterator[pl.DataFrame]:
        """Rows of `table` with a usable time, counted as seen."""
        numbers = _present(self._export, table, *columns)
        if not {"start", "end"} <= set(numbers):
            return
        for batch in self._export.batches(table, numbers):
            self._out.losses.see(table, batch.height)
            yield keep_timed(batch, table, self._out.losses)

    def _names(self, rows: pl.DataFrame, table: str) -> pl.Series | str:
        return self._strings.name(rows["nameId"], table) if "nameId" in rows.columns else "[unnamed]"

    def _texts(self, rows: pl.DataFrame) -> pl.Series:
        """A range's message: its own text, or a string by its id."""
        texts = rows["text"] if "text" in rows.columns else pl.repeat(None, rows.height, dtype=pl.String, eager=True)
        if "textId" in rows.columns:
            texts = pl.select(pl.coalesce(texts, self._strings.find(rows["textId"]))).to_series()
        return texts.fill_null(_UNNAMED_RANGE)

    def _domains(self) -> pl.DataFrame:
        """Names of NVTX domains, by process and number."""
        empty = pl.DataFrame(schema={"process": pl.Int64, "domainId": pl.Int64, "domain": pl.String})
        if not {"domainId", "eventType", "globalTid"} <= self._export.columns(NVTX):
            return empty
        kinds = self._export.batches(NVTX, ["eventType"])
        if not any((batch["eventType"] == _DOMAIN).any() for batch in kinds):
            return empty  # the usual case, without reading every text twice
        found = [empty]
        texts = [name for name in ("text",) if name in self._export.columns(NVTX)]
        numbers = _present(self._export, NVTX, "eventType", "globalTid", "domainId", "textId")
        for batch in self._export.batches(NVTX, numbers, texts):
            created = batch.filter(pl.col("eventType") == _DOMAIN)
            if created.height:
                names = self._texts(created).alias("domain")
                process = process_of(pl.col("globalTid")).alias("process")
                found.append(created.with_columns(names).select(process, "domainId", "domain"))
        return pl.concat(found).unique(["process", "domainId"], keep="first", maintain_order=True)

    def _domain(self, rows: pl.DataFrame, domains: pl.DataFrame) -> pl.Series | str:
        if not domains.height or not {"domainId", "globalTid"} <= set(rows.columns):
            return _DEFAULT_DOMAIN
        keyed = rows.select(process_of(pl.col("globalTid")).alias("process"), "domainId")
        joined = keyed.join(domains, on=["process", "domainId"], how="left", maintain_order="left")
        return joined["domain"].fill_null(_DEFAULT_DOMAIN)
