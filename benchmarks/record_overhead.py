"""What recording costs: the same work unrecorded and recorded in several ways, in turns, with ratios and intervals.

    python -m benchmarks.record_overhead --on cpu --steps 40 --rounds 15

The work is steps of a small stack of decoder layers in plain PyTorch, in one process. In each round every way runs the
same steps once, in an order that is drawn anew, so that what the machine does meanwhile hits all alike. The ratio of a
way is the median over rounds of its time over that of the unrecorded steps of the same round; the interval is
where the middle 95 % of medians of rounds drawn again (bootstrap) lie. Time of starting and ending a recording isn't
in it: a run has it once. `empty mode` is a dispatch mode of PyTorch that does nothing: the least that any interception
by one can cost. Next to the time stands the time on a CPU, of all threads of the process: on a machine that others use,
it depends less on them. The least of it in any round (`least`) depends least on them, where rounds are many.

Needs torch; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import inferometer

OFF: dict[str, Any] = {"counters": False, "ops": False, "profile": False, "workers": False}
EMPTY_MODE = "empty mode"
WAYS: dict[str, dict[str, Any] | None] = {
    "unrecorded": None,
    "unrecorded again": None,  # how far apart two equal things are
    EMPTY_MODE: None,
    "counters": {**OFF, "counters": True},
    "observer": {**OFF, "ops": True, "stacks": False, "ops_by": "observer"},
    "observer with stacks": {**OFF, "ops": True, "ops_by": "observer"},
    "observer 1 step of 8": {**OFF, "ops": True, "ops_by": "observer", "ops_every": 8},
    "observer 1 step of 32": {**OFF, "ops": True, "ops_by": "observer", "ops_every": 32},
    "mode": {**OFF, "ops": True, "stacks": False, "ops_by": "mode"},
    "mode with stacks": {**OFF, "ops": True, "ops_by": "mode"},
    "profiled": {**OFF, "profile": True, "stacks": False},
    "default on a CPU": {**OFF, "counters": True, "ops": True},
    "everything": {**OFF, "counters": True, "ops": True, "profile": True},
}
_DRAWS = 2_000
_SEED = 12


def make_work(device: str, hidden: int, layers: int, tokens: int) -> Callable[[], None]:
    """One step: `tokens` tokens through `layers` layers of width `hidden`, waited for."""
    import torch
    from torch import nn

    class Layer(nn.Module):  # type: ignore[misc]  # torch isn't there where types are checked
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(hidden)
            self.qkv = nn.Linear(hidden, 3 * hidden)
            self.out = nn.Linear(hidden, hidden)
            self.up = nn.Linear(hidden, 4 * hidden)
            self.down = nn.Linear(4 * hidden, hidden)

        def forward(self, x: Any) -> Any:
            q, k, v = (each.view(1, tokens, -1, 64).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, tokens, hidden)
            x = x + self.out(mixed)
            return x + self.down(nn.functional.gelu(self.up(x)))

    torch.manual_seed(_SEED)
    model = nn.Sequential(*(Layer() for _ in range(layers))).to(device).eval()
    x = torch.randn(1, tokens, hidden, device=device)

    def step() -> None:
        with torch.inference_mode():
            model(x)
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def make_decoding(hidden: int) -> Callable[[], None]:
    """One step: a token decoded behind 64 others by 30 layers as SmolLM2-135M has them (its width is 576), on a CPU."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(_SEED)
    sizes = {"hidden_size": hidden, "intermediate_size": hidden * 8 // 3, "vocab_size": 49_152 * hidden // 576}
    heads = {"num_attention_heads": 9, "num_key_value_heads": 3, "num_hidden_layers": 30, "tie_word_embeddings": True}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **heads)).eval()
    token = torch.zeros(1, 1, dtype=torch.long)
    with torch.inference_mode():
        cache = model(token.expand(1, 64), use_cache=True).past_key_values

    def step() -> None:
        with torch.inference_mode():
            model(token, past_key_values=cache, use_cache=True)
        cache.crop(-1)

    return step


