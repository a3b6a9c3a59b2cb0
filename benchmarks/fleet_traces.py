"""Generated traces of a fleet, whose contents are known: deployments, versions, hot shapes, faults, broken files.

A trace is a Kineto file of decode steps. Each step calls the ops of its model, in order; each op launches one kernel,
whose time is that of the shape, times what the version does to it, times noise. What was written is counted here, apart
from what reads it: `Truth` sums the whole nanoseconds of every kernel by op and shape.

Planted: `sgl_kernel::rmsnorm` of 4,096 and 2,048, and products of matrices that take most of the time; version 0.10.0
of the engine slows attention of one model by 60 %; two traces are slower as a whole; ten files are broken.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isal import igzip

VERSIONS: Final = ("0.8.0", "0.9.0", "0.10.0", "0.11.0")
REGRESSED: Final = ("llama", "0.10.0")
SLOWED: Final = 1.6  # its attention
FAULTY: Final = 2.0  # all of a faulty trace
BROKEN: Final = 10
LABELS: Final = r"(?P<model>\w+)/vllm-(?P<version>[^/]+)/[^/]+$"
_NOISE: Final = 0.02
_BF16: Final = "c10::BFloat16"


@dataclass(frozen=True)
class Model:
    """Sizes of a model, and how many layers a trace of it shows."""

    name: str
    hidden: int
    heads: int
    layers: int


MODELS: Final = (Model("llama", 4096, 32, 8), Model("qwen", 2048, 16, 12), Model("gemma", 3072, 24, 6))
Call = tuple[str, list[list[int]], str, float]  # an op, its shapes, its kernel, the time in ns


@dataclass
class Truth:
    """What was written: time of kernels by op and shapes, faulty traces, broken files."""

    total_ns: Counter[tuple[str, str]] = field(default_factory=Counter)
    kernels_ns: Counter[str] = field(default_factory=Counter)
    faulty: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    bytes: int = 0
    unpacked_bytes: int = 0


def write_fleet(folder: Path, traces: int, *, steps: int, seed: int = 1) -> Truth:
    """So many whole traces below `folder`, ten broken files beside them, and what they hold."""
    truth, draw = Truth(), random.Random(seed)
    for number in range(traces):
        model, version = MODELS[number % len(MODELS)], VERSIONS[number // len(MODELS) % len(VERSIONS)]
        path = folder / model.name / f"vllm-{version}" / f"trace{number:05}.json.gz"
        is_faulty = number in (traces // 3, traces // 2)
        if is_faulty:
            truth.faulty.append(str(path))
        _write(path, model, version, steps, draw, truth, FAULTY if is_faulty else 1.0)
    for number, data in zip(range(BROKEN), _broken(), strict=False):
        path = folder / "broken" / f"broken{number}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        truth.broken.append(str(path))
    return truth


def _broken() -> Iterator[bytes]:
    """Empty, cut off before anything, no JSON, JSON of something else, and noise; each another content."""
    for number in range(BROKEN):
        yield (
            b"" if number == 0 else
            gzip.compress(b"{" * 500)[:12 + number] if number < 3 else
            b"no trace " * number if number < 6 else
            json.dumps({"number": number}).encode() if number < 8 else
            random.Random(number).randbytes(2_000)
        )  # fmt: skip


def _calls(model: Model, version: str, batch: int) -> Iterator[Call]:
    """The ops of a step; times go with the sizes."""
    hidden, slowed = model.hidden, SLOWED if _is_regressed(model, version) else 1.0
    for _ in range(model.layers):
        norm = [[batch, hidden], [batch, hidden], [hidden], [], []]
        yield "sgl_kernel::rmsnorm", norm, f"rms_norm_kernel_{hidden}", 2_000 + batch * hidden / 40
        yield "aten::mm", [[batch, hidden], [hidden, 3 * hidden]], "gemm_qkv", 9_000 + hidden * 3 * hidden / 2_000
        attention = [[batch, model.heads, 128], [batch, 4096, model.heads, 128]]
        yield "vllm::unified_attention", attention, "attention_decode", (12_000 + 40 * batch * model.heads) * slowed
        yield "aten::mm", [[batch, hidden], [hidden, 4 * hidden]], "gemm_up", 9_000 + hidden * 4 * hidden / 2_000
        yield "aten::mm", [[batch, 4 * hidden], [4 * hidden, hidden]], "gemm_down", 9_000 + hidden * 4 * hidden / 2_000


def _is_regressed(model: Model, version: str) -> bool:
    return model.name == REGRESSED[0] and VERSIONS.index(version) >= VERSIONS.index(REGRESSED[1])


def _write(
    path: Path, model: Model, version: str, steps: int, draw: random.Random, truth: Truth, slower: float
) -> None:
    batch, now, number = 16, 1_000_000, 0  # ns
    events: list[str] = []
    own = draw.lognormvariate(0, _NOISE) * slower
    calls = [_Written(*call) for call in _calls(model, version, batch)]
    for _ in range(steps):
        begun, device = now, now + 20_000
        for call in calls:
            dur = round(call.usual_ns * own * draw.lognormvariate(0, _NOISE))
            number += 1
            device = max(device, now + 8_000)
            events.append(call.text(number, now, device, dur))
            call.total_ns += dur
            now, device = now + 9_000, device + dur + 1_000
        tokens = f"sq{batch}sk{batch * 1000}sqsq{batch}sqsk{batch * 1000}"
        mark = f"execute_0_context_0(sq0sk0sqsq0sqsk0)_generation_{batch}({tokens})"
        events.append(_event("user_annotation", mark, tid=1) % (begun / 1000, (now - begun) / 1000))
        now = max(now, device) + 5_000
    for call in calls:
        truth.total_ns[call.op, call.shapes] += call.total_ns
        truth.kernels_ns[call.kernel] += call.total_ns
    about = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "computeMajor": 9,
              "computeMinor": 0, "numSms": 132, "warpSize": 32}  # fmt: skip
    head = json.dumps({"schemaVersion": 1, "deviceProperties": [about], "record_shapes": 1})
    data = (head[:-1] + ', "traceEvents": [\n' + ",\n".join(events) + "\n]}\n").encode()
    packed = igzip.compress(data, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed)
    truth.bytes += len(packed)
    truth.unpacked_bytes += len(data)


class _Written:
    """A call of each step: its op on the host, the runtime's call in it, and the kernel, with its time so far."""

    def __init__(self, op: str, dims: list[list[int]], kernel: str, usual_ns: float) -> None:
        self.op, self.kernel, self.usual_ns = op, kernel, usual_ns
        self.shapes = json.dumps(dims)
        self.total_ns = 0
        arguments: dict[str, Any] = {
            "Input Dims": dims,
            "Input type": [_BF16 if each else "Scalar" for each in dims],
            "Concrete Inputs": [
                "" if each else ("1e-05" if i < len(dims) - 1 else "True") for i, each in enumerate(dims)
            ],
        }
        events = (
            _event("cpu_op", op, tid=1, numbered="External id", **arguments),
            _event("cuda_runtime", "cudaLaunchKernel", tid=1, numbered="correlation"),
            _event("kernel", kernel, pid=0, tid=7, numbered="correlation", device=0, stream=7),
        )
        self._text = ",\n".join(events)

    def text(self, number: int, now: int, device: int, dur: int) -> str:
        """The three events of call `number`; times in ns."""
        of_call, of_kernel = ((now + 2_000) / 1000, 3, number), (device / 1000, dur / 1000, number)
        return self._text % (now / 1000, 8, number, *of_call, *of_kernel)


def _event(cat: str, name: str, *, tid: int, pid: int = 100, numbered: str | None = None, **args: Any) -> str:
    """An event's JSON with places for its start, its duration and, in the argument `numbered`, a number."""
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": "%r", "dur": "%r", "args": args}
    if numbered:
        args[numbered] = "%d"
    return re.sub('"(%[rd])"', r"\1", json.dumps(event))
