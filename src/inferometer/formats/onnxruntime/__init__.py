"""ONNX Runtime's profile: a list of events of the session, its nodes and, on GPUs, their kernels, `.json`.

Source: what ONNX Runtime 1.32 wrote here on a CPU, its `core/common/profiler.cc`, and the events of GPU providers as
that describes them: no file of one was seen. Fills `ops` (a node that ran, with shapes), `launches` (what nodes of the
CPU provider compute, on the device `cpu`; kernels of other providers), `spans` (nodes by their names, the session's
phases), `steps` (a run of the model) and `calls`. Times are whole µs. A node that runs others (If, Loop) is no launch:
those others are. Names that the writer doesn't escape are mended. Leaves out: sizes of memory, thread statistics.

`events` gets events out of the text, `columns` makes rows of them, `reader` fills the tables.
"""

import re
from typing import TYPE_CHECKING, Final

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_START: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"cat"\s*:\s*"(?:Session|Node|Kernel|Api)"\s*,\s*"pid"\s*:', re.DOTALL
)


def is_profile(head: bytes) -> bool:
    """A list whose first event has one of ONNX Runtime's categories first: other Chrome traces begin otherwise."""
    return _START.match(head) is not None


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.onnxruntime.reader import read

    return read(source, out)


FORMAT = Format(
    name="onnxruntime",
    title="ONNX Runtime's profile, onnxruntime_profile_*.json",
    suffixes=(".json", ".json.gz"),
    sniff=is_profile,
    read=_read,
    tables=frozenset({"launches", "calls", "ops", "spans", "steps"}),
    limits="Times are whole microseconds. Nodes of other providers than the CPU's are ops without device work unless "
    "the file has their kernels. The profiler stops after a million events. Memory statistics are not read.",
    aliases=("ort", "onnx"),
    recorded_by="so = onnxruntime.SessionOptions(); so.enable_profiling = True; "
    "session = onnxruntime.InferenceSession('model.onnx', so); session.run(None, inputs); session.end_profiling()",
)
