"""What TensorRT's `trtexec` exports: times of layers, times of queries, and what layers are made of; three JSON files.

Source: TensorRT's `samples/common/sampleReporting.cpp`, as its releases 8 to 10 write; no file of a device was seen.
Fills `totals` of --exportProfile (a row per layer: sum, mean and median over the iterations), `steps` and `tests` of
--exportTimes (a row per query; latency and its parts over all queries), and `selections` of --exportLayerInfo (the
tactic of each layer). Files of one run may follow each other in one, as `cat` makes it: layers then have their types
as roles. Numbers have six digits, as streams print them, and names aren't escaped: quotes are mended.
Leaves out: formats and shapes of tensors, and starts of the parts of a query, which six digits blur.

`fields` reads numbers, `layers` and `queries` take the files apart, `reader` fills the tables.
"""

import re
from typing import TYPE_CHECKING, Final

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_SIGNS: Final = (
    re.compile(rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"count"\s*:\s*\d+\s*\}'),
    re.compile(rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"start(?:Enq|H2d|In|Compute)Ms"\s*:'),
    re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"Layers"\s*:\s*\[\s*(?:"|\{\s*"Name"\s*:)'),
)


def _sniff(head: bytes) -> bool:
    """The first object of a list of layers or queries, or the first layer of an engine."""
    return any(sign.match(head) for sign in _SIGNS)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.tensorrt.reader import read

    return read(source, out)


FORMAT = Format(
    name="tensorrt",
    title="trtexec of TensorRT: --exportProfile, --exportTimes and --exportLayerInfo, .json",
    suffixes=(".json",),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"totals", "steps", "tests", "selections"}),
    limits="A profile has sums of layers, no launches and no spread. Layers are slower while they are profiled: they "
    "add up to more than a query takes.",
    aliases=("trtexec", "trt"),
    recorded_by="trtexec --loadEngine=model.engine --dumpProfile --separateProfileRun --profilingVerbosity=detailed "
    "--exportProfile=profile.json --exportTimes=times.json --exportLayerInfo=layers.json",
)
