"""Writes a `.xplane.pb` of a JAX program on GPUs or TPUs that is synthetic, and exactly known.

    make_xplane.py --out cuda.xplane.pb                        an NVIDIA GPU, three steps
    make_xplane.py --kind rocm2025 --devices 8 --out amd.xplane.pb
    make_xplane.py --kind tpu --unix --out tpu.xplane.pb       lines with Unix times, flops and bytes as XLA models them
    make_xplane.py --steps 100000 --out big.xplane.pb          about 1,500,000 events

Bytes are encoded here, by the wire format alone, so that a reader's schema has something to be held against. Every file
has what readers trip over: texts by reference, lines that viewers derive, aggregates without a time, durations that are
not whole nanoseconds, planes with equal ids. The truth is printed as JSON. Times are modelled, not measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

Kind = Literal["cuda", "rocm2025", "rocm2026", "tpu"]
Stat = tuple[str, "int | float | str | bytes | Ref"]

BEGAN_NS: Final = 1_795_670_071_216_860_235  # when the profile began, Unix ns
_STEP_PS, _KERNEL_PS, _FINE_PS = 1_000_000_000, 100_000_000, 400  # a step, from kernel to kernel, beyond a whole ns
_LINE_NS, _CALL_BEFORE_PS, _CALL_PS = 5_000, 20_000_000, 7_000_000
_PROCESS, _THREAD, _PROGRAM = 4_321, 77, 15
_MODULE, _SOURCE = "jit_step", "/home/u/model.py:42"
_KERNELS: Final = (  # name of the kernel, of the instruction, flops and bytes as a TPU's compiler models them
    ("gemm_fusion_dot_general_2", "gemm_fusion_dot_general.2", 2_000_000, 300_000),
    ("loop_add_fusion", "loop_add_fusion", 4_000, 48_000),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-reduce.1", 0, 16_000),
    ("input_reduce_fusion_1", "input_reduce_fusion.1", 8_000, 32_000),
)
_DETAILS: Final = {  # registers, shared bytes, and the text with both
    "cuda": (32, 1_536, "regs:32 static_shared:512 dynamic_shared:1024 grid:{n},2,1 block:128,1,1 occ_pct:75"),
    "rocm2025": (None, 2_112, " grid:{n},2,1 block:128,1,1 private_mem:0 group_mem:2112 occ_pct:0"),
    "rocm2026": (48, 1_536, "regs:48 static_shared:512 dynamic_shared:1024 private_mem:16 grid:{n},2,1 block:128,1,1"),
}


@dataclass(frozen=True)
class Ref:
    """A text that is stored as the name of a stat, and referred to."""

    text: str


@dataclass(frozen=True)
class Options:
    """`unix`: lines have Unix times, as a TPU's may. `derived`: a viewer added its lines."""

    kind: Kind = "cuda"
    steps: int = 3
    devices: int = 1
    unix: bool = False
    derived: bool = True


@dataclass(frozen=True)
class Launch:
    """What a reader must find of a launch."""

    kernel: str
    device: str
    start_ns: int
    dur_ns: int
    dur_ps: int
    correlation_id: int | None
    op: str
    module: str
    grid: tuple[int, int, int] | None
    registers: int | None
    shared_bytes: int | None


@dataclass
class Truth:
    """What the file holds. `derived` and `aggregates` are events that have no row."""

    launches: list[Launch] = field(default_factory=list)
    steps: int = 0
    calls: int = 0
    frames: int = 0
    samples: int = 0
    derived: int = 0
    aggregates: int = 0


