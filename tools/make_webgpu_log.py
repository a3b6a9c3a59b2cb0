"""Writes the log of a WebGPU engine's run that is made up: a small Qwen-like model, its prefill and decode reports.

    make_webgpu_log.py --out run.log                  24 layers, 33 decode batches, about 450 kB
    make_webgpu_log.py --fault attention --out x.log  attention takes 1,500 times what its bytes need
    make_webgpu_log.py --fault attention --fault neighbour --out x.log  and something else uses the device for a while

The same arguments give the same bytes. Times are modelled (bytes over a bandwidth), not measured.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MODEL = "qwen2.5-0.5b-instruct"
LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 24, 896, 14, 2, 64, 4864, 151_936
BYTES_PER_MS = 150e9 / 1e3 * 0.8  # what the kernels reach of a 150 GB/s device
PASS_MS = 0.003
FAULTS = ("attention", "down", "neighbour")
_WARM_UP_MS = 15.0
_BUSY_STEPS = (18, 19)  # of decode, in which a neighbour uses the device: small kernels suffer most
_RULE = "-" * 56


@dataclass(frozen=True)
class Options:
    """What to write: `batches` of `batch` tokens and a tail of `tail`, after a prompt of `prompt` tokens.

    `faults`: `attention`, `down` (the last product of a layer is slow), `neighbour` (two steps are disturbed).
    """

    batches: int = 32
    batch: int = 4
    tail: int = 2
    prompt: int = 21
    faults: tuple[str, ...] = ()
    seed: int = 7


def write_log(options: Options, out: IO[str]) -> int:
    """Write the log; returns the number of its reports."""
    return _Run(options, out).write()


class _Run:
    def __init__(self, options: Options, out: IO[str]) -> None:
        self.options, self.out = options, out
        self.ms = 140.0
        self.random = random.Random(options.seed)
        self.reports = 0

    def write(self) -> int:
        o = self.options
        self._begin()
        start = self.ms
        prefill = self._report("Prefill (prefill)", self._times(o.prompt / 2, 1.0, attends=o.prompt), 3.0)
        self.ms = ttft_at = start + prefill + 1.5
        context = o.prompt
        for step, n in enumerate([o.batch] * o.batches + [o.tail] * bool(o.tail), 1):
            times, gap_ms = self._times(context + (n + 1) / 2, n, attends=n), 2.0 + 0.1 * n
            if step in _BUSY_STEPS and "neighbour" in o.faults:
                times = {label: ms * (3.0 if ms < 2 * n * LAYERS * PASS_MS else 1.02) for label, ms in times.items()}
                gap_ms += 8.0
            self._report(f"Batch decode (N={n})", times, gap_ms + _WARM_UP_MS * (step == 1))
            context += n
        self.ms += 0.3
        self._end(ttft_at - start, prefill, round(self.ms - ttft_at, 1), context - o.prompt + 1)
        return self.reports

    def _begin(self) -> None:
        print("[progress] browser launching WebGPU harness...", file=self.out)
        print(f"[progress] browser resolved modelUrl=/models/local/{MODEL}", file=self.out)
        self._say("OPFSCache", f'Cache hit: "{MODEL}"')
        print("[browser:log] [GPU] made-up adapter-1, f16/subgroups, 2.0GB", file=self.out)
        self._say("Pipeline", "KernelPath: qwen-f16 (16 decode steps, 12 kernels, source=config)", 6)
        self._say("Pipeline", f"{LAYERS}L/{HIDDEN}H/{HEADS}heads ({HEAD_DIM}dim), kernelPath=qwen-f16")
        self._say("Tokenizer", f"Loaded HuggingFace {VOCAB} tokens (bpe), 22 special patterns, 151387 merges", 180)
        self._say("Loader", f"Loading: {MODEL}")
        self._say("Loader", f"Layers: {LAYERS} complete (0.61s)", 610)
        self._say("Loader", "Complete: 942.30 MB in 0.98s (961.53 MB/s)", 370)
        self._say("Pipeline", "Model loaded successfully", 40)
        for op, variant in (("gemm", "tiled_f16"), ("attend", "streaming_f16")):
            self._say("KernelSelect", f"{op} variant={variant} reason=path_override")

    def _times(self, kv: float, tokens: float, *, attends: int) -> dict[str, float]:
        """Times of each label, ms: weights are read once a token of a decode batch, and once for a prompt."""
        faults = self.options.faults

        def moved(elements: float, factor: float = 1.0) -> float:
            return tokens * (PASS_MS + 2 * elements * factor / BYTES_PER_MS) * self.random.uniform(0.995, 1.005)

        query, key = HIDDEN * HEADS * HEAD_DIM, HIDDEN * KV_HEADS * HEAD_DIM
        weights = {"wq": query, "wk": key, "wv": key, "wo": query, "gate": HIDDEN * FFN, "up": HIDDEN * FFN}
        times = {f"gemm:blk.{role}:L{layer}": moved(n) for role, n in weights.items() for layer in range(LAYERS)}
        slow = 9.0 if "down" in faults else 1.0
        times |= {f"gemm_add:L{layer}.blk.down": moved(HIDDEN * FFN, slow) for layer in range(LAYERS)}
        cache = 2 * KV_HEADS * HEAD_DIM * (1_500 if "attention" in faults else 1)
        times["attend"] = LAYERS * attends * (PASS_MS + 2 * kv * cache / BYTES_PER_MS)
        times["gemm:unembed"] = moved(HIDDEN * VOCAB)
        small = {"rmsnorm": 2 * LAYERS + 1, "rope": 2 * LAYERS, "silu_mul": LAYERS, "gather": 1, "sample": 3}
        return times | {name: tokens * PASS_MS * count for name, count in small.items()}

    def _report(self, title: str, times: dict[str, float], gap_ms: float) -> float:
        wall = round(sum(times.values()) + gap_ms, 1)
        self._say("Profile", f"{title}:", wall)
        self._say("Profile", "GPU Profile Report")
        whole = sum(times.values())
        lines = [_RULE, f"{'Kernel':<28}{'Time (ms)':>16}{'%':>12}", _RULE]
        ordered = sorted(times.items(), key=lambda item: -item[1])
        lines += [f"{label:<28}{ms:>16.3f}{100 * ms / whole:>12.1f}" for label, ms in ordered]
        print(*lines, _RULE, f"{'TOTAL':<28}{whole:>16.3f}{100:>12.1f}", "", sep="\n", file=self.out)
        self.reports += 1
        return wall

    def _end(self, ttft: float, prefill: float, decode: float, tokens: int) -> None:
        rate = (tokens - 1) / decode * 1e3
        words = f"TTFT: {ttft:.0f}ms | Prefill: {prefill:.0f}ms | Decode: {decode:.0f}ms"
        print(f"[browser:log] [{self.ms:.1f}ms][Perf] {words} ({tokens - 1} tokens @ {rate:.1f} tok/s)", file=self.out)
        self._say("Pipeline", "Unloaded")
        prompt, total = self.options.prompt, ttft + decode
        rates = f"total={tokens / total * 1e3:.2f} prefill={prompt / prefill * 1e3:.2f} decode={rate:.2f}"
        print(
            f"[ok] debug model={MODEL} passed=1 failed=0 duration={self.ms:.1f}ms",
            '[metrics] prompt="Why is the sky blue?"',
            f"[metrics] load=1026.0ms prefillTokens={prompt} decodeTokens={tokens} maxTokens={tokens}",
            f"[metrics] ttft={ttft:.1f}ms prefill={prefill:.1f}ms decode={decode:.1f}ms total={total:.1f}ms",
            f"[metrics] tok/s {rates}",
            sep="\n",
            file=self.out,
        )

    def _say(self, module: str, text: str, after_ms: float = 0.1) -> None:
        self.ms = round(self.ms + after_ms, 1)
        print(f"[browser:log] [{self.ms:.1f}ms][{module}] {text}", file=self.out)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and write the log. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace the file")
    parser.add_argument("--fault", choices=FAULTS, action="append", default=[], help="what is wrong in it; repeatable")
    for name in ("batches", "batch", "tail", "prompt", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Options, name))
    given = vars(parser.parse_args(arguments))
    out: Path = given.pop("out")
    faults = tuple(given.pop("fault"))
    mode = "w" if given.pop("force") else "x"
    try:
        with out.open(mode, encoding="utf-8", newline="\n") as file:
            reports = write_log(Options(faults=faults, **given), file)
    except FileExistsError:
        parser.error(f"{out} exists already; --force replaces it")
    print(f"{reports} reports", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
