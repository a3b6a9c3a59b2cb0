"""What an adapter reaches at most: bytes that its memory moves a second, and the time of a launch that does nothing.

A kernel's bytes over this rate is the least time that it could take here; a kernel near the time of an empty launch is
bound by launches, whatever it computes. Both are measured, by the clock of the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.engines.webgpu.program import Amount, Binding, Buffer, Dispatch, Pass, Pipeline, Program
from inferometer.engines.webgpu.run.executor import Executor
from inferometer.units import format_bytes

MOVED_BYTES = 64 * 2**20
"""More than the caches of most devices: read in a pass, or read and written."""
_SMALLEST = 2**20
_REPEATS, _EMPTY_REPEATS = 3, 64
_GRIDS = (512, 4096)  # fewer groups of longer walks suit a CPU, more a GPU
_THREADS = 256
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class AdapterRates:
    """As measured.

    Attributes:
        bytes_per_s: The best of a copy (bytes read and written) and a sum (read), each on several grids; medians.
        how: Which of them it was.
        empty_pass_ns: A pass of one thread that copies 16 bytes; one in ten takes less, so what disturbs isn't in it.
    """

    bytes_per_s: float
    how: str
    empty_pass_ns: float


def measure_rates(executor: Executor) -> AdapterRates | None:
    """Measure both on an executor that has nothing else loaded; it can load a model after it. None: no timestamps."""
    adapter = executor.adapter
    if "timestamp-query" not in adapter.features:
        return None
    size = min(adapter.most_binding_bytes, adapter.most_buffer_bytes, MOVED_BYTES) // _SMALLEST * _SMALLEST
    program = _program(size, min(_THREADS, adapter.most_workgroup_threads))
    executor.load(program, {}, lambda what: None)
    each = _durations(executor, Pass(("prefill",), 1, 0), _REPEATS)
    empty = _durations(executor, Pass(("decode",), 1, 0), _EMPTY_REPEATS)
    rates = {
        i: (2 if dispatch.op == "copy" else 1) * size * 1e9 / float(np.median(times))
        for i, (dispatch, times) in enumerate(zip(program.phases["prefill"], each, strict=True))
        if times
    }
    if not rates or not empty[0]:
        return None
    best = max(rates, key=lambda i: rates[i])
    done = "copying" if program.phases["prefill"][best].op == "copy" else "reading"
    return AdapterRates(rates[best], f"{done} {format_bytes(size)}", float(np.quantile(empty[0], _LEAST_SHARE)))


def _durations(executor: Executor, one: Pass, repeats: int) -> Sequence[Sequence[int]]:
    """Of each dispatch, its times in ns. The first pass, which finds nothing in caches and tables, isn't counted."""
    submission = executor.submit((one,) * (repeats + 1), "timestamps")
    times = list(zip(submission.begin_ns, submission.end_ns, strict=True))
    width = len(times) // (repeats + 1)
    return [
        [end - begin for begin, end in times[width + i :: width] if begin is not None and end is not None]
        for i in range(width)
    ]


def _program(size: int, threads: int) -> Program:
    def dispatch(pipeline: int, moved: int, groups: int) -> Dispatch:
        op = pipelines[pipeline].kernel
        bindings = (Binding("from", 0, moved), Binding("to", 0, max(moved, 16)))
        return Dispatch(op=op, pipeline=pipeline, bindings=bindings, grid=(groups, 1, 1), flops=Amount(),
                        bytes_read=Amount(fixed=moved), bytes_written=Amount(fixed=moved))  # fmt: skip

    constants = {"THREADS": float(threads)}
    pipelines = (
        Pipeline("copy", {**constants, "WORDS": size // 16}),
        Pipeline("read_sum", {**constants, "WORDS": size // 16}),
        Pipeline("copy", {"THREADS": 1.0, "WORDS": 1}),
    )
    return Program(
        name="rates",
        kernel_path="none",
        capacity=1,
        most_rows=1,
        vocabulary=1,
        buffers=(
            *(Buffer(name, size, "activations", size) for name in ("from", "to")),
            *(Buffer(name, 256, "state", 0) for name in ("state", "tokens")),
        ),
        pipelines=pipelines,
        phases={
            "prefill": tuple(
                dispatch(pipeline, size, groups)
                for groups in _GRIDS
                if groups * threads * 16 <= size
                for pipeline in (0, 1)
            ),
            "decode": (dispatch(2, 16, 1),),
            "head": (),
        },
    )
