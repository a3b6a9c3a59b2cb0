"""Snapshots of PyTorch's allocator: what `torch.cuda.memory._dump_snapshot` writes (`.pickle`), and the same as JSON.

Source: PyTorch's `torch/cuda/memory.py` and `torch/csrc/cuda/memory_snapshot.cpp` of 2026. A pickle is never loaded by
Python's `pickle`: `literals` is a machine of our own that knows numbers, texts, lists, tuples and dicts, and refuses
whatever names a class or calls anything. Fills `memory_blocks` (the state at the end), `memory_events` (the last ones,
as many as were asked for), `call_paths` (where each was allocated). Leaves out annotations and the allocator's
settings; NCCL and whoever calls cudaMalloc itself aren't in it.
"""

from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_KEY = b"segments"
_OTHERS = (b"device_traces", b"blocks", b"total_size")


def _sniff(head: bytes) -> bool:
    """A pickle, or an object of JSON, with the keys of a snapshot."""
    is_pickle = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and b"}" in head[2:16]
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"segments"' in head
    return (is_pickle or is_json) and _KEY in head and any(key in head for key in _OTHERS)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.torch_memory.reader import read

    return read(source, out)


FORMAT = Format(
    name="torch-memory",
    title="snapshots of PyTorch's allocator, .pickle (never unpickled) or .json",
    suffixes=(".pickle", ".json"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"memory_blocks", "memory_events", "call_paths"}),
    limits="Holds no device work. Annotations and the allocator's settings are not read. Memory that NCCL and others "
    "allocate by themselves isn't in such a file.",
    aliases=("memory-snapshot",),
    recorded_by="torch.cuda.memory._record_memory_history(max_entries=100000) …; "
    "torch.cuda.memory._dump_snapshot('snapshot.pickle')",
)
