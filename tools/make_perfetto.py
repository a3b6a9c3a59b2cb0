"""Writes a `.pftrace` of an AMD program that is synthetic, and exactly known, as Perfetto's SDK encodes it.

    make_perfetto.py --out run.pftrace                     three steps on one GPU
    make_perfetto.py --packed --unit-ns 1000 --out a.pftrace
    make_perfetto.py --steps 100000 --out big.pftrace      about 3,600,000 packets

Bytes are encoded here, by the wire format alone, so that a reader's schema has something to be held against. Categories
are rocprofv3's; its names of tracks and arguments are assumed, since none of its files was at hand. Every file has what
readers trip over: texts by number, two sequences that number them differently, a clock that counts from packet to
packet, records that aren't in order, work that overlaps on its track, a slice without an end, an end without a
beginning, lost packets. The truth is printed as JSON. Times are modelled, not measured.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.make_xplane import block, text, varint, whole

BEGAN_NS: Final = 64_000_000_000_000  # since the boot
UNIX_NS: Final = 1_795_670_071_216_860_000  # at that moment
_BOOTTIME, _REALTIME, _DELTA, _ABSOLUTE = 6, 1, 64, 65
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CLEARED, _NEEDS_STATE = 1, 2
_PROCESS, _THREAD, _LIBRARY_THREAD = 4_321, 77, 78
_AGENT, _QUEUE = 4, 2
_HOST_TRACK, _LIBRARY_TRACK, _DEVICE_TRACK, _COPY_TRACK, _COUNTER_TRACK = 101, 102, 103, 104, 105
_STEP_NS, _KERNEL_NS = 1_000_000, 100_000
_KERNELS: Final = ("gemm_kernel(float*, int)", "norm_kernel", "ncclDevKernel_Generic_1", "attention<__half, 128>")
_REGISTERS, _LDS, _COPIED_BYTES = 64, 2_048, 4_096
Value = int | str


@dataclass(frozen=True)
class Options:
    """`unit_ns`: of the clock that counts from packet to packet; `packed`: packets stand compressed in packets.

    `ids`: launches and calls have correlation ids; without, only flows tie them. `ops`: also PyTorch's categories.
    """

    steps: int = 3
    unit_ns: int = 1
    packed: bool = False
    ids: bool = True
    ops: bool = False


@dataclass(frozen=True)
class Launch:
    """What a reader must find of a launch."""

    kind: str
    kernel: str
    device: str
    queue: int | None
    start_ns: int
    dur_ns: int
    correlation_id: int


@dataclass
class Truth:
    """What the file holds, and what of it has no row."""

    launches: list[Launch] = field(default_factory=list)
    calls: int = 0
    spans: int = 0
    ops: int = 0
    frames: int = 0
    samples: int = 0
    unread: int = 0
    open_slices: int = 0
    orphans: int = 0
    needs_lost: int = 0
    another_end: int = 0


class Writer:
    """Encodes the packets of one writer: texts get numbers as they come, times count from the packet before."""

    def __init__(self, number: int, track: int, unit_ns: int) -> None:
        self._number, self._unit = number, unit_ns
        self._known: dict[tuple[int, str], int] = {}
        self._now = BEGAN_NS
        clocks = [(_BOOTTIME, BEGAN_NS, b""), (_REALTIME, UNIX_NS, b"")]
        own = [(_DELTA, whole(3, 1)), (_ABSOLUTE, b"")]
        clocks += [(clock, BEGAN_NS // unit_ns, flag + whole(4, unit_ns)) for clock, flag in own]
        snapshot = b"".join(block(1, whole(1, clock) + whole(2, time) + rest) for clock, time, rest in clocks)
        self.packets = [
            self._packet(whole(13, _CLEARED) + block(59, whole(58, _DELTA) + block(11, whole(11, track)))),
            self._packet(block(6, snapshot)),
        ]

    def event(self, kind: int, time_ns: int, body: bytes = b"", interned: bytes = b"", *, track: int = 0) -> None:
        """A track event at a time; on the sequence's own track where none is named."""
        time = time_ns // self._unit
        back = time * self._unit < self._now
        when = whole(8, time) + whole(58, _ABSOLUTE) if back else whole(8, time - self._now // self._unit)
        if not back:
            self._now = time * self._unit
        event = whole(9, kind) + (whole(11, track) if track else b"") + body
        data = block(12, interned) if interned else b""
        self.packets.append(self._packet(when + whole(13, _NEEDS_STATE) + block(11, event) + data))

    def slice(
        self,
        span: tuple[int, int],
        name: str,
        category: str,
        arguments: dict[str, Value],
        flow: int = 0,
        track: int = 0,
    ) -> None:
        """A slice, its end right after its beginning."""
        interned: list[bytes] = []
        body = whole(3, self._text(1, category, interned)) + whole(10, self._text(2, name, interned))
        for argument, value in arguments.items():
            given = text(6, value) if isinstance(value, str) else whole(3, value)
            body += block(4, whole(1, self._text(3, argument, interned)) + given)
        body += varint(47 << 3 | 1) + struct.pack("<Q", flow) if flow else b""
        begin, end = span
        self.event(_BEGIN if end > begin else _INSTANT, begin, body, b"".join(interned), track=track)
        if end > begin:
            self.event(_END, end, track=track)

    def lose(self) -> None:
        """Packets are lost here: what follows hangs on them until the sequence begins anew."""
        self.packets.append(self._packet(whole(42, 1)))

    def _text(self, kind: int, value: str, interned: list[bytes]) -> int:
        number = self._known.get((kind, value))
        if number is None:
            number = self._known[kind, value] = self._number + len(self._known) + 1
            interned.append(block(kind, whole(1, number) + text(2, value)))
        return number

    def _packet(self, body: bytes) -> bytes:
        return block(1, body + whole(10, self._number))


def write_perfetto(options: Options) -> tuple[bytes, Truth]:
    """The file's bytes, and what a reader must find."""
    truth = Truth()
    host, device = Writer(1, _HOST_TRACK, options.unit_ns), Writer(2, _DEVICE_TRACK, options.unit_ns)
    for step in range(options.steps):
        _host_side(options, host, step, truth)
        _device_side(options, device, step, truth)
    host.event(_BEGIN, BEGAN_NS + options.steps * _STEP_NS, text(22, "marker_api") + text(23, "never ends"))
    truth.open_slices += 1
    device.lose()
    device.slice((BEGAN_NS, BEGAN_NS + 1_000), "lost", "kernel_dispatch", {})
    truth.needs_lost += 2
    packets = [*_tracks(), *host.packets, *device.packets]
    if options.packed:
        packed = [block(50, zlib.compress(b"".join(packets[i : i + 20]))) for i in range(0, len(packets), 20)]
        packets = [block(1, each) for each in packed]
    return b"".join(packets), truth


def _tracks() -> Iterable[bytes]:
    process = whole(1, _PROCESS) + text(6, "python3")
    lines = [whole(1, 100) + block(3, process)]
    for track, thread in ((_HOST_TRACK, _THREAD), (_LIBRARY_TRACK, _LIBRARY_THREAD)):
        about = whole(1, _PROCESS) + whole(2, thread) + text(5, f"THREAD {thread}")
        lines.append(whole(1, track) + whole(5, 100) + block(4, about))
    names = {_DEVICE_TRACK: f"COMPUTE AGENT [{_AGENT}] QUEUE [{_QUEUE}] (GPU)", _COPY_TRACK: f"COPY AGENT [{_AGENT}]"}
    lines += [whole(1, track) + whole(5, 100) + text(2, name) for track, name in names.items()]
    lines.append(whole(1, _COUNTER_TRACK) + whole(5, 100) + text(2, "BYTES COPIED") + block(8, whole(3, 3)))
    yield block(1, block(89, whole(1, 7)))  # the trace's own number
    for line in lines:
        yield block(1, block(60, line) + whole(10, 1))


def _launches(options: Options, step: int) -> list[Launch]:
    """Four kernels, of which the third begins before the second has ended, and a copy."""
    begin, found = BEGAN_NS + step * _STEP_NS + 300_000, []
    for i, kernel in enumerate(_KERNELS):
        start = begin + i * _KERNEL_NS - (20_000 if i == 2 else 0)
        found.append(Launch("kernel", kernel, f"gpu:{_AGENT}", _QUEUE, start, 90_000 + 1_000 * i, 5 * step + i + 1))
    copy = begin + 5 * _KERNEL_NS
    return [
        *found,
        Launch("memcpy", "CopyHostToDevice", f"gpu:{_AGENT}", None, copy, 7_000 + 1_000 * step, 5 * step + 5),
    ]


def _host_side(options: Options, host: Writer, step: int, truth: Truth) -> None:
    begin = BEGAN_NS + step * _STEP_NS
    for i, launch in enumerate(_launches(options, step)):
        at = begin + 10_000 + 40_000 * i
        ids: dict[str, Value] = {"corr_id": launch.correlation_id} if options.ids else {}
        inner, outer = (at + 2_000, at + 9_000), (at, at + 20_000)
        host.slice(inner, "hsa_signal_store_screlease", "hsa_api", {}, track=_HOST_TRACK)  # inner records come first
        name = "hipLaunchKernel" if launch.kind == "kernel" else "hipMemcpyAsync"
        host.slice(outer, name, "hip_api", {"tid": _THREAD, **ids}, launch.correlation_id)
        truth.calls += 2
    host.slice((begin, begin + 900_000), f"step {step}", "marker_api", {})
    host.slice((begin + 500_000, begin + 500_000), "mark", "marker_api", {})
    host.slice((begin, begin + 4_000), "ncclAllReduce", "rccl_api", {}, track=_LIBRARY_TRACK)
    truth.spans += 3
    host.slice((begin + 1_000, begin + 2_000), "MEMORY_ALLOCATION_ALLOCATE", "memory_allocation", {"size": 64})
    truth.unread += 1
    host.event(_END, begin + 999_000, track=_LIBRARY_TRACK)
    truth.orphans += 1
    host.event(_COUNTER, begin, whole(30, 1_000 * step), track=_COUNTER_TRACK)
    truth.samples += 1
    if options.ops:
        host.slice((begin, begin + 600_000), "model.py(12): forward", "python_function", {"frame_id": step})
        host.slice((begin, begin + 500_000), "aten::mm", "cpu_op", {"external_id": step, "input_dims": "[[2, 3]]"})
        truth.frames += 1
        truth.ops += 1


def _device_side(options: Options, device: Writer, step: int, truth: Truth) -> None:
    launches = _launches(options, step)
    truth.launches += launches
    truth.another_end += 2  # of two that overlap, either is closed by the other's end
    for launch in launches:
        end = launch.start_ns + launch.dur_ns
        arguments: dict[str, Value] = {"begin_ns": launch.start_ns, "end_ns": end}
        if options.ids:
            arguments["corr_id"] = launch.correlation_id
        if launch.kind == "kernel":
            arguments |= {"agent": _AGENT, "queue": _QUEUE, "VGPR_Count": _REGISTERS, "group_segment_size": _LDS}
            arguments |= {"workgroup_size": 256, "grid_size": 25_600}
            device.slice((launch.start_ns, end), launch.kernel, "kernel_dispatch", arguments, launch.correlation_id)
        else:
            arguments |= {"bytes": _COPIED_BYTES}
            name = "MEMORY_COPY_HOST_TO_DEVICE"
            device.slice(
                (launch.start_ns, end), name, "memory_copy", arguments, launch.correlation_id, track=_COPY_TRACK
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, and print the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--unit-ns", type=int, choices=(1, 1_000), default=1)
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    data, truth = write_perfetto(Options(given.steps, given.unit_ns, given.packed, ops=given.ops))
    given.out.write_bytes(data)
    by_kernel: dict[str, int] = {}
    for launch in truth.launches:
        by_kernel[launch.kernel] = by_kernel.get(launch.kernel, 0) + launch.dur_ns
    counts = {name: value for name, value in asdict(truth).items() if name != "launches"}
    print(json.dumps({"launches": len(truth.launches), **counts, "kernel_ns": by_kernel}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
