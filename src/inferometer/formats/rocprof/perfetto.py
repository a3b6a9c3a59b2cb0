"""Perfetto traces, which rocprofv3 writes as `.pftrace`: known by their first packet, and not read.

Source: Perfetto's `trace.proto` and `trace_packet.proto`: a file is a row of packets in field 1. XLA's `.xplane.pb`
begins with the same byte, but its planes begin with an id (field 1) or a name (field 2).
"""

import re

from inferometer.formats.varints import read_varint

_CONTROL = re.compile(rb"[\x00-\x08]")  # none is in text
_PACKET = 0x0A  # field 1 of a Trace, with a length
_FIRST = frozenset({*range(3, 128)})  # fields of a TracePacket; 1 and 2 are also those of a plane
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BYTES = 5  # of a length


def is_perfetto(head: bytes) -> bool:
    """Whether a file begins with a packet of a Perfetto trace. Text may begin with the same byte, a line feed."""
    if head[:1] != bytes([_PACKET]) or not _CONTROL.search(head):
        return False
    length, at = read_varint(head, 1, longest=_MOST_BYTES)
    if length is None or length < 2:
        return False
    tag, _ = read_varint(head, at, longest=_MOST_BYTES)
    return tag is not None and tag >> 3 in _FIRST and tag & 7 in (_VARINT, _FIXED64, _BYTES, _FIXED32)
