"""A file cut into its planes: only the top level is looked at here, `schema.decode` does the rest, plane by plane.

So a file that ends in the middle still gives the planes before its end, and a plane that can't be decoded costs no
other. The file's bytes are held, and one plane decoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inferometer.errors import FormatError
from inferometer.formats.held import hold
from inferometer.formats.source import Source
from inferometer.formats.varints import read_varint
from inferometer.formats.xplane.schema import decode
from inferometer.trace.losses import Losses

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5  # wire types
_PLANE, _ERROR, _WARNING, _HOST = 1, 2, 3, 4  # fields of an XSpace
_COPY_AGAIN = "Copy the file again from where it was recorded, as binary."


@dataclass(frozen=True)
class RawPlane:
    """A plane as its bytes, and its outline: name, stats, and lines without events. `place` is for messages."""

    name: str
    outline: Any
    data: bytes
    place: str

    def decode(self) -> Any:
        """All of it.

        Raises:
            ValueError: It can't be decoded.
        """
        return decode("XPlane", self.data)


@dataclass
class Space:
    """The planes in the file's order, names of hosts, and what the profiler itself says went wrong."""

    planes: list[RawPlane] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def read_space(source: Source, losses: Losses) -> Space:
    """The planes of `source`; what is cut off or can't be decoded is counted.

    Raises:
        FormatError: There is no plane that can be read, or the file is larger than the limit.
    """
    held = hold(source)
    data = held.data
    if held.damage:
        losses.count("broken_compression", example=held.damage)
    space, failed = Space(), ""
    cut = _Cut()
    for number, start, length in _fields(data, cut):
        value = data[start : start + length]
        if number == _PLANE:
            failed = _take_plane(space, value, f"plane {len(space.planes)} at byte {start:,}", losses) or failed
        elif number == _HOST:
            space.hosts.append(text_of(value))
        elif number in (_ERROR, _WARNING):
            space.messages.append(text_of(value))
    if cut.where:
        losses.count("truncated", example=cut.where)
    if not space.planes:
        _refuse(source.name, data, failed or cut.where or "none")
    return space


def text_of(value: bytes) -> str:
    """Text that should be UTF-8, and may be anything."""
    return value.decode(errors="replace")


def _take_plane(space: Space, value: bytes, place: str, losses: Losses) -> str | None:
    """Add the plane; or count it, and say why it can't be decoded."""
    try:
        outline = decode("PlaneOutline", value)
    except ValueError as error:
        losses.count("unreadable_plane", example=f"{place}: {error}")
        return f"{place}: {error}"
    space.planes.append(RawPlane(text_of(outline.name), outline, value, place))
    return None


@dataclass
class _Cut:
    """Where the file ends in the middle, or stops making sense."""

    where: str = ""


def _fields(data: bytes, cut: _Cut) -> Iterator[tuple[int, int, int]]:
    """Number, start and length of each field of the top level that is there whole and has a length."""
    at = 0
    while at < len(data):
        begin = at
        key, at = read_varint(data, at)
        kind = None if key is None else key & 7
        if kind == _LENGTH:
            length, at = read_varint(data, at)
        elif kind == _VARINT:
            length, (_, at) = 0, read_varint(data, at)
        else:
            length = {_FIXED_64: 8, _FIXED_32: 4}.get(-1 if kind is None else kind)
        if key is None or length is None:
            cut.where = f"byte {begin:,}: expected a field of an XSpace, found {data[begin : begin + 8].hex(' ')}"
            return
        if at + length > len(data):
            cut.where = f"byte {begin:,}: {len(data) - at:,} of {length:,} bytes are there"
            return
        if kind == _LENGTH:
            yield key >> 3, at, length
        at += length


def _refuse(name: str, data: bytes, found: str) -> None:
    if _REPLACEMENT in data:
        raise FormatError(
            f"{name}: expected a binary XSpace, found bytes that a text tool replaced by U+FFFD: they are lost",
            hint=_COPY_AGAIN,
        )
    raise FormatError(f"{name}: expected planes of an XSpace, found {found}", hint=_COPY_AGAIN)
