"""Reads CSV files of rocprofv3: a folder is one trace of all its processes, a single file opens by itself."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from inferometer.errors import FormatError, InputError, printable
from inferometer.formats.rocprof import rows
from inferometer.formats.rocprof.agents import Agent, convert_agent, describe_devices, join_devices, name_devices
from inferometer.formats.rocprof.csv_files import CsvFile, find_files, kind_of_header, read_header
from inferometer.formats.source import Source, Stream
from inferometer.formats.text_lines import Ends, read_lines
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts, NamedId
from inferometer.trace.tables import ALL_TABLES

_BATCH_ROWS = 50_000
_TABLES = {
    "kernels": ("launches",),
    "copies": ("launches",),
    "calls": ("calls", "spans"),
    "counters": ("kernel_counters",),
}
_TIMES = {"start": ("start_timestamp",), "end": ("end_timestamp",)}
_KERNEL = {  # ours: theirs in lower case, the first that is there
    **_TIMES,
    "queue": ("queue_id",),
    "stream": ("stream_id",),
    "correlation": ("correlation_id",),
    "kernel_id": ("kernel_id",),
    "lds": ("lds_block_size", "group_segment_size"),
    "scratch": ("scratch_size", "private_segment_size"),
    "vgpr": ("vgpr_count",),
    "agpr": ("accum_vgpr_count",),
    "sgpr": ("sgpr_count",),
    "graph": ("graph_exec_id",),
    "graph_node": ("graph_node_id",),
    **{f"{name}_{axis}": (f"{name}_size_{axis}",) for name in ("grid", "workgroup") for axis in "xyz"},
}
_COPY = {**_TIMES, "stream": ("stream_id",), "correlation": ("correlation_id",)}
_CALL = {**_TIMES, "process": ("process_id",), "thread": ("thread_id",), "correlation": ("correlation_id",)}
_COUNTER = {
    "dispatch": ("dispatch_id",),
    "process": ("process_id",),
    "queue": ("queue_id",),
    "stream": ("stream_id",),
    "kernel_id": ("kernel_id",),
}
_HINT = "Name the folder that rocprofv3 --output-format csv made, or one *_kernel_trace.csv in it."
_NOTE = "No *_agent_info.csv says which agents are GPUs: gpu:4 is what AMD calls agent 4, CPUs counted."


@dataclass(frozen=True)
class _Batch:
    """Rows of a file: texts by the column's name in lower case."""

    category: str
    process: int | None
    columns: Mapping[str, pl.Series]

    def text(self, *names: str) -> pl.Series | None:
        """The first of these columns that is there."""
        return next((self.columns[name] for name in names if name in self.columns), None)


def read_csv(source: Source, out: TraceBuilder, name: str, tool: str) -> Facts:
    """Read the tables that `out` wants; `name` is the format's, `tool` the profiler's.

    Raises:
        FormatError: There is no file of rocprofv3, or none that can be read.
    """
    reader = _Reader(source, out)
    files = find_files(source.path) if source.path else [CsvFile(Path("stdin"), None)]
    for file in sorted(files, key=lambda file: "agent_info" not in file.path.name):  # agents number devices
        reader.take(file)
    return reader.finish(name, tool)


