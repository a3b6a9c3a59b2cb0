"""JAX and XLA: `*.xplane.pb`, as `jax.profiler` and TensorBoard's profile plugin write it, from GPUs and TPUs.

Source: openxla/xla, `xla/tsl/profiler/protobuf/xplane.proto` and `utils/xplane_schema.cc`, read November 2026;
decoded by the `protobuf` runtime (extra `jax`) with a schema of our own (`schema.py`). A file is an XSpace of planes,
a plane of lines, a line of events; events and their stats are named by tables of the plane.

`space.py` cuts the file into planes, which are decoded one after the other, those of devices first. `lines.py` makes
columns of events, in whole ns; `plane.py` follows names and references. `device.py` reads launches, from grounded
lines alone, `host.py` calls, Python's functions, ranges and steps, `counters.py` samples. `instructions.py` ties
launches to HLO instructions, programs and lines of source, and keeps apart what XLA models of their work. `facts.py`
reads the rest of outlines; `folder.py` knows the folder that a recording is. Descriptions of compiled programs are
never decoded.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format
from inferometer.formats.varints import read_varint
from inferometer.formats.xplane.folder import BESIDE, SUFFIX, find_profile

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_NAMES = (b"/host:", b"/device:", b"#Chip", b"Task Environment")
_PLANE, _ID, _NAME = b"\x0a", 0x08, 0x12  # keys of fields
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def _sniff(head: bytes) -> bool:
    """A plane first, which begins with its number or its name: of Perfetto's traces the first byte is the same.

    Also what a text tool made of such a file, so that the reader can say so.
    """
    if not head.startswith(_PLANE):
        return False
    at = _after_varint(head, 1)
    if at < len(head) and head[at] == _ID:
        at = _after_varint(head, at + 1)
    is_whole = at < len(head) and head[at] == _NAME and head[at + 2 : at + 32].startswith(_NAMES)
    return is_whole or (_REPLACEMENT in head and any(name in head for name in _NAMES[:2]))


def _after_varint(head: bytes, at: int) -> int:
    number, end = read_varint(head, at)
    return len(head) if number is None else end


def _sniff_path(path: Path) -> bool:
    """By the name, for a file whose planes are named otherwise."""
    return path.name.endswith(SUFFIX) and path.is_file()


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.xplane.reader import read

    return read(source, out)


FORMAT = Format(
    name="xplane",
    title="JAX and XLA on GPUs and TPUs, .xplane.pb, and the folder that jax.profiler writes; needs the extra jax",
    suffixes=(SUFFIX,),
    sniff=_sniff,
    sniff_path=_sniff_path,
    find_inside=find_profile,
    beside=BESIDE,
    read=_read,
    tables=frozenset({"launches", "calls", "ops", "frames", "spans", "counters", "steps", "hlo_ops"}),
    recorded_by="with jax.profiler.trace('profile'): step(); then inferometer summary profile",
    limits="Lines that viewers derive, aggregates and compiled programs are not read; flows between threads are lost.",
    aliases=("jax", "xla"),
)
