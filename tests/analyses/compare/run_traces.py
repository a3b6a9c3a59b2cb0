"""Runs made by hand for tests of changes: kernels of a layer one after the other, and functions timed by cycle."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from tests.traces import trace_of

from inferometer.analyses.compare.activity.sources import activity
from inferometer.analyses.compare.changes import Changes, find_changes
from inferometer.analyses.compare.contributions import Contribution
from inferometer.trace.trace import Trace

T = TypeVar("T")
Kernels = Sequence[tuple[str, int]]
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNT"
LAYER: Kernels = [
    ("qkv_kernel", 9_000),
    ("flash_kernel", 7_000),
    (GEMM, 20_000),
    ("silu", 3_000),
    ("mul_kernel", 2_000),
]
HEAD: Kernels = [("softmax_kernel", 5_000)]


def kernel_run(
    layer: Kernels = LAYER, head: Kernels = HEAD, *, steps: int = 10, layers: int = 4, gap_ns: int = 1_000,
    noise: float = 0.01, seed: int = 0, marked: bool = True, **place: Any,
) -> Trace:  # fmt: skip
    """Steps of `layers` layers and a head on one stream, each step a `ProfilerStep` when `marked`.

    Each kernel is called for as it begins, `gap_ns` after the one before.
    """
    rows: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    owner: dict[str, Any] = {key: place[key] for key in ("process", "rank") if key in place}
    rng, now = np.random.default_rng(seed), 0
    for step in range(steps):
        begin = now
        for kernel, dur_ns in [*list(layer) * layers, *head]:
            took = max(round(dur_ns * (1 + noise * rng.standard_normal())), 1)
            called = {"start_ns": now + gap_ns, "correlation_id": len(rows), **owner}
            calls.append({"api": "cudaLaunchKernel", "dur_ns": 1, **called})
            rows.append({"kernel": kernel, "dur_ns": took, **called, **place})
            now += took + gap_ns
        spans.append({"span": f"ProfilerStep#{step}", "start_ns": begin, "dur_ns": now - begin, **owner})
    return trace_of(rows, calls=calls, spans=spans if marked else [])


def timed_run(
    functions: Mapping[str, tuple[str, int, int]], *, cycles: int = 10, cycle_ns: int = 1_000_000, noise: float = 0.01,
    seed: int = 0, process: int = 1,
) -> Trace:  # fmt: skip
    """`functions`: name to (device, calls per cycle, ns per call). Cycles follow each other without a gap."""
    rows: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    rng, start = np.random.default_rng(seed), 0
    for cycle in range(1, cycles + 1):
        length = round(cycle_ns * (1 + noise * rng.standard_normal()))
        of = {"cycle": cycle, "process": process, "anchor": "run_batch", "cycle_dur_ns": length}
        for name, (device, calls, each_ns) in functions.items():
            took = round(calls * each_ns * (1 + noise * rng.standard_normal()))
            rows.append({"function": name, "device": device, "dur_ns": took, "calls": calls, **of})
        steps.append({"step": cycle, "process": process, "start_ns": start, "dur_ns": length, "source": "recorded"})
        start += length
    return trace_of(function_times=rows, steps=steps)


def changes(base: Trace, candidate: Trace) -> Changes:
    return find_changes(activity(base), activity(candidate))


def line(found: Changes, name: str) -> Contribution:
    return next(one for one in found.contributions if one.name == name)


def kinds(found: Changes) -> dict[str, str]:
    """The lines that are not the same."""
    return {one.name: one.kind for one in found.changed}


def adds_up(found: Changes) -> bool:
    """Whether lines and what is unexplained are the change of the step, and only rounding is unexplained."""
    added = [one for one in found.contributions if one.added]
    whole = sum(one.delta_ns for one in added) + found.unexplained_ns
    steps = (
        sum(one.base_ns for one in added) - found.base_step_ns,
        sum(o.candidate_ns for o in added) - found.candidate_step_ns,
    )
    return whole == found.step_delta_ns and max(map(abs, steps)) <= len(added)


def some(value: T | None) -> T:
    """`value`, which the test knows to be there."""
    assert value is not None
    return value
