"""PyTorch's execution traces: what `torch.profiler.ExecutionTraceObserver` writes, `.json`.

Source: files of PyTorch 2.13 (schema 1.1.1-chakra.0.0.4), and what is public of older ones, whose nodes have flat
fields. Fills `op_nodes`: each op with what it was called with and what it gave, whom it was called by, and the id by
which a profile of the same run names it. It has no times, so it fills nothing that has. Modules: `nodes` is how a node
is decoded, `arguments` what becomes of its arguments, `storages` where its tensors lie, `reader` reads the file, `join`
gives a profile of the same run what it lacks. Left out: ids of tensors, their places within storages, their ranges.
"""

import re
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"schema"\s*:\s*"')
_SIGNS = (b'"ctrl_deps"', b'"rf_id"', b'"start_ts"')


def _sniff(head: bytes) -> bool:
    """An object with a schema and nodes: its nodes have keys that nobody else writes."""
    return _START.match(head) is not None and b'"nodes"' in head and any(sign in head for sign in _SIGNS)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.execution_trace.reader import read

    return read(source, out)


FORMAT = Format(
    name="execution-trace",
    title="PyTorch's execution traces: ops with their arguments, without times, .json",
    suffixes=(".json", ".json.gz"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"op_nodes"}),
    limits="Has no times and no device work. Ids of tensors, and their places within storages, are not read.",
    aliases=("et", "chakra"),
    recorded_by="et = torch.profiler.ExecutionTraceObserver().register_callback('et.json'); "
    "with torch.profiler.profile(execution_trace_observer=et) as p: step()",
)
