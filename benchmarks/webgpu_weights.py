"""Formats of weights in the WebGPU engine: what a decode step takes in each, and how far answers are from float32's.

    python -m benchmarks.webgpu_weights MODEL --tokens 64 --rounds 5 --json results.json

MODEL is a folder, a GGUF file, or a bundled or published name with random weights, whose answers then mean nothing, but
whose bytes are those of a model. `own` stands for the formats that hold a GGUF file's matrices as they are. For each
format: the median time of decode steps, formats in turns, with the bytes that a step reads at least; and the mean
Kullback-Leibler divergence of its next-token distributions from those of the first format, over a text, in nats, with
the share of places where both choose the same token. Bar: q4 decodes at least 1.8 times as fast as f16.

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
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.machine import describe_machine
from benchmarks.record_overhead import interval

from inferometer.backends.wgsl.weight_formats import FORMATS, WeightFormat
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.program import Pass, Program
from inferometer.engines.webgpu.run.executor import Executor
from inferometer.engines.webgpu.run.request_words import state_words
from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint

TEXT = (
    "A kernel is fast where the time it takes is close to the time that its bytes need. To know both, measure the one "
    "and count the others; a rate that is above what the memory can move is a mistake in one of the two."
)
OWN = "own"
_SEED = 29


def measure(model: str, formats: Sequence[str], tokens: int, rounds: int, adapter: str | None) -> dict[str, Any]:
    """Decode times and divergences of every format; one is loaded at a time, in turns."""
    checkpoint = open_checkpoint(model)
    ids = list(checkpoint.tokenizer.encode(TEXT))[: tokens + 1]
    executor = open_wgpu(adapter)
    times: dict[str, list[float]] = {name: [] for name in formats}
    step_bytes: dict[str, int] = {}
    logits: dict[str, Any] = {}
    try:
        for number in range(rounds):
            for name in formats if number % 2 else reversed(formats):
                program = _load(executor, checkpoint, None if name == OWN else FORMATS[name], len(ids) + 1)
                step_bytes[name] = _bytes_of(program, len(ids) // 2)
                found, walls = _read(executor, program, ids)
                times[name].append(statistics.median(walls[1:]))
                logits[name] = found
    finally:
        executor.close()
    draw = random.Random(_SEED)
    rows = []
    for name, each in times.items():
        ratios = [base / own for base, own in zip(times["f16"], each, strict=True)]
        low, high = interval(ratios, draw)
        ns = statistics.median(each)
        rows.append({"weights": name, "step_ns": ns, "step_bytes": step_bytes[name], "gb_per_s": step_bytes[name] / ns,
                     "ratio": statistics.median(ratios), "low": low, "high": high,
                     **_distance(logits[name], logits[formats[0]])})  # fmt: skip
    return {"model": model, "source": checkpoint.source, "tokens": len(ids), "rounds": rounds, "rows": rows,
            "adapter": f"{executor.adapter.name}, {executor.adapter.description}"}  # fmt: skip


def _load(executor: Executor, checkpoint: Any, weights: WeightFormat | None, capacity: int) -> Program:
    loaded = plan_model(checkpoint, executor.adapter, capacity=capacity, greedy=True, weights=weights)
    executor.load(loaded.program, loaded.contents, lambda what: None)
    return loaded.program


def _bytes_of(program: Program, position: int) -> int:
    one = Pass(("decode", "head"), 1, position)
    return sum(each.bytes_read.at(1, position) for each in one.dispatches(program))


def _read(executor: Executor, program: Program, ids: list[int]) -> tuple[Any, list[int]]:
    """Logits behind each token of the text, a decode step each; the steps' wall times."""
    executor.write("tokens", np.array(ids, np.uint32))
    found, walls = [], []
    for position, token in enumerate(ids):
        executor.write("tokens", np.array([token], np.uint32), 4 * position)  # the step before wrote its own choice
        executor.write("state", state_words(position, 1))
        walls.append(executor.submit([Pass(("decode", "head"), 1, position)], "single_pass").wall_ns)
        found.append(executor.read("logits").view(np.float32)[: program.vocabulary].astype(np.float64))
    return np.array(found), walls


def _distance(logits_TV: Any, exact_TV: Any) -> dict[str, float]:
    """Mean divergence in nats, and the share of places with the same most probable token."""
    log_TV, exact_log_TV = (_log_softmax(each) for each in (logits_TV, exact_TV))
    kl_T = (np.exp(exact_log_TV) * (exact_log_TV - log_TV)).sum(-1)
    same = float((logits_TV.argmax(-1) == exact_TV.argmax(-1)).mean())
    return {"kl_nats": float(kl_T.mean()), "worst_kl_nats": float(kl_T.max()), "same_token": same}


def _log_softmax(logits_TV: Any) -> Any:
    above_TV = logits_TV - logits_TV.max(-1, keepdims=True)
    return above_TV - np.log(np.exp(above_TV).sum(-1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--adapter", help="part of an adapter's name; the best without")
    parser.add_argument("--formats", nargs="+", choices=(*FORMATS, OWN), default=("f32", "f16", "q8", "q4"),
                        help="with f16; the first is what answers are compared with")  # fmt: skip
    parser.add_argument("--tokens", type=int, default=64, help="of the text, at most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", type=Path)
    given = parser.parse_args()
    machine = describe_machine(len(os.sched_getaffinity(0)))
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "versions": {"python": platform.python_version(), "wgpu": version("wgpu"), "numpy": version("numpy")},
        **measure(given.model, given.formats, given.tokens, given.rounds, given.adapter),
    }
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{result['adapter']}; {result['model']} ({result['source']}), {result['tokens']} tokens\n")
    for row in result["rows"]:
        line = (
            "{weights:4} {ms:8.2f} ms per step, {mb:8.1f} MB, {gb_per_s:6.2f} GB/s; {ratio:.2f} times f16 "
            "({low:.2f} to {high:.2f}); KL {kl_nats:.2e}, at worst {worst_kl_nats:.2e}; same token {same_token:.1%}\n"
        )
        sys.stdout.write(line.format(ms=row["step_ns"] / 1e6, mb=row["step_bytes"] / 1e6, **row))


if __name__ == "__main__":
    main()
