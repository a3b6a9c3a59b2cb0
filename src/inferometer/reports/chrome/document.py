"""A trace as a Chrome trace (Trace Event Format), as PyTorch's profiler (Kineto) writes it: for Perfetto, HTA and us.

Reading it back with `inferometer.open` gives the same launches, collectives, calls, ops, frames, spans and counters,
but for what the format has no place for: a row of collectives without its launch, the kind `graph` of a launch (it
becomes a kernel), a launch's `process` where several processes called, a device that is no `gpu:N`, the `parent` of an
op and the `path_id` of a call (they stand in the arguments), domains of spans that PyTorch doesn't know (the argument
`domain`), `device`, `host` and `unit` of a counter other than the allocator's, blocks and reserved bytes of its
records, a counter's sample without a number, and a `rank` that some rows of a file lack. Rows of `host_events` and
`steps` become events of these categories, which our reader counts as unknown. Tables without a form are left to the
caller to report. The tool of a file read back is Kineto's where the trace knew devices or ranks.

The format has one rank a file, so several ranks are several files.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec
import polars as pl

from inferometer.analyses.timeline.collectives import join_collectives, recorded_collectives
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.ids import Ids
from inferometer.reports.chrome.events import FORMS, Form
from inferometer.trace.facts import Device, Facts, without_folders
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

BATCH_ROWS = 1 << 16
_RECORDED = {
    "shapes": "record_shapes",
    "stacks": "with_stack",
    "modules": "with_modules",
    "flops": "with_flops",
    "memory": "profile_memory",
}
Rank = int | None
Rows = dict[str, int]


def find_ranks(trace: Trace) -> list[Rank]:
    """The ranks that need a file of their own; one entry when all rows can stand in one file.

    Rows without a rank go with the only one that there is; where there are several, None stands for them.
    """
    frames = [trace.tables[form.table].select(pl.col("rank").unique()) for form in FORMS if form.table in trace.scope]
    ranks = set(pl.concat(pl.collect_all(frames)).to_series()) if frames else set()
    named = sorted(ranks - {None})
    if len(named) > 1:
        return [*named, *(ranks & {None})]
    return named or [trace.facts.ranks[0] if len(trace.facts.ranks) == 1 else None]


def write_chrome(trace: Trace, files: Mapping[Rank, BinaryIO]) -> dict[Rank, Rows]:
    """Write one document a rank into `files` in one pass over the rows, a batch at a time; rows written by table.

    A single file takes the rows of every rank.
    """
    processes, threads = find_text_ids(trace.facts)
    rows: dict[Rank, Rows] = {rank: {} for rank in files}
    begun: set[Rank] = set()
    for rank, file in files.items():
        names = [_json(event) for event in _names(trace.facts, rank)]
        file.write((_head(trace.facts, rank) + ",\n".join(names)).encode())
        begun |= {rank} if names else set()
    for form in FORMS:
        if form.table not in trace.scope:
            continue
        text = form.text(processes, threads).alias("text")
        for rank, batch in _batches(trace, form, list(files)):
            events = batch.select(text).to_series().str.join(",\n").item()
            files[rank].write((b",\n" if rank in begun else b"") + events.encode())
            begun.add(rank)
            written = {form.table: batch.height}
            if form.table == "launches":
                written["collectives"] = int(batch["is_collective"].sum())
            for table, count in written.items():
                if count:
                    rows[rank][table] = rows[rank].get(table, 0) + count
    for file in files.values():
        file.write(b"\n]\n}\n")
    return rows


def find_text_ids(facts: Facts) -> tuple[dict[int, str], dict[int, str]]:
    """Text ids of processes and of threads by the numbers that our reader gives them."""
    ids = Ids(FileHeader(Losses()), Losses())
    processes = {each.process: each.name for each in facts.processes if each.process is not None and each.name}
    threads = {each.thread: each.name for each in facts.threads if each.thread is not None and each.name}
    return (
        {number: name for number, name in processes.items() if number < 0 and ids.process(name) == number},
        {number: name for number, name in threads.items() if number < 0 and ids.thread(name) == number},
    )


def _batches(trace: Trace, form: Form, ranks: list[Rank]) -> Iterator[tuple[Rank, pl.DataFrame]]:
    """The rows that have an event, in order, parted by rank where there are several."""
    frame, start = trace.tables[form.table], 0
    collectives = recorded_collectives(trace)
    while (batch := frame.slice(start, BATCH_ROWS).collect()).height:
        start += BATCH_ROWS
        if form.table == "launches":
            batch = join_collectives(batch.lazy(), collectives).collect()
        if form.rows is not None:
            batch = batch.filter(form.rows)
        parts: dict[Any, pl.DataFrame] = {(ranks[0],): batch}
        if len(ranks) > 1:
            parts = batch.partition_by("rank", as_dict=True, maintain_order=True)
        yield from ((rank, part) for (rank,), part in parts.items() if part.height)


def _head(facts: Facts, rank: Rank) -> str:
    """The document up to its first event: only what the trace knows."""
    fields: dict[str, Any] = {key: _number_or_text(text) for key, text in facts.versions.items() if key != "nccl"}
    if devices := [_properties(device) for device in facts.devices if device.rank in (None, rank)]:
        fields["deviceProperties"] = devices
    distributed = {"rank": rank, "world_size": facts.world_size, "nccl_version": facts.versions.get("nccl")}
    if known := {key: value for key, value in distributed.items() if value is not None}:
        fields["distributedInfo"] = known
    fields |= {_RECORDED[key]: int(value) for key, value in facts.recorded.items() if key in _RECORDED}
    fields["displayTimeUnit"] = "ms"
    if facts.clock_base_ns is not None:
        fields["baseTimeNanoseconds"] = facts.clock_base_ns
    fields["exportedBy"] = {"tool": "inferometer", "source": without_folders(facts.source), "recordedWith": facts.tool}
    if facts.redacted is not None:
        fields["exportedBy"]["redacted"] = facts.redacted
    lines = [f"  {_json(key)}: {_json(value)},\n" for key, value in fields.items()]
    return "".join(["{\n", *lines, '  "traceEvents": [\n'])


def _properties(device: Device) -> dict[str, Any]:
    number = device.device.removeprefix("gpu:")
    major, _, minor = (device.compute_capability or "").partition(".")
    values = {
        "id": int(number) if number.isdecimal() else device.device,
        "name": device.name,
        "totalGlobalMem": device.memory_bytes,
        "computeMajor": int(major) if major.isdecimal() else None,
        "computeMinor": int(minor) if minor.isdecimal() else None,
        "warpSize": device.warp_size,
        "numSms": device.multiprocessors,
    }
    return {key: value for key, value in values.items() if value is not None}


def _names(facts: Facts, rank: Rank) -> Iterator[dict[str, Any]]:
    """Metadata events: what processes and threads are called."""
    processes, threads = find_text_ids(facts)
    for named in (*facts.processes, *facts.threads):
        if named.rank not in (None, rank):
            continue
        pid = None if named.process is None else processes.get(named.process, named.process)
        tid = None if named.thread is None else threads.get(named.thread, named.thread)
        place = {key: value for key, value in (("pid", pid), ("tid", tid)) if value is not None}
        words = [("name", "thread_name" if named.thread is not None else "process_name", named.name)]
        words.append(("labels", "process_labels", named.label))
        for key, event, text in words:
            if text is not None:
                yield {"ph": "M", "name": event, **place, "args": {key: text}}


def _number_or_text(text: str) -> Any:
    """A version as the file had it: 24, 4.1 or a text."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return value if isinstance(value, int | float) and str(value) == text else text


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
