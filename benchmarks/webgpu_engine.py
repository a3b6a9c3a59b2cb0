"""The WebGPU engine against itself: what its design gains, as ratios of one run on one adapter.

    python -m benchmarks.webgpu_engine --rounds 60 --json results.json

1. A decode step of 26 layers, hidden 256, four steps per submit: all dispatches in one compute pass, a pass each, and
   the profiled form; medians over rounds in turns, the interval where 95 % of medians of rounds drawn again lie. Bar:
   one
   pass is at least 1.3 times as fast as a pass a kernel.
2. Where the time of a dispatch in a single pass goes: recording by Python (bar: 6 µs), submitting, waiting for the
   driver, reading back.
3. What a position in the KV cache costs attention in one layer of Gemma 3 1B's form (4 heads on 1 kv head of 256),
   split over positions against one position after another; slopes of lines through medians. Bar: at most half of the
   serial form as a published engine has it. Beside it the least that the bytes of a position could take at the rate
   that the adapter's memory was measured at.

Weights are random. Needs wgpu and an adapter; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.machine import describe_machine
from benchmarks.record_overhead import interval

from inferometer.architectures.config import config_of
from inferometer.backends.wgsl.cache_formats import CACHE_F16
from inferometer.engines.webgpu.model_spec import Checkpoint
from inferometer.engines.webgpu.plan.kernel_path import KernelPath
from inferometer.engines.webgpu.plan.path_files import parse_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.program import Pass
from inferometer.engines.webgpu.run.adapter_rates import measure_rates
from inferometer.engines.webgpu.run.executor import TIMINGS, Executor, Timing
from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu
from inferometer.engines.webgpu.tune.tuned_file import tuned_choices
from inferometer.engines.webgpu.tune.tuner import tune
from inferometer.engines.webgpu.weights.config import read_spec
from inferometer.engines.webgpu.weights.seeded import RandomCheckpoint

_GEMMA: dict[str, Any] = {"model_type": "gemma3_text", "query_pre_attn_scalar": 256, "sliding_window": 512}
STEP_MODEL = {**_GEMMA, "vocab_size": 1024, "hidden_size": 256, "num_hidden_layers": 26, "num_attention_heads": 4,
              "num_key_value_heads": 1, "head_dim": 64, "intermediate_size": 1024}  # fmt: skip
ATTENTION_MODEL = {**_GEMMA, "vocab_size": 1024, "hidden_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
                   "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 256,
                   "sliding_window": None, "layer_types": ["full_attention"]}  # fmt: skip
SERIAL = """
name = "serial attention"
families = ["gemma3"]
base = "gemma3"
[kernels]
attention_decode = [{{ kernel = "attention_serial", constants = {{ THREADS = {threads} }} }}]
"""
SERIAL_THREADS = {"serial": 64, "serial, 8 threads": 8}
"""As the seed has it, and as it suits a CPU, where a barrier costs the more the more threads there are."""
POSITIONS = (63, 127, 255, 511, 767, 1023, 1535, 2047)
BATCH, POSITION = 4, 16
PARTS = ("record_ns", "submit_ns", "wait_ns", "read_ns")
"""Of a submit, one after the other: what Python records, what the driver takes over, the wait for it, reading back."""
_UNCOUNTED = 3  # rounds in which what is made once is made
_SEED = 14


def open_random(config: dict[str, Any], name: str) -> Checkpoint:
    """A model of this configuration with weights from a seed."""
    return RandomCheckpoint(read_spec(config_of(dict(config), where=name, name=name)), dict(config), 0)


def measure_forms(executor: Executor, rounds: int, tuning: Path | None, hidden: int) -> dict[str, Any]:
    """Each form's times of a decode step, and of recording a dispatch: a submit of each in turns, again and again."""
    config = {**STEP_MODEL, "hidden_size": hidden, "intermediate_size": 4 * hidden}
    checkpoint = open_random(config, f"26 layers, hidden {hidden}")
    tuned = None if tuning is None else tuned_choices(executor.adapter, file=tuning)
    loaded = plan_model(checkpoint, executor.adapter, capacity=64, tuned=tuned, greedy=True)
    executor.load(loaded.program, loaded.contents, lambda what: None)
    draw = random.Random(_SEED)
    walls: dict[Timing, list[float]] = {timing: [] for timing in TIMINGS}
    busy: list[float] = []
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    dispatches = sum(len(loaded.program.phases[phase]) for phase in ("decode", "head"))
    passes = tuple(Pass(("decode", "head"), 1, POSITION + number) for number in range(BATCH))
    answers = set()
    for number in range(rounds + _UNCOUNTED):
        for timing in draw.sample(TIMINGS, len(TIMINGS)):
            executor.write("state", np.array([POSITION, 1, 0, 0, 0, 0, 0, 0], np.uint32))
            one = executor.submit(passes, timing)
            answers.add(one.tokens)
            if number < _UNCOUNTED:
                continue
            walls[timing].append(one.wall_ns / BATCH)
            if timing == "single_pass":
                for part, own in parts.items():
                    own.append(getattr(one, part) / BATCH / dispatches)
            elif timing == "timestamps":
                times = zip(one.begin_ns, one.end_ns, strict=True)
                busy.append(sum(end - begin for begin, end in times if begin is not None and end is not None) / BATCH)
    if len(answers) != 1:
        raise SystemExit(f"the forms gave {len(answers)} answers: expected one")
    base = walls["single_pass"]
    rows = []
    for timing in TIMINGS:
        ratios = [each / own for each, own in zip(walls[timing], base, strict=True)]
        low, high = interval(ratios, draw)
        rows.append({"form": timing, "step_ns": statistics.median(walls[timing]), "least_step_ns": min(walls[timing]),
                     "ratio": statistics.median(ratios), "low": low, "high": high})  # fmt: skip
    return {"dispatches": dispatches, "rows": rows,
            "dispatch_ns": statistics.median(walls["single_pass"]) / dispatches,
            **{part: statistics.median(own) for part, own in parts.items()},
            "record_p95_ns": float(np.quantile(parts["record_ns"], 0.95)), "kernels_ns": statistics.median(busy),
            "kernels": sorted({one.kernel for one in loaded.selections if one.phase != "prefill"})}  # fmt: skip


