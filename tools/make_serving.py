"""Writes the result of a serving benchmark that is synthetic, and exactly known, in the fields of real tools.

    make_serving.py --out run.json                 as `vllm bench serve --save-result --save-detailed` has it
    make_serving.py --tool sglang --out run.jsonl  as `sglang.bench_serving --output-file --output-details` has it
    make_serving.py --step-ms 6.2 --outside-ms 1 --out run.json

The engine is a clock: it has room for `--concurrency` requests, a step every `--step-ms` gives each of them a token,
and a request's prefill takes the place of a step. Clients see each token `--outside-ms` later, give or take a tenth of
that. The same arguments give the same numbers. Nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

_PERCENTS = {"vllm": (99,), "sglang": (90, 95, 99)}
_JITTER = 0.1  # of the time outside, either way


@dataclass(frozen=True)
class Options:
    """`prompt` and `output` are tokens per request; `accept` is what a step gives a sequence."""

    tool: str = "vllm"
    requests: int = 64
    concurrency: int = 16
    prompt: int = 512
    output: int = 64
    accept: int = 1
    step_ms: float = 6.5
    prefill_ms: float = 24.0
    outside_ms: float = 0.6
    model: str = "llama-3.2-1b"
    seed: int = 1


@dataclass
class _Request:
    start_s: float = 0.0
    ttft_s: float = 0.0
    gaps_s: list[float] | None = None
    latency_s: float = 0.0


def make_result(options: Options) -> dict[str, Any]:
    """The fields of one run."""
    requests, duration_s = _serve(options)
    ttfts = [one.ttft_s for one in requests]
    itls = [one.gaps_s or [] for one in requests]
    is_sglang = options.tool == "sglang"
    if is_sglang:  # its own endpoint divides a chunk by its tokens
        itls = [[gap / options.accept for gap in gaps for _ in range(options.accept)] for gaps in itls]
    latencies = [one.latency_s for one in requests]
    tpots = [(one.latency_s - one.ttft_s) / (options.output - 1) for one in requests if options.output > 1]
    input_tokens, output_tokens = options.requests * options.prompt, options.requests * options.output
    metrics = {
        **_statistics("e2e_latency" if is_sglang else "e2el", latencies, options.tool),
        **_statistics("ttft", ttfts, options.tool),
        **_statistics("tpot", tpots, options.tool),
        **_statistics("itl", [gap for gaps in itls for gap in gaps], options.tool),
    }
    counts = {
        "duration": duration_s,
        "completed": options.requests,
        "total_input_tokens": input_tokens,
        "total_output_tokens": output_tokens,
        "request_throughput": options.requests / duration_s,
        "output_throughput": output_tokens / duration_s,
    }
    details = {
        "input_lens": [options.prompt] * options.requests,
        "output_lens": [options.output] * options.requests,
        "ttfts": ttfts,
        "itls": itls,
    }
    total, drafts = (input_tokens + output_tokens) / duration_s, float(options.accept) if options.accept > 1 else None
    if is_sglang:
        head = {"backend": "sglang", "dataset_name": "random", "request_rate": float("inf")}
        own = {"input_throughput": input_tokens / duration_s, "total_throughput": total, "accept_length": drafts}
        load = {"max_concurrency": options.concurrency, "concurrency": sum(latencies) / duration_s}
        return head | load | counts | own | metrics | details
    head = {"date": "20260101-000000", "backend": "vllm", "model_id": options.model, "request_rate": "inf"}
    load = {"burstiness": 1.0, "max_concurrency": options.concurrency}
    own = {
        "failed": 0,
        "total_token_throughput": total,
        "max_concurrent_requests": min(options.concurrency, options.requests),
    }
    spoken = {"spec_decode_acceptance_length": drafts} if drafts else {}
    starts = {"start_times": [one.start_s for one in requests]}
    return head | load | counts | own | spoken | metrics | details | starts


def _serve(options: Options) -> tuple[list[_Request], float]:
    """All requests in order of arrival, and how long it took, s. A client sends its next one when one is done."""
    noise = random.Random(options.seed)
    outside_s = options.outside_ms / 1e3
    waiting = [_Request() for _ in range(options.requests)]
    running: list[tuple[_Request, int, float]] = []  # with its tokens, and when its client saw the last one
    clock_s, done = 0.0, 0
    seen_s = 0.0
    at = 0
    for one in waiting[: options.concurrency]:
        one.start_s = 0.0
    while done < options.requests:
        if at < options.requests and len(running) < options.concurrency:  # a step that reads one prompt
            clock_s += options.prefill_ms / 1e3
            one = waiting[at]
            seen_s = clock_s + outside_s * noise.uniform(1 - _JITTER, 1 + _JITTER)
            one.ttft_s, one.gaps_s = seen_s - one.start_s, []
            running.append((one, 1, seen_s))
            at += 1
        else:  # one that gives each sequence its tokens
            clock_s += options.step_ms / 1e3
            stay = []
            for one, tokens, last_s in running:
                seen_s = clock_s + outside_s * noise.uniform(1 - _JITTER, 1 + _JITTER)
                if one.gaps_s is not None:
                    one.gaps_s.append(seen_s - last_s)
                if tokens + options.accept < options.output:
                    stay.append((one, tokens + options.accept, seen_s))
                    continue
                one.latency_s = seen_s - one.start_s
                following = options.concurrency + done
                if following < options.requests:
                    waiting[following].start_s = seen_s
                done += 1
            running = stay
    return waiting, seen_s


def _statistics(name: str, values_s: list[float], tool: str) -> dict[str, float]:
    """As both tools have them; those of nothing are 0."""
    values_ms = np.array(values_s or [0.0]) * 1e3
    percentiles = {f"p{p}_{name}_ms": float(np.percentile(values_ms, p)) for p in _PERCENTS[tool]}
    said = {"mean": np.mean(values_ms), "median": np.median(values_ms), "std": np.std(values_ms)}
    return {f"{word}_{name}_ms": float(value) for word, value in said.items()} | percentiles


def main(arguments: list[str] | None = None) -> int:
    """Parses the command line and writes the result. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the result to write")
    parser.add_argument("--tool", choices=tuple(_PERCENTS), default=Options.tool, help="(%(default)s)")
    for option in fields(Options):
        if option.name != "tool":
            name = f"--{option.name.replace('_', '-')}"
            parser.add_argument(name, type=type(option.default), default=option.default, help="(%(default)s)")
    parser.add_argument("--plain", action="store_true", help="without the details of each request")
    parser.add_argument("--append", action="store_true", help="as one more line of a file that may exist")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    given = vars(parser.parse_args(arguments))
    out, plain, append, force = (given.pop(name) for name in ("out", "plain", "append", "force"))
    if out.exists() and not (force or append):
        parser.error(f"{out} exists: give another name, --append or --force")
    result = make_result(Options(**given))
    if plain:
        result = {name: value for name, value in result.items() if not isinstance(value, list)}
    with out.open("a" if append else "w", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    print(f"{out}: {result['completed']} requests in {result['duration']:.3f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