class Plane:
    """Encodes one plane: names get numbers as they come."""

    def __init__(self, name: str, stats: Iterable[Stat] = ()) -> None:
        self._name = name
        self._events: dict[tuple[str, str], tuple[int, Sequence[Stat]]] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []
        self._own = [self._stat(6, each) for each in stats]

    def line(self, number: int, name: str, timestamp_ns: int, events: Iterable[bytes]) -> None:
        """Add a line."""
        head = whole(1, number) + text(2, name) + whole(3, timestamp_ns)
        self._lines.append(block(3, head + b"".join(block(4, event) for event in events)))

    def event(
        self,
        name: str,
        offset_ps: int | None,
        dur_ps: int,
        stats: Iterable[Stat] = (),
        *,
        occurrences: int = 0,
        display: str = "",
        about: Sequence[Stat] = (),
    ) -> bytes:
        """An event; `about` and `display` are of its description."""
        number, _ = self._events.setdefault((name, display), (len(self._events) + 1, about))
        when = whole(5, occurrences) if offset_ps is None else whole(2, offset_ps)
        return whole(1, number) + when + whole(3, dur_ps) + b"".join(self._stat(4, each) for each in stats)

    def encode(self) -> bytes:
        """The plane as a field of an XSpace. Its id is 0, as those of others are, and so not written."""
        events = b"".join(
            _entry(4, number, text(2, name) + text(4, display) + b"".join(self._stat(5, each) for each in about))
            for (name, display), (number, about) in self._events.items()
        )
        names = b"".join(_entry(5, number, text(2, name)) for name, number in self._stats.items())
        return block(1, text(2, self._name) + b"".join(self._lines) + events + names + b"".join(self._own))

    def _number(self, name: str) -> int:
        return self._stats.setdefault(name, len(self._stats) + 1)

    def _stat(self, number: int, stat: Stat) -> bytes:
        name, value = stat
        head = whole(1, self._number(name))
        if isinstance(value, Ref):
            return block(number, head + whole(7, self._number(value.text)))
        if isinstance(value, bytes):
            return block(number, head + block(6, value))
        return block(number, head + (text(5, value) if isinstance(value, str) else whole(3, int(value))))


def write_xplane(options: Options) -> tuple[bytes, Truth]:
    """The file's bytes, and what a reader must find."""
    truth = Truth(steps=options.steps)
    planes = [Plane("/host:metadata", [("jax_version", "0.11.2"), ("process_id", _PROCESS)])]
    planes[0].event(f"{_MODULE}({_PROGRAM})", 0, 0, about=[("Hlo Proto", b"\x0a\x04\xff\xfe\x00\x01")])
    planes += [_device(options, number, truth) for number in range(options.devices)]
    planes.append(_host(options, truth))
    planes.append(
        Plane("Task Environment", [("profile_start_time", BEGAN_NS), ("profile_stop_time", BEGAN_NS + 10**9)])
    )
    return b"".join(plane.encode() for plane in planes) + text(4, "machine"), truth