def count_ops(step: Callable[[], None]) -> int:
    """Ops of one step, as a dispatch mode sees them."""
    mode = _empty_mode()
    with mode:
        step()
    return mode.ops  # type: ignore[no-any-return]


def _empty_mode() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Empty(TorchDispatchMode):  # type: ignore[misc]  # torch isn't there where types are checked
        ops = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.ops += 1
            return func(*args, **(kwargs or {}))

    return Empty()


def time_steps(step: Callable[[], None], steps: int, name: str, folder: Path) -> tuple[float, float]:
    """Mean ms of a step, and ms on a CPU, after one that isn't counted."""
    options = WAYS[name]
    if options is None:
        with _empty_mode() if name == EMPTY_MODE else nullcontext():
            return _mean_ms(step, steps)
    with inferometer.record(folder / "run.ifm", force=True, **options) as recording:
        took = _mean_ms(step, steps)
    if recording.remarks:
        raise SystemExit(f"not recorded as asked: {recording.remarks}")
    return took


def _mean_ms(step: Callable[[], None], steps: int) -> tuple[float, float]:
    step()
    began, began_cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(steps):
        with inferometer.step(phase="decode"):
            step()
    took, took_cpu = time.perf_counter_ns() - began, time.process_time_ns() - began_cpu
    return took / steps / 1e6, took_cpu / steps / 1e6


def interval(ratios: list[float], draw: random.Random) -> tuple[float, float]:
    """Where the middle 95 % of medians of rounds drawn again lie."""
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_DRAWS))
    return medians[round(0.025 * _DRAWS)], medians[round(0.975 * _DRAWS) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="cpu", help="cpu or cuda")
    parser.add_argument("--decoding", action="store_true", help="30 layers of a real decoder, on a CPU; of --hidden")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=40, help="in each way of a round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, help="of PyTorch; by default as many as it takes")
    parser.add_argument("--ways", default=",".join(WAYS), help="those to run, by name")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    ways = list(dict.fromkeys(("unrecorded", *given.ways.split(","))))
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    if given.decoding:
        step, work = make_decoding(given.hidden), f"a token through 30 layers of width {given.hidden}"
    else:
        step = make_work(given.on, given.hidden, given.layers, given.tokens)
        work = f"{given.layers} layers of width {given.hidden}, {given.tokens} tokens"
    for _ in range(3):
        step()
    ops = count_ops(step)
    draw = random.Random(_SEED)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            for name in draw.sample(ways, len(ways)):
                times[name].append(time_steps(step, given.steps, name, Path(folder)))
    rows: list[dict[str, Any]] = []
    for name, own in times.items():
        row: dict[str, Any] = {"way": name}
        for i, kind in enumerate(("", "cpu_")):
            ratios = [each[i] / base[i] for each, base in zip(own, times["unrecorded"], strict=True)]
            low, high = interval(ratios, draw)
            row |= {f"{kind}step_ms": statistics.median(each[i] for each in own),
                    f"{kind}ratio": statistics.median(ratios), f"{kind}low": low, f"{kind}high": high}  # fmt: skip
        row["cpu_least_ms"] = min(cpu_ms for _, cpu_ms in own)
        rows.append(row)
    about = (
        f"{work}: {ops} ops a step; "
        f"{given.rounds} rounds of {given.steps} steps, torch {torch.__version__}, {torch.get_num_threads()} threads; "
        f"load average {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    if given.json:
        json.dump({"about": about, "ops": ops, "rows": rows}, sys.stdout)
        return
    print(about)
    for row in rows:
        print(
            "{way:20} {step_ms:8.3f} ms  x {ratio:.3f}  ({low:.3f} to {high:.3f})   on a CPU {cpu_step_ms:8.3f} ms  "
            "x {cpu_ratio:.3f}  ({cpu_low:.3f} to {cpu_high:.3f})  least {cpu_least_ms:8.3f} ms".format(**row)
        )


if __name__ == "__main__":
    main()
