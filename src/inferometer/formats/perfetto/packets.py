"""A file cut into batches of packets: only the top level is looked at here, the `protobuf` runtime does the rest.

So a file that ends in the middle still gives the packets before its end, and one that can't be decoded costs no other.
At most a batch is held, and the largest packet.
"""

import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from inferometer.formats.perfetto.schema import decode_packets
from inferometer.formats.varints import LONGEST, read_varint
from inferometer.trace.losses import Losses

CATEGORY = "packet"
_BLOCK_BYTES = 1 << 20
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEY = 0x0A
_LONGEST_HEAD = 2 * LONGEST
_COMPRESSED = ("compressed_packets", "zstd_compressed_packets")


class _Bytes(Protocol):
    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""


def read_batches(stream: _Bytes, losses: Losses, most_bytes: int | None) -> Iterator[list[Any]]:
    """The packets of a file, in its order; compressed ones unpacked.

    Args:
        stream: The file's bytes.
        losses: Counts what is cut off, too large, or can't be decoded.
        most_bytes: The largest packet, and the most that a compressed one may unpack to; None: any.
    """
    for data, start in _whole_packets(stream, losses, most_bytes):
        plain: list[Any] = []
        for packet in _decode(data, start, losses):
            kind = packet.WhichOneof("kind")
            if kind not in _COMPRESSED:
                plain.append(packet)
                continue
            yield plain
            plain = []
            yield from _unpack(packet, kind, losses, most_bytes)
        yield plain


def _whole_packets(stream: _Bytes, losses: Losses, most_bytes: int | None) -> Iterator[tuple[bytes, int]]:
    """Runs of bytes that hold whole packets, each with its place in the file."""
    data, start = b"", 0
    missing = _BLOCK_BYTES
    while block := stream.read(max(_BLOCK_BYTES, missing)):
        data += block
        cut = _Cut(data)
        yield data[: cut.end], start
        if cut.is_broken:
            _count_cut(losses, start + cut.end, data[cut.end :], broken=True)
            return
        start += cut.end
        data, missing = data[cut.end :], cut.missing
        if most_bytes is not None and len(data) + missing > most_bytes + _LONGEST_HEAD:
            losses.see(CATEGORY)
            losses.count("event_too_large", category=CATEGORY, example=f"byte {start:,}")
            start += len(data) + missing
            if not _skip(stream, missing):
                _count_cut(losses, start, b"", broken=False)
            data, missing = b"", 0
    if data:
        _count_cut(losses, start, data, broken=False)


class _Cut:
    """Where the last whole field of `data` ends; how many bytes the next one lacks at least; whether it is one."""

    def __init__(self, data: bytes) -> None:
        self.end = self.missing = 0
        self.is_broken = False
        at, size = 0, len(data)
        while at < size:
            if data[at] == _KEY and at + 1 < size and data[at + 1] < 0x80:
                after = at + 2 + data[at + 1]
            else:
                after = self._end_of_field(data, at)
            if self.is_broken or after > size:
                self.missing = after - size
                break
            at = after
        self.end = min(at, size)

    def _end_of_field(self, data: bytes, at: int) -> int:
        key, after = read_varint(data, at)
        if key is None:
            return self._unread(data, at)
        if key & 7 in (_FIXED64, _FIXED32):
            return after + (8 if key & 7 == _FIXED64 else 4)
        value, then = read_varint(data, after)
        if value is None:
            return self._unread(data, after)
        self.is_broken = key & 7 not in (_VARINT, _BYTES) or key >> 3 == 0
        return then + (value if key & 7 == _BYTES else 0)

    def _unread(self, data: bytes, at: int) -> int:
        """A number that goes on behind the end of `data`, or never ends."""
        self.is_broken = len(data) - at >= LONGEST
        return len(data) + 1


def _skip(stream: _Bytes, size: int) -> bool:
    """Pass over bytes; whether they are all there."""
    while size > 0:
        block = stream.read(min(size, _BLOCK_BYTES))
        if not block:
            return False
        size -= len(block)
    return True


def _count_cut(losses: Losses, at: int, rest: bytes, *, broken: bool) -> None:
    found = f"expected a packet, found {rest[:8].hex(' ')}" if broken else f"{len(rest):,} bytes of a packet are there"
    losses.count("truncated", example=f"byte {at:,}: {found}")


def _decode(data: bytes, start: int, losses: Losses) -> list[Any]:
    """The packets in `data`: all at once, or one by one where one of them can't be decoded."""
    try:
        return list(decode_packets(data))
    except ValueError:
        pass
    packets: list[Any] = []
    at = 0
    while at < len(data):
        key, after = read_varint(data, at)
        value, then = (0, after + 8) if key is not None and key & 7 == _FIXED64 else read_varint(data, after)
        end = then + (value or 0) if key is not None and key & 7 == _BYTES else then
        try:
            packets += decode_packets(data[at:end])
        except ValueError as error:
            losses.see(CATEGORY)
            losses.count("unreadable_packet", category=CATEGORY, example=f"byte {start + at:,}: {error}")
        at = max(end, at + 1)
    return packets


def _unpack(packet: Any, kind: str, losses: Losses, most_bytes: int | None) -> Iterator[list[Any]]:
    """The packets in a packet; one that can't be unpacked is counted."""
    if kind != _COMPRESSED[0]:
        losses.see(CATEGORY)
        losses.count("packed_packets", category=CATEGORY, example="compressed with zstd")
        return
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packet.compressed_packets, most_bytes or 0)
    except zlib.error as error:
        losses.see(CATEGORY)
        losses.count("unreadable_packet", category=CATEGORY, example=f"compressed packets: {error}")
        return
    if unpacker.unconsumed_tail:
        losses.see(CATEGORY)
        losses.count("event_too_large", category=CATEGORY, example="compressed packets")
    cut = _Cut(data)
    inner: list[Any] = []
    for each in _decode(data[: cut.end], 0, losses):
        if each.WhichOneof("kind") in _COMPRESSED:
            losses.see(CATEGORY)
            losses.count("packed_packets", category=CATEGORY, example="compressed twice")
        else:
            inner.append(each)
    yield inner
    if cut.end < len(data) or not unpacker.eof:
        losses.count("truncated", example="compressed packets end in the middle")