def _device(options: Options, number: int, truth: Truth) -> Plane:
    is_tpu = options.kind == "tpu"
    plane = Plane(
        f"/device:{'TPU' if is_tpu else 'GPU'}:{number}",
        [("core_count", 132), ("memory_size", 10**11), ("compute_cap_major", 9), ("compute_cap_minor", 0)],
    )
    launches = [_launch(options, number, at) for at in range(options.steps * len(_KERNELS))]
    truth.launches += launches
    at_ns = _LINE_NS + (BEGAN_NS if options.unix else 0)
    events = [
        _tpu_event(plane, at) if is_tpu else _gpu_event(plane, options, at, launch)
        for at, launch in enumerate(launches)
    ]
    plane.line(
        14,
        "XLA Ops" if is_tpu else "Stream #14(Kernel)",
        at_ns,
        [*events, plane.event("fusion", None, 9, occurrences=7)],
    )
    truth.aggregates += 1
    steps = [plane.event(f"{_MODULE}({_PROGRAM})", step * _STEP_PS, _STEP_PS // 2) for step in range(options.steps)]
    if is_tpu:
        plane.line(15, "XLA Modules", at_ns, steps)
        plane.line(
            16,
            "Steps",
            at_ns,
            [plane.event(str(step), step * _STEP_PS, _STEP_PS // 2) for step in range(options.steps)],
        )
    derived = ["Framework Ops", "Source code"] if is_tpu else ["XLA Ops", "XLA Modules", "Framework Ops", "Steps"]
    for i, name in enumerate(derived if options.derived else []):
        plane.line(20 + i, name, at_ns, steps)
        truth.derived += len(steps)
    return plane


def _launch(options: Options, device: int, at: int) -> Launch:
    kernel, op, _, _ = _KERNELS[at % len(_KERNELS)]
    is_tpu = options.kind == "tpu"
    dur_ps = 40_000_000 + 1_000 * at + _FINE_PS * (at % 2)
    registers, shared, _ = (None, None, "") if is_tpu else _DETAILS[options.kind]
    return Launch(
        kernel=op if is_tpu else kernel,
        device=f"{'tpu' if is_tpu else 'gpu'}:{device}",
        start_ns=_LINE_NS + _offset_ps(at) // 1_000,
        dur_ns=(dur_ps + 500) // 1_000,
        dur_ps=dur_ps,
        correlation_id=None if is_tpu else 1_000_000 * device + at + 1,
        op=op,
        module=_MODULE,
        grid=None if is_tpu else (at % 4 + 1, 2, 1),
        registers=registers,
        shared_bytes=shared,
    )


def _offset_ps(at: int) -> int:
    step, place = divmod(at, len(_KERNELS))
    return step * _STEP_PS + place * _KERNEL_PS + _FINE_PS * (at % 2)


def _gpu_event(plane: Plane, options: Options, at: int, launch: Launch) -> bytes:
    stats: list[Stat] = [
        ("correlation_id", launch.correlation_id or 0),
        ("kernel_details", Ref(_DETAILS[options.kind][2].format(n=at % 4 + 1))),
        ("tf_op", Ref("XlaModule:")),
        ("name", Ref("jit(step)/dot_general")),
        ("hlo_op", Ref(launch.op)),
        ("hlo_module", Ref(launch.module)),
        ("program_id", _PROGRAM),
        ("context_id", "$$1"),
    ]
    return plane.event(launch.kernel, _offset_ps(at), launch.dur_ps, stats)


def _tpu_event(plane: Plane, at: int) -> bytes:
    _, op, flops, accessed = _KERNELS[at % len(_KERNELS)]
    about: list[Stat] = [
        ("hlo_category", Ref("fusion")),
        ("tf_op", Ref("jit(step)/dot_general:")),
        ("source", Ref(_SOURCE)),
        ("flops", flops),
        ("bytes_accessed", accessed),
        ("memory_access_breakdown", b"\x0a\x02\x08\x01"),
    ]
    dur_ps = 40_000_000 + 1_000 * at + _FINE_PS * (at % 2)
    return plane.event(f"%{op} = bf16[8,128] fusion(...)", _offset_ps(at), dur_ps, display=op, about=about)


def _host(options: Options, truth: Truth) -> Plane:
    plane = Plane("/host:CPU", [("process_id", _PROCESS)])
    events = []
    for step in range(options.steps):
        begin = step * _STEP_PS
        events.append(plane.event("train", begin, _STEP_PS - 1_000, [("step_num", step), ("_r", 1)]))
        events.append(plane.event("$model.py:12 forward", begin + 1_000, _STEP_PS - 10_000))
        events.append(plane.event("PjitFunction(step)", begin + 2_000, _STEP_PS - 20_000))
        truth.frames += 1
    calls = [launch for launch in truth.launches if launch.correlation_id is not None]
    names = {
        "cuda": "cuLaunchKernel",
        "rocm2025": "hipModuleLaunchKernel",
        "rocm2026": "hipModuleLaunchKernel",
        "tpu": "",
    }
    for i, launch in enumerate(calls):
        api = launch.kernel if options.kind == "cuda" and i % 2 else names[options.kind]
        begin = launch.start_ns * 1_000 - _CALL_BEFORE_PS
        events.append(plane.event(api, max(begin, 0), _CALL_PS, [("correlation_id", launch.correlation_id or 0)]))
    truth.calls += len(calls)
    sample: list[Stat] = [
        ("allocator_name", Ref("GPU_0_bfc")),
        ("bytes_allocated", 1 << 20),
        ("peak_bytes_in_use", 1 << 21),
    ]
    events.append(plane.event("MemoryAllocation", 5_000, 0, sample))
    truth.samples += len(sample) - 1
    plane.line(_THREAD, "python", BEGAN_NS if options.unix else 0, events)
    return plane


def varint(value: int) -> bytes:
    """A whole number of 64 bits, negative ones as two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def whole(number: int, value: int) -> bytes:
    """A field with a number."""
    return varint(number << 3) + varint(value)


def block(number: int, value: bytes) -> bytes:
    """A field with bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def text(number: int, value: str) -> bytes:
    """A field with text; left out where it is empty."""
    return block(number, value.encode()) if value else b""


def _entry(number: int, key: int, value: bytes) -> bytes:
    return block(number, whole(1, key) + block(2, value))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, and print the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=get_args(Kind), default="cuda")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--unix", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    data, truth = write_xplane(Options(given.kind, given.steps, given.devices, given.unix))
    given.out.write_bytes(data)
    by_kernel: dict[str, int] = {}
    for launch in truth.launches:
        by_kernel[launch.kernel] = by_kernel.get(launch.kernel, 0) + launch.dur_ns
    counts = {name: value for name, value in asdict(truth).items() if name != "launches"}
    print(json.dumps({"launches": len(truth.launches), **counts, "kernel_ns": by_kernel}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
