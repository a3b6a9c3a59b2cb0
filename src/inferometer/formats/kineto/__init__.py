"""PyTorch profiler (Kineto) and other Chrome-trace JSON.

Source: the Trace Event Format, and files of PyTorch 1.8 to 2.10 on NVIDIA and AMD. Fills launches, collectives, calls,
ops, frames, spans and counters. Modules: `text` and `events` get events out of JSON text, `scan` is the quick way for
launches alone, `dispatch` and `columns` make tables of them, `header` reads what stands beside them.
"""

import re
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
_SIGNS = (
    b'"traceEvents"',
    b'"ph"',
    b'"schemaVersion"',
    b'"deviceProperties"',
    b'"distributedInfo"',
    b'"displayTimeUnit"',
)
_JOB = re.compile(rb'"distributedInfo"\s*:\s*\{([^][{}]*)')  # its own fields stand before the nested ones
_RANK = re.compile(rb'"rank"\s*:\s*(\d{1,9})(?!\d)')
_WORLD_SIZE = re.compile(rb'"world_size"\s*:\s*(\d{1,9})(?!\d)')


def _sniff(head: bytes) -> bool:
    """JSON with a sign of trace events in its first 64 KiB."""
    return bool(_JSON_START.match(head)) and any(sign in head for sign in _SIGNS)


def _tell_rank(head: bytes) -> tuple[int | None, int | None]:
    """From `distributedInfo`, which PyTorch writes before the events."""
    job = _JOB.search(head)
    rank, world_size = (_field.search(job[1]) if job else None for _field in (_RANK, _WORLD_SIZE))
    return rank and int(rank[1]), world_size and int(world_size[1])


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.kineto.reader import read

    return read(source, out, tables)


def _start(source: "Source", tables: frozenset[str] | None) -> None:
    from inferometer.formats.kineto.ahead import start

    start(source, tables)


FORMAT = Format(
    name="kineto",
    title="PyTorch profiler (Kineto) and other Chrome traces, .json or .json.gz",
    suffixes=(".json", ".json.gz"),
    sniff=_sniff,
    read=_read,
    start=_start,
    tell_rank=_tell_rank,
    tables=frozenset({"launches", "collectives", "calls", "ops", "frames", "spans", "counters"}),
    limits="Flow arrows, async and object events are counted, not kept. Spans and counters lose further arguments.",
    aliases=("chrome", "pytorch"),
)
