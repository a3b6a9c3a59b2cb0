"""PyTorch profiler (Kineto) and other Chrome-trace JSON.

Source: the Trace Event Format, and files of PyTorch 1.8 to 2.10 on NVIDIA and AMD. Fills launches, collectives, calls,
ops, frames, spans, counters, memory_events and, of CUPTI's profiler of ranges, kernel_counters. Modules: `events` gets
events out of JSON text with `formats/json_text`, `scan` is the quick way for launches alone, `dispatch`, `columns` and
`memory` make tables of them, `header` reads what is next to them.

`formats/kineto` reads PyTorch profiler files and other Chrome traces: an object with `traceEvents`, a bare array of
events, or an array of such objects.

The window (`json_text/window.py`) moves over the text in blocks of 256 KiB. It follows white space, strings and nesting
exactly, with no recursion, and is used for what stands around the events and wherever quick decoding failed.

Chunks (`json_text/records.py`). The bulk is decoded by msgspec, a window at a time. Where to cut is a guess: at the
last `}`, comma, `{` in the window. The guess checks itself, since a chunk that was cut inside a string or an object
doesn't decode. Numbers and arguments stay text at this step.

The careful path. A chunk that doesn't decode goes in smaller and smaller pieces and at last event by event. An event
is mended (`json_text/repair.py`: raw control characters, bytes that are not UTF-8, NaN and infinity, bad escapes), then
read field by field; what still can't be read is counted as `unreadable_event`, and reading goes on at the next event
that is whole.

Most of a profile's events decode with their arguments in the same pass (`typed.py`), a chunk at a time; what is unusual
about one event sends its chunk the general way, with the same rows and losses.

The library in C++ (`native`), where it was built, decodes whole sections (below) of the usual categories into columns,
in threads where a file is large; a packed one is unpacked by another thread, some sections ahead. It takes only what is
written plainly; a section with anything unusual (a field of another type or twice, an odd escape, a number that doesn't
fit, damage) goes the ways above. Tables, order and losses are the same.

Sections (`sections.py`, `section_parts.py`, `workers.py`). An array is read in sections of 16 MiB, each as if nothing
stood before it. Of a file of 64 MiB or more (6 MiB packed) several processes decode sections, one for each core up to
four, or as many as `INFEROMETER_PROCESSES` says. Rows come back as Parquet files and are joined in the file's order. A
process guesses where its section begins; a guess that isn't where the section before ended is read again, so tables,
ids, losses and order are those of one process. A process that ends before its time is an error.

Dispatch and columns (`dispatch.py`, `columns.py`, with `arguments.py` and `ids.py`). Events are collected by category
and go to their table in batches of 16,384. Each category decodes only its own arguments, a batch in one call. A
kernel whose arguments name a collective has a further row in `collectives`, which shares kernel, device, stream, rank
and start with its launch; the launch scan doesn't look for it. A field of an unexpected type becomes null and is
counted. A category without a table is counted under its name.

Times (`numbers.py`) are read from the text as whole nanoseconds: files hold microseconds with up to three decimals or
more, and a float has no room for them (at 1.7·10¹⁵ µs its steps are 0.25 µs). Plain decimals go through NumPy as
integers, anything else through `Decimal`. Digits below a nanosecond round half to even.

B and E pairs (`pairs.py`) are held until the end of the file, sorted by time and matched as a stack on each thread.
What has no partner is counted.

Accounting. Every event of the tables asked for is counted as seen in its category. It then has a row or is counted
under a *dropped* name. So in each category events = events read + events dropped, and the tests hold it. Mended
events are counted too, but have rows.

What only the end tells. A file may hold several trace objects, and the rank stands behind or before the events. At
the end of each object its rank is filled into the launches of that object, and so is the process, if all host calls
of the object came from one.

The launch scan (`scan.py`, `cut.py`) applies when only `launches` are asked for and the source can be read twice. It
searches the text for `"kernel"`, `"gpu_mem…"` and `"mtia_ccp_events"`. A quoted category can't stand inside a JSON
string, whose quotes would be escaped, so none is overlooked. The literal text between two events is learned from the
first two, and the events around the hits are cut out by it and decoded; the rest of the file never is. Launches become
columns of plain lists (`launch_columns.py`), of those columns alone that the question names and the checks need.

A library in C++ does that quickest, where it was built (`native`): its threads read ranges of a plain file while Python
imports polars. Of a compressed file, one thread unpacks pieces of 8 MiB and others have the library read them. It
decodes the launches itself, and leaves all to Python where one of them is unusual.

Else, for large files, processes of their own do that (`launch_workers.py`): each reads every n-th range of 16 MiB, from
the first separator in it to the first one behind it, so ranges meet wherever they begin. The columns come back through
pipes, in the order of the file. How many processes depends on the file's size and on the cores that we may use; on one
core there is none, and a compressed file has one.

The scan gives up, and the file is read in full, whenever it can't be sure:

- the fields before the events are not a PyTorch profiler's, or the file holds several trace objects;
- the events don't keep to the separator that was learned, or a piece doesn't decode;
- a launch is no complete event (`X`), a number of it is beyond 64 bits, any event was dropped, or no launch was found;
- a launch that was decoded has its category in the spelling of an older PyTorch (`Kernel`), which isn't searched for;
- another process failed, or the compressed data is damaged.

Without a GPU (`cpu_launches.py`). Where PyTorch says that it saw no device, ops that compute are launches of the device
`cpu`; a question for launches alone then reads the file once more, for its ops.

Checks (`trace/checks.py`) look over the tables just read and count what can't be right or what an analysis must know:
work that overlaps on one stream (`trace/overlaps.py` tells branches of a graph and early starts from wrong ends),
work of 0 ns, work whose call is not in the file, ids shared by processes. They change no row.
"""