class _Reader:
    """What was read so far."""

    def __init__(self, source: Source, out: TraceBuilder) -> None:
        self._source = source
        self._out = out
        self._agents: dict[int, Agent] = {}
        self._devices: dict[str, str] = {}
        self._processes: set[int] = set()
        self._read = 0
        self._counted = 0
        self._guessed = False

    def take(self, file: CsvFile) -> None:
        """One file, in batches; agents are looked up in the files next to it first."""
        is_itself = not self._source.is_folder
        source = self._source if is_itself else Source(file.path, limits=self._source.limits)
        try:
            with source.open() as stream:
                self._take(source, file, stream)
                if stream.damage:
                    self._out.losses.count("broken_compression", example=stream.damage)
        except InputError as error:
            if is_itself:
                raise
            self._out.losses.count("unreadable_file", category=printable(file.path.name), example=error.message)

    def finish(self, name: str, tool: str) -> Facts:
        if not self._read:
            raise FormatError(f"{self._source.name}: expected CSV files of rocprofv3, found none", hint=_HINT)
        return Facts(
            name,
            self._source.name,
            tool=tool,
            devices=join_devices([describe_devices(self._agents)]),
            processes=tuple(NamedId(process) for process in sorted(self._processes)),
            notes=(_NOTE,) if self._guessed else (),
        )

    def _take(self, source: Source, file: CsvFile, stream: Stream) -> None:
        ends = Ends(line for _, line in read_lines(stream, self._out.losses, longest=source.limits.event_bytes))
        lines = iter(ends)
        header = next(lines, "")
        names, kind = [name.lower() for name in read_header(header)], kind_of_header(header)
        category = kind or file.path.name.partition(".")[0].lstrip("0123456789_")
        if file.process is not None:
            self._processes.add(file.process)
        self._read += kind is not None
        if kind != "agents" and not self._wants(kind):
            return
        batches = self._batches(lines, names, category, file.process, counts=kind != "agents")
        if kind == "counters":
            self._add_counters(batches, file.process)
        else:
            take = self._handler(kind)
            for batch in batches:
                take(batch)
        if ends.is_cut and kind != "agents":
            self._out.losses.count("truncated", example=f"{printable(file.path.name)}: the last line has no end")

    def _wants(self, kind: str | None) -> bool:
        """Whether rows of this kind have a table that was asked for; of an unknown kind, whether all were."""
        return self._out.tables == ALL_TABLES if kind is None else self._out.wants(*_TABLES[kind])

    def _handler(self, kind: str | None) -> Callable[[_Batch], None]:
        handlers: dict[str, Callable[[_Batch], None]] = {
            "agents": self._take_agents,
            "kernels": self._add_kernels,
            "copies": self._add_copies,
            "calls": self._add_calls,
        }
        return self._count_unread if kind is None else handlers[kind]

    def _batches(
        self, lines: Iterator[str], names: Sequence[str], category: str, process: int | None, *, counts: bool
    ) -> Iterator[_Batch]:
        reader, held = csv.reader(lines), list[list[str]]()
        while True:
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                self._count_bad(category, str(error), counts=counts)
                continue
            if len(row) == len(names):
                held.append(row)
            elif row:
                self._count_bad(category, f"expected {len(names)} cells, found {len(row)}", counts=counts)
            if len(held) >= _BATCH_ROWS:
                yield _batch(held, names, category, process)
                held = []
        if held:
            yield _batch(held, names, category, process)

    def _count_bad(self, category: str, why: str, *, counts: bool) -> None:
        if counts:
            self._out.losses.see(category)
            self._out.losses.count("unreadable_row", category=category, example=why)

    def _take_agents(self, batch: _Batch) -> None:
        columns = {("type" if name == "agent_type" else name): each.to_list() for name, each in batch.columns.items()}
        for values in zip(*columns.values(), strict=True):
            agent = convert_agent({name: value for name, value in zip(columns, values, strict=True) if value != ""})
            if agent.node_id is not None:
                self._agents[agent.node_id] = agent
        self._devices = {str(number): text for number, text in name_devices(self._agents).items()}

    def _add_kernels(self, batch: _Batch) -> None:
        frame = self._numbers(batch, _KERNEL).with_columns(self._named(batch))
        if (agent := batch.text("agent_id")) is not None:
            frame = frame.with_columns(self._device(agent).alias("device"))
        if "stream" in frame.columns and frame["stream"].null_count() == frame.height:
            frame = frame.drop("stream")
        rows.add_launches(self._out, frame, "kernel", batch.category, self._about(batch))

    def _named(self, batch: _Batch) -> pl.Series:
        names = batch.text("kernel_name")
        empty = pl.repeat("", batch.columns["dispatch_id"].len(), dtype=pl.String, eager=True)
        return (empty if names is None else names).alias("kernel").cast(pl.Categorical)

    def _add_copies(self, batch: _Batch) -> None:
        """Of copies the files hold no bytes: these are unknown."""
        ends = [batch.text(f"{end}_agent_id") for end in ("source", "destination")]
        frame = self._numbers(batch, _COPY).with_columns(rows.copy_names(batch.columns["direction"]).alias("kernel"))
        if ends[0] is not None and ends[1] is not None:
            frame = frame.with_columns(rows.copy_devices(self._device(ends[0]), self._device(ends[1])))
        rows.add_launches(self._out, frame, "memcpy", batch.category, self._about(batch))

    def _add_calls(self, batch: _Batch) -> None:
        frame = self._numbers(batch, _CALL).with_columns(
            batch.columns["function"].cast(pl.Categorical).alias("name"), batch.columns["domain"].alias("domain")
        )
        about = {} if "process" in frame.columns else self._about(batch)
        self._processes.update(frame["process"].drop_nulls().unique().to_list() if "process" in frame.columns else ())
        rows.add_by_domain(self._out, frame, batch.category, about)

    def _add_counters(self, batches: Iterator[_Batch], process: int | None) -> None:
        """A dispatch's counters may be in several batches, and are summed over its instances."""
        found = [self._counter_rows(batch) for batch in batches]
        if found:
            self._add_sums(pl.concat(found, how="diagonal"), process)

    def _counter_rows(self, batch: _Batch) -> pl.DataFrame:
        values = batch.columns["counter_value"].cast(pl.Float64, strict=False)
        frame = self._numbers(batch, _COUNTER).with_columns(
            self._named(batch).cast(pl.String),
            batch.columns["counter_name"].alias("metric"),
            pl.when(values.is_finite()).then(values).alias("value"),
        )
        agent = batch.text("agent_id")
        return frame if agent is None else frame.with_columns(self._device(agent).alias("device"))

    def _add_sums(self, found: pl.DataFrame, process: int | None) -> None:
        """One row for each counter of a dispatch; sizes are products in these files, which no grid is made of."""
        first = [pl.col(name).first() for name in found.columns if name not in ("dispatch", "metric", "value")]
        value = pl.when(pl.col("value").count() > 0).then(pl.col("value").sum()).alias("value")
        sums = found.group_by("dispatch", "metric", maintain_order=True).agg(*first, value)
        launch = sums["dispatch"].rank("dense").cast(pl.Int64).fill_null(0) + (self._counted - 1)
        self._counted += sums["dispatch"].n_unique()
        self._out.losses.see("counters", sums.height)
        kept = sums.with_columns(launch.alias("launch")).drop_nulls("value")
        self._out.losses.count("counter_without_value", sums.height - kept.height, category="counters")
        about = {} if "process" in kept.columns else {"process": process}
        rows.add_counters(self._out, kept.with_columns(pl.col("kernel").cast(pl.Categorical)), about)

    def _count_unread(self, batch: _Batch) -> None:
        rows_here = next(iter(batch.columns.values())).len()
        self._out.losses.see(batch.category, rows_here)
        self._out.losses.count("unknown_category", rows_here, category=batch.category)

    def _numbers(self, batch: _Batch, wanted: Mapping[str, tuple[str, ...]]) -> pl.DataFrame:
        """Whole numbers; another text is null, and counted."""
        columns = {}
        for ours, names in wanted.items():
            if (text := batch.text(*names)) is None:
                continue
            columns[ours] = text.cast(pl.Int64, strict=False)
            odd = columns[ours].is_null() & (text.str.strip_chars() != "")
            example = next(iter(text.filter(odd).head(1).to_list()), None)
            where = f"{batch.category}.{names[0]}"
            self._out.losses.count("wrong_type", int(odd.sum()), category=where, example=example)
        return pl.DataFrame(columns)

    def _device(self, agents: pl.Series) -> pl.Series:
        """`GPU 0` is a GPU's own number; `Agent 4` and `4` are among all agents, CPUs included."""
        known = {}
        for text in agents.unique().to_list():
            word, _, number = (text or "").strip().rpartition(" ")
            if word.upper() in ("GPU", "CPU"):
                known[text] = f"gpu:{number}" if word.upper() == "GPU" else "cpu"
            elif number in self._devices:
                known[text] = self._devices[number]
            elif number.isdecimal():
                known[text] = f"gpu:{number}"
                self._guessed = True
        return agents.replace_strict(known, default=None, return_dtype=pl.String)

    @staticmethod
    def _about(batch: _Batch) -> Mapping[str, int | str | None]:
        return {"process": batch.process}


def _batch(held: Sequence[Sequence[str]], names: Sequence[str], category: str, process: int | None) -> _Batch:
    columns = dict(zip(names, zip(*held, strict=True), strict=True))
    return _Batch(category, process, {name: pl.Series(name, each, dtype=pl.String) for name, each in columns.items()})
