"""Prefill of the WebGPU engine by its tiled kernels against those before them, as a ratio of one run on one adapter.

    python -m benchmarks.webgpu_prefill --layers 2 --rounds 5 --json results.json

Layers of Gemma 3 270M's form (hidden 640, 4 heads on 1 kv head of 256, feed-forward 2048) with random weights read a
prompt of 512 tokens, in pieces of 64. Two programs in turns, each loaded anew: the kernel path as it is, and one that
names the kernels that were the only ones before, `matmul_tile`, `matmul_gate_up` and `attention_streaming`. Both must
give the same token, and logits that differ by rounding only. Bar: three times as fast.

Needs wgpu and an adapter; not part of CI.
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
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.machine import describe_machine
from benchmarks.record_overhead import interval
from benchmarks.webgpu_engine import open_random

from inferometer.engines.webgpu.plan.kernel_path import KernelPath
from inferometer.engines.webgpu.plan.path_files import parse_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.program import Program
from inferometer.engines.webgpu.run.executor import LoadedModel, Request, Submission, Timing
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

MODEL: dict[str, Any] = {"model_type": "gemma3_text", "vocab_size": 4096, "hidden_size": 640, "num_attention_heads": 4,
                         "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 2048, "sliding_window": 512,
                         "query_pre_attn_scalar": 256}  # fmt: skip
BEFORE = """
name = "before tiles"
families = ["gemma3"]
base = "gemma3"
[kernels]
matmul = [{ kernel = "matmul_tile" }]
matmul_gate_up = [{ kernel = "matmul_gate_up" }]
attention_prefill = [{ kernel = "attention_streaming" }]
"""
TOKENS = 512
LOGITS_WITHIN = 1e-3
_SEED = 29


def measure(layers: int, rounds: int, adapter: str | None) -> dict[str, Any]:
    """Times of the whole prompt by both programs, in turns; then device time by kernel, of one profiled run each."""
    checkpoint = open_random({**MODEL, "num_hidden_layers": layers}, f"{layers} layers of Gemma 3 270M's form")
    paths: dict[str, KernelPath | None] = {"before": parse_path(BEFORE, "before"), "tiled": None}
    prompt = tuple(int(each) for each in np.random.default_rng(_SEED).integers(0, MODEL["vocab_size"], TOKENS))
    runner = LocalRunner(open_wgpu(adapter))
    walls: dict[str, list[int]] = {name: [] for name in paths}
    answers: dict[str, tuple[int, Any]] = {}
    kernels: dict[str, dict[str, float]] = {}
    try:
        for number in range(rounds):
            for name, path in paths.items() if number % 2 else reversed(paths.items()):
                loaded = plan_model(checkpoint, runner.adapter, capacity=TOKENS + 1, path=path, greedy=True)
                runner.load(loaded.program, loaded.contents, lambda what: None)
                timing: Timing = "timestamps" if number == 0 else "single_pass"
                submissions = runner.run(Request(prompt, 1, timing=timing), lambda submission: None)
                logits = runner.executor.read("logits").view(np.float32).copy()
                answers[name] = submissions[-1].tokens[0], logits
                if number == 0:
                    kernels[name] = _by_kernel(loaded, submissions)
                else:
                    walls[name].append(sum(each.wall_ns for each in submissions))
    finally:
        runner.close()
    off = float(np.abs(answers["before"][1] - answers["tiled"][1]).max())
    if answers["before"][0] != answers["tiled"][0] or off > LOGITS_WITHIN:
        raise SystemExit(f"expected one token and logits within {LOGITS_WITHIN}, found {off} between the two")
    ratios = [old / new for old, new in zip(walls["before"], walls["tiled"], strict=True)]
    low, high = interval(ratios, random.Random(_SEED))
    return {
        "adapter": f"{runner.adapter.name}, {runner.adapter.description}",
        "prefill_ns": {name: statistics.median(each) for name, each in walls.items()},
        "ratio": statistics.median(ratios), "low": low, "high": high, "ratios": ratios,
        "kernels_ns": kernels, "logits_off": off,
    }  # fmt: skip


def _by_kernel(loaded: LoadedModel, submissions: Any) -> dict[str, float]:
    """Device time of each kernel, the head's left out."""
    found: dict[str, float] = defaultdict(float)
    for submission in submissions:
        for kernel, dur_ns in _timed(loaded.program, submission):
            found[kernel] += dur_ns
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _timed(program: Program, submission: Submission) -> list[tuple[str, int]]:
    dispatches = [each for one in submission.passes for each in one.dispatches(program)]
    times = zip(dispatches, submission.begin_ns, submission.end_ns, strict=True)
    return [
        (program.pipelines[each.pipeline].kernel, end - begin)
        for each, begin, end in times
        if begin is not None and end is not None
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", help="part of an adapter's name; the best without")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="after a first one, which is profiled")
    parser.add_argument("--json", metavar="FILE", type=Path)
    given = parser.parse_args()
    machine = describe_machine(len(os.sched_getaffinity(0)))
    found = measure(given.layers, given.rounds + 1, given.adapter)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "versions": {"python": platform.python_version(), "wgpu": version("wgpu"), "numpy": version("numpy")},
        "tokens": TOKENS, "layers": given.layers, "rounds": given.rounds, **found,
    }  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    show(result)


def show(result: dict[str, Any]) -> None:
    out = sys.stdout
    out.write(f"{result['adapter']}; {result['tokens']} tokens, {result['layers']} layers, {result['rounds']} rounds\n")
    for name, ns in result["prefill_ns"].items():
        out.write(f"{name:8} {ns / 1e6:10.1f} ms, {result['tokens'] * 1e9 / ns:.1f} tokens/s\n")
    out.write("tiled is {ratio:.2f} times as fast ({low:.2f} to {high:.2f})\n".format(**result))
    for name, kernels in result["kernels_ns"].items():
        words = ", ".join(f"{kernel} {ns / 1e6:.1f} ms" for kernel, ns in kernels.items() if ns > 1e6)
        out.write(f"{name}, profiled: {words}\n")


if __name__ == "__main__":
    main()
