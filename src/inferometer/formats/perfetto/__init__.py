"""Perfetto traces, `.pftrace`, `.perfetto-trace`: AMD's rocprofv3, our own export, and what else has track events.

Source: Perfetto's `trace.proto`, `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`,
`interned_data.proto`, `debug_annotation.proto`, `clock_snapshot.proto`, of version 59; its documentation on clocks.
Decoded by the `protobuf` runtime (extra `perfetto`) with a schema of our own (`schema.py`).

A file is a row of packets. `packets.py` cuts it into batches of them, also those that stand compressed in a packet;
`sequences.py` follows what a sequence of packets said before (interned texts, defaults), `clocks.py` what its times
mean, `tracks.py` where a track lies. `events.py` collects beginnings, ends, instants and samples, `slices.py` pairs the
former, `arguments.py` keeps annotations that tables have columns for, `rows.py` says by category which table a slice is
of. The file's bytes are never held, its events are, as columns: beginnings and ends need not stand in order.

Never seen: a file that rocprofv3 wrote. Its categories are those of its JSON, as its documentation has them; names of
its annotations and tracks are read in all forms that its other files use.
"""

import re
from typing import TYPE_CHECKING

from inferometer.formats.base import Format
from inferometer.formats.varints import read_varint

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_CONTROL = re.compile(rb"[\x00-\x08]")  # none is in text
_PACKET = 0x0A  # field 1 of a Trace, with a length
_LEAST_FIELD, _MOST_FIELD = 3, 1_000  # of a TracePacket; 1 and 2 are also those of XLA's planes
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BYTES = 5  # of a length


def _sniff(head: bytes) -> bool:
    """A packet first, which begins with a field of a packet. Text may begin with the same byte, a line feed."""
    if head[:1] != bytes([_PACKET]) or not _CONTROL.search(head):
        return False
    length, at = read_varint(head, 1, longest=_MOST_BYTES)
    if length is None or length < 2:
        return False
    tag, _ = read_varint(head, at, longest=_MOST_BYTES)
    if tag is None or tag & 7 not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
        return False
    return _LEAST_FIELD <= tag >> 3 <= _MOST_FIELD


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.perfetto.reader import read

    return read(source, out)


FORMAT = Format(
    name="perfetto",
    title="Perfetto traces, .pftrace: AMD's rocprofv3, our own export, any track events; needs the extra perfetto",
    suffixes=(".pftrace", ".pftrace.gz", ".perfetto-trace"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"launches", "calls", "ops", "frames", "spans", "counters"}),
    recorded_by="rocprofv3 --runtime-trace --output-format pftrace -- python app.py; rocpd and json hold more",
    limits=(
        "No file of rocprofv3 was seen. It writes grids and workgroups as products, which are left out. Slices of a "
        "track nest: device work that overlaps on one is told apart by its own times where the file has them. Other "
        "packets than track events (ftrace, GPU render stages, samples, states) and packets compressed with zstd are "
        "counted, not read; arguments that no table has a column for, and flows other than from call to launch, are "
        "lost."
    ),
    aliases=("pftrace",),
)
