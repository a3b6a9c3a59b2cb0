"""One run of a rocpd database to rows of a trace: every id is looked up, and a row without one stays."""

import json
from collections.abc import Iterator, Mapping

import polars as pl

from inferometer.formats.databases.places import ById
from inferometer.formats.rocpd.part import COPIES, COUNTS, KERNELS, REGIONS, Part
from inferometer.formats.rocprof import rows
from inferometer.formats.rocprof.agents import Agent, convert_agent, name_devices
from inferometer.privacy.metadata import Search, search_metadata
from inferometer.trace.builder import TraceBuilder

_SIZES = {f"{name}_{axis}": f"{name}_size_{axis}" for name in ("workgroup", "grid") for axis in "xyz"}
_KERNEL = {  # ours: theirs
    "start": "start",
    "end": "end",
    "scratch": "private_segment_size",
    "lds": "group_segment_size",
    "queue": "queue_id",
    "stream": "stream_id",
    "graph": "graph_exec_id",
    "graph_node": "graph_node_id",
    **_SIZES,
}
_REGISTERS = {"vgpr": "arch_vgpr_count", "agpr": "accum_vgpr_count", "sgpr": "sgpr_count"}
_WHERE = ("pid", "tid", "nid", "agent_id", "event_id")


class Run:
    """The tables of one suffix."""

    def __init__(self, part: Part, out: TraceBuilder) -> None:
        self._part = part
        self._out = out
        self._strings = part.by_id("rocpd_string", [], ["string"]).as_categories("string")
        self._processes = part.by_id("rocpd_info_process", ["pid"])
        self._threads = part.by_id("rocpd_info_thread", ["tid"])
        self._nodes = part.by_id("rocpd_info_node", [], ["hostname"])
        self._symbols = part.by_id(
            "rocpd_info_kernel_symbol", list(_REGISTERS.values()), ["display_name", "kernel_name"]
        )
        self.agents = _agents(part)
        devices = name_devices(self.agents)
        schema = {"id": pl.Int64, "device": pl.String}
        self._devices = ById(pl.DataFrame(list(devices.items()), schema=schema, orient="row"))
        self._known_events: ById | None = None

    def processes(self) -> list[int]:
        """Process ids."""
        return self._part.read_all("rocpd_info_process", ["pid"])["pid"].drop_nulls().unique().sort().to_list()

    def hosts(self) -> list[str]:
        """Names of machines."""
        found = self._part.read_all("rocpd_info_node", [], ["hostname"])["hostname"]
        return found.drop_nulls().unique().sort().to_list()

    def private(self) -> Search:
        """What was found in the command and the environment, of which nothing is kept."""
        found = self._part.read_all("rocpd_info_process", [], ["command", "environment"])
        places = [{"command": command, "environment": _parsed(text)} for command, text in found.rows()]
        return search_metadata("rocpd_info_process", places)

    def kernels(self) -> Iterator[int]:
        """`rocpd_kernel_dispatch`, whose rows may lack a thread, an event and a region's name."""
        for batch in self._part.batches(KERNELS, [*_KERNEL.values(), "kernel_id", *_WHERE]):
            frame = self._named(self._placed(_renamed(batch, _KERNEL)), KERNELS)
            rows.add_launches(self._out, frame, "kernel", KERNELS, {})
            yield batch.height

    def copies(self) -> Iterator[int]:
        """`rocpd_memory_copy`."""
        columns = ["start", "end", "size", "name_id", "src_agent_id", "dst_agent_id", "queue_id", "stream_id", *_WHERE]
        for batch in self._part.batches(COPIES, columns):
            frame = self._placed(_renamed(batch, {"bytes": "size", "queue": "queue_id", "stream": "stream_id"}))
            ends = [self._devices.find(_ids(batch, name), "device") for name in ("src_agent_id", "dst_agent_id")]
            names = rows.copy_names(self._texts(_ids(batch, "name_id"), COPIES)).alias("kernel")
            rows.add_launches(self._out, frame.with_columns(rows.copy_devices(*ends), names), "memcpy", COPIES, {})
            yield batch.height

    def regions(self) -> None:
        """`rocpd_region`: calls and ranges, by the category of their event."""
        for batch in self._part.batches(REGIONS, ["start", "end", "name_id", *_WHERE]):
            category = self._categories(self._events().find(_ids(batch, "event_id"), "category_id"))
            names = self._texts(_ids(batch, "name_id"), REGIONS)
            frame = self._placed(batch).with_columns(names.alias("name"), category.alias("domain"))
            rows.add_by_domain(self._out, frame, REGIONS, {})

    def counters(self, first: int) -> int:
        """`rocpd_pmc_event`, summed over instances, from launch number `first` on; the next number."""
        numbers = [*_SIZES.values(), "queue_id", "stream_id", "kernel_id", *_WHERE]
        found = list(self._part.batches(KERNELS, numbers))
        if not self._part.count(COUNTS) or not found:
            return first
        dispatches = pl.concat(found, how="diagonal").with_row_index("launch", first)
        frame = self._placed(_renamed(dispatches, {"queue": "queue_id", "stream": "stream_id", **_SIZES}))
        sums = self._sums().join(frame, on="event_id", how="left", maintain_order="left")
        self._out.losses.see(COUNTS, sums.height)
        kept = sums.drop_nulls(["launch", "value"])
        self._out.losses.count("counter_without_value", sums.height - kept.height, category=COUNTS)
        if kept.height:
            named = self._named(kept, COUNTS).with_columns(pl.col("launch").cast(pl.Int64))
            rows.add_counters(self._out, named, {})
        return first + dispatches.height

    def _sums(self) -> pl.DataFrame:
        """One row for each dispatch and counter."""
        names = self._part.by_id("rocpd_info_pmc", [], ["name", "symbol"])
        parts = []
        for batch in self._part.batches(COUNTS, ["event_id", "pmc_id"], ["value"]):
            metric = pl.select(pl.coalesce(names.find(batch["pmc_id"], "name"), names.find(batch["pmc_id"], "symbol")))
            numbered = pl.concat_str(pl.lit("counter "), batch["pmc_id"].cast(pl.String).fill_null("?"))
            frame = batch.with_columns(pl.coalesce(metric.to_series(), numbered).alias("metric"))
            parts.append(frame.with_columns(pl.col("value").cast(pl.Float64, strict=False)))
        counts = pl.concat(parts).filter(pl.col("value").is_finite() | pl.col("value").is_null())
        values = pl.when(pl.col("value").count() > 0).then(pl.col("value").sum()).alias("value")
        return counts.group_by("event_id", "metric", maintain_order=True).agg(values)

    def _placed(self, batch: pl.DataFrame) -> pl.DataFrame:
        """With process, thread, host, device and correlation ids, as far as they are known."""
        event = _ids(batch, "event_id")
        columns = [
            self._processes.find(_ids(batch, "pid"), "pid").alias("process"),
            self._threads.find(_ids(batch, "tid"), "tid").alias("thread"),
            self._nodes.find(_ids(batch, "nid"), "hostname").alias("host"),
            self._devices.find(_ids(batch, "agent_id"), "device"),
            self._events().find(event, "stack_id").alias("correlation"),
            self._events().find(event, "correlation_id").alias("external"),
        ]
        return batch.with_columns(columns)

    def _named(self, frame: pl.DataFrame, category: str) -> pl.DataFrame:
        number = _ids(frame, "kernel_id")
        columns = [self._symbols.find(number, theirs).alias(ours) for ours, theirs in _REGISTERS.items()]
        display, mangled = (self._symbols.find(number, name) for name in ("display_name", "kernel_name"))
        name = pl.select(pl.coalesce(display, mangled.str.strip_suffix(".kd"))).to_series()
        return rows.with_kernel_names(self._out, frame.with_columns(columns), name, number, category)

    def _texts(self, ids: pl.Series, category: str) -> pl.Series:
        """Strings by their id; one that isn't there is called by its number, and counted."""
        found = self._strings.find(ids, "string")
        if not found.null_count():
            return found
        self._out.losses.count("without_string", found.null_count(), category=category)
        numbered = pl.concat_str(pl.lit("[string "), ids.cast(pl.String).fill_null("null"), pl.lit("]"))
        return pl.select(pl.coalesce(found.cast(pl.String), numbered).cast(pl.Categorical)).to_series()

    def _events(self) -> ById:
        """Internal ids are called `stack_id` there, external ones `correlation_id`."""
        if self._known_events is None:
            self._known_events = self._part.by_id("rocpd_event", ["category_id", "stack_id", "correlation_id"])
        return self._known_events

    def _categories(self, ids: pl.Series) -> pl.Series:
        if names := sorted(self._part.columns("rocpd_info_category") & {"name", "category", "string"}):
            return self._part.by_id("rocpd_info_category", [], names[-1:]).find(ids, names[-1])
        return self._strings.find(ids, "string")


def _renamed(batch: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """With our names (the keys) for theirs, of the columns that are there."""
    return batch.rename({theirs: ours for ours, theirs in names.items() if theirs in batch.columns})


def _ids(batch: pl.DataFrame, name: str) -> pl.Series:
    absent = pl.repeat(None, batch.height, dtype=pl.Int64, eager=True)
    return batch[name] if name in batch.columns else absent.alias(name)


def _agents(part: Part) -> dict[int, Agent]:
    """Agents by row id: the fields of JSON stand in `extdata`, the columns count more."""
    numbers, texts = ["id", "type_index", "logical_index"], ["type", "name", "product_name", "extdata"]
    found = {}
    for row in part.read_all("rocpd_info_agent", numbers, texts).drop_nulls("id").iter_rows(named=True):
        about = _parsed(row["extdata"])
        known = {name: row[name] for name in ("type", "name", "product_name") if row[name]}
        places = {"logical_node_type_id": row["type_index"], "logical_node_id": row["logical_index"]}
        known |= {name: number for name, number in places.items() if number is not None}
        found[row["id"]] = convert_agent({**(about if isinstance(about, dict) else {}), **known})
    return found


def _parsed(text: str | None) -> object:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text
