"""The allocator's records (`profile_memory=True`): each is an event of it, and a sample of what it holds by then.

`[memory]` gives out or takes back one block; `[OutOfMemory]` says what it couldn't give. A device is named by its
type's number in PyTorch (`c10/core/DeviceType.h`), where CUDA, ROCm and XPU all are `gpu`, as their launches are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.kineto.arguments import MemoryArgs
from inferometer.trace.builder import TraceBuilder, Values

RECORDS: Final = frozenset({"[memory]", "[OutOfMemory]"})
_OOM: Final = "[OutOfMemory]"
_CPU: Final = 0
_KINDS: Final = {1: "gpu", 6: "gpu", 12: "gpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuse1"}


class MemoryRecords:
    """Adds rows to `memory_events` and `counters`. Places are counted by device, from 0 again in each trace object."""

    def __init__(self, out: TraceBuilder) -> None:
        self._out = out
        self.seen: Counter[str | None] = Counter()

    def start_over(self) -> None:
        """Another trace object begins, of other devices."""
        self.seen.clear()

    def add(
        self,
        names: Sequence[str],
        args: Sequence[MemoryArgs],
        start_ns: NDArray[np.int64],
        where: dict[str, Values],
    ) -> None:
        """One event and one sample for each record, in the file's order; `where` has processes and threads.

        The allocator of a CPU reserves nothing and writes 0, which is null here.
        """
        devices = [_device(a) for a in args]
        if self._out.wants("memory_events"):
            columns: dict[str, Values] = {
                "action": [_action(name, a.bytes) for name, a in zip(names, args, strict=True)],
                "device": devices,
                **where,
                "order": self._places(devices),
                "time_ns": start_ns,
                "address": [_signed(a.address) for a in args],
                "bytes": [None if a.bytes is None else abs(a.bytes) for a in args],
                "allocated_bytes": [a.total for a in args],
                "reserved_bytes": [a.reserved or None for a in args],
            }
            self._out.add("memory_events", len(args), columns)
        samples: dict[str, Values] = {
            "metric": "memory_allocated",
            "device": devices,
            "process": where["process"],
            "time_ns": start_ns,
            "value": [a.total for a in args],
            "unit": "bytes",
        }
        self._out.add("counters", len(args), samples)

    def _places(self, devices: Sequence[str | None]) -> list[int]:
        """The next place of each record's device."""
        places = []
        for device in devices:
            places.append(self.seen[device])
            self.seen[device] += 1
        return places


def _action(name: str, size: int | None) -> str:
    if name == _OOM:
        return "oom"
    if size is None:
        return "sample"
    return "free" if size < 0 else "alloc"


def _device(args: MemoryArgs) -> str | None:
    """`gpu:0`, `cpu`; a type that has no name here by its number; None without a type."""
    if args.device_type is None:
        return None
    if args.device_type == _CPU:
        return "cpu"
    kind = _KINDS.get(args.device_type, f"device type {args.device_type}")
    return kind if args.device is None or args.device < 0 else f"{kind}:{args.device}"


def _signed(address: int | None) -> int | None:
    """Addresses from 2^63 on are negative; what is no address of 64 bits is none."""
    if address is None or not 0 <= address < 2**64:
        return None
    return address - 2**64 if address >= 2**63 else address
