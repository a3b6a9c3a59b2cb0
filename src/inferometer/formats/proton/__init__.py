"""Triton's profiler Proton: a tree of scopes with the device time of the kernels in each, `.hatchet`.

Source: what Proton of Triton 3.6 wrote on an H200 in 2026 (`samples/h200/proton_*.hatchet`), and Triton's
`third_party/proton` (README, `csrc/lib/Data`). Fills `totals` (the sum of each kernel by device), `call_paths` (scopes,
Python frames, kernels) and `path_totals` (the device time of each node without its children: Proton's values are
exclusive). It holds sums: no single launches, no order, no host times. Leaves out, and counts, metrics that aren't
times (flops and bytes that the program reported, cycles, samples).

Its other form, `proton.start(data="tracing")`, is a Chrome trace: the format `kineto` reads it.
"""

import re
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_START = re.compile(rb'[\s\xef\xbb\xbf]*\[\s*\{\s*"(?:children|frame|metrics)"\s*:')


def _sniff(head: bytes) -> bool:
    """A list that begins with a node; only nodes have all three keys."""
    return _START.match(head) is not None and all(key in head for key in (b'"frame"', b'"metrics"', b'"children"'))


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.proton.reader import read

    return read(source, out)


FORMAT = Format(
    name="proton",
    title="Triton's profiler Proton: a tree of scopes, .hatchet",
    suffixes=(".hatchet",),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"totals", "call_paths", "path_totals"}),
    limits="Holds sums by call path: no single launches, no order, no host times. Metrics that aren't times (flops, "
    "bytes, cycles, samples) are counted, not kept.",
    aliases=("hatchet", "triton-proton"),
    recorded_by="proton -n app app.py, or proton.start('app', hook='triton') … proton.finalize()",
)