def measure_attention(executor: Executor, rounds: int, bytes_per_s: float | None) -> dict[str, Any]:
    """What a position costs, by two kernel paths: a load of each in turns, and each context several times."""
    checkpoint = open_random(ATTENTION_MODEL, "attention of Gemma 3 1B")
    paths: dict[str, KernelPath | None] = {"split": None} | {
        name: parse_path(SERIAL.format(threads=threads), name) for name, threads in SERIAL_THREADS.items()
    }
    times: dict[str, dict[int, list[int]]] = {name: {position: [] for position in POSITIONS} for name in paths}
    kernels = {}
    for number in range(rounds):
        for name, path in paths.items() if number % 2 else reversed(paths.items()):
            loaded = plan_model(checkpoint, executor.adapter, capacity=POSITIONS[-1] + 8, path=path, greedy=True,
                                cache=CACHE_F16)  # fmt: skip
            executor.load(loaded.program, loaded.contents, lambda what: None)
            kernels[name] = [one.kernel for one in loaded.selections
                             if one.phase == "decode" and one.op.startswith("attention")]  # fmt: skip
            for position in POSITIONS:
                times[name][position] += _attention_ns(executor, loaded.program, position)
    spec = checkpoint.spec
    kv_bytes = 2 * spec.kv_heads * spec.head_dim * CACHE_F16.number_bytes
    found: dict[str, Any] = {"kernels": kernels, "kv_bytes": kv_bytes}
    for name, own in times.items():
        medians = [statistics.median(own[position]) for position in POSITIONS]
        slope, start = np.polyfit([position + 1 for position in POSITIONS], medians, 1)
        residual = np.subtract(medians, np.polyval((slope, start), [position + 1 for position in POSITIONS]))
        fit = 1 - float(np.sum(residual**2) / np.sum(np.subtract(medians, np.mean(medians)) ** 2))
        found[name] = {"slope_ns": float(slope), "start_ns": float(start), "r2": fit, "medians_ns": medians}
        if bytes_per_s is not None:
            found[name]["bound_ns"] = kv_bytes * 1e9 / bytes_per_s
    found["ratios"] = {name: found["split"]["slope_ns"] / found[name]["slope_ns"] for name in SERIAL_THREADS}
    return found