import re
from typing import TYPE_CHECKING

from inferometer.formats.base import Asked, Format
from inferometer.formats.onnxruntime import is_profile

if TYPE_CHECKING:
    from inferometer.formats.native.threads import DecoderThreads
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
    """JSON with a sign of trace events in its first 64 KiB, but ONNX Runtime's."""
    return not is_profile(head) and bool(_JSON_START.match(head)) and any(sign in head for sign in _SIGNS)


def _tell_rank(head: bytes) -> tuple[int | None, int | None]:
    """From `distributedInfo`, which PyTorch writes before the events."""
    job = _JOB.search(head)
    rank, world_size = (_field.search(job[1]) if job else None for _field in (_RANK, _WORLD_SIZE))
    return rank and int(rank[1]), world_size and int(world_size[1])


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.kineto.reader import read

    return read(source, out, tables)


def _start(source: "Source", tables: Asked) -> None:
    from inferometer.formats.kineto.ahead import start

    start(source, tables)


def _decoders(tables: Asked) -> "DecoderThreads | None":
    from inferometer.formats.kineto.ahead import decoders

    return decoders(tables)


def _tell_reader() -> str:
    from inferometer.formats.native.library import tell_reader

    return tell_reader()


FORMAT = Format(
    name="kineto",
    title="PyTorch profiler (Kineto) and other Chrome traces, .json or .json.gz",
    suffixes=(".json", ".json.gz"),
    sniff=_sniff,
    read=_read,
    start=_start,
    decoders=_decoders,
    tell_rank=_tell_rank,
    tables=frozenset(
        {"launches", "collectives", "calls", "ops", "frames", "spans", "counters", "memory_events", "kernel_counters"}
    ),
    recorded_by=(
        "with torch.profiler.profile(record_shapes=True, with_stack=True) as p: step(); "
        "then p.export_chrome_trace('trace.json.gz')"
    ),
    limits="Flow arrows, async and object events are counted, not kept. Spans and counters lose further arguments.",
    aliases=("chrome", "pytorch"),
    tell_reader=_tell_reader,
)