def _attention_ns(executor: Executor, program: Any, position: int) -> list[int]:
    """Of some passes behind so many positions, the device time of attention, its merge included."""
    labels = [dispatch.op for phase in ("decode", "head") for dispatch in program.phases[phase]]
    found = []
    for number in range(5):
        executor.write("state", np.array([position, 1, 0, 0, 0, 0, 0, 0], np.uint32))
        one = executor.submit([Pass(("decode", "head"), 1, position)], "timestamps")
        parts = [
            (begin, end)
            for op, begin, end in zip(labels, one.begin_ns, one.end_ns, strict=True)
            if op.startswith("attention")
        ]
        if number:
            found.append(sum(end - begin for begin, end in parts if begin is not None and end is not None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", help="part of an adapter's name; the best without")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=256, help="of the step that is measured")
    parser.add_argument("--tune", metavar="FILE", type=Path, help="tune for this adapter first, and keep it here")
    parser.add_argument("--json", metavar="FILE", type=Path)
    given = parser.parse_args()
    machine = describe_machine(len(os.sched_getaffinity(0)))
    executor = open_wgpu(given.adapter)
    try:
        rates = measure_rates(executor)
        if given.tune is not None:
            tune(open_random(STEP_MODEL, "tuning"), open_wgpu(given.adapter), file=given.tune)
        forms = measure_forms(executor, given.rounds, given.tune, given.hidden)
        attention = measure_attention(executor, max(2, given.rounds // 15), rates.bytes_per_s if rates else None)
    finally:
        executor.close()
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "adapter": f"{executor.adapter.name}, {executor.adapter.description}",
        "versions": {"python": platform.python_version(), "wgpu": version("wgpu"), "numpy": version("numpy")},
        "rounds": given.rounds,
        "hidden": given.hidden,
        "rates": None if rates is None else {"bytes_per_s": rates.bytes_per_s, "how": rates.how,
                                             "empty_pass_ns": rates.empty_pass_ns},
        "forms": forms,
        "attention": attention,
    }  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    show(result)


def show(result: dict[str, Any]) -> None:
    forms, attention, out = result["forms"], result["attention"], sys.stdout
    out.write(f"{result['adapter']}; {forms['dispatches']} dispatches a decode step, {result['rounds']} rounds\n")
    for row in forms["rows"]:
        form = "{form:18} {ms:8.2f} ms per step, {least:.2f} at least  x {ratio:.2f} ({low:.2f} to {high:.2f})\n"
        out.write(form.format(ms=row["step_ns"] / 1e6, least=row["least_step_ns"] / 1e6, **row))
    out.write(f"kernels of a step, by their own times: {forms['kernels_ns'] / 1e6:.2f} ms\n")
    out.write(f"single pass: {forms['dispatch_ns'] / 1e3:.2f} µs per dispatch, of which\n")
    for part in PARTS:
        name = part.removesuffix("_ns")
        out.write(f"  {name:7} {forms[part] / 1e3:8.2f} µs, {forms[part] / forms['dispatch_ns']:.1%}\n")
    out.write(f"recording: p95 {forms['record_p95_ns'] / 1e3:.2f} µs per dispatch\n")
    for name in ("split", *SERIAL_THREADS):
        one = attention[name]
        bound = f", bound {one['bound_ns']:.0f} ns" if "bound_ns" in one else ""
        out.write(f"attention, {name}: {one['slope_ns']:.0f} ns a position{bound} (R² {one['r2']:.4f})\n")
    for name, ratio in attention["ratios"].items():
        out.write(f"slope, split over {name}: {ratio:.2f}\n")


if __name__ == "__main__":
    main()
