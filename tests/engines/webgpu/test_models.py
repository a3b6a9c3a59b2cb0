"""The models of every family, whole: NumPy and wgpu against transformers on the same weights.

Keys and values are float16 where nothing else is said: in the engine, and in what transformers caches. Both round to
the nearest, so that they part only where the middle of two float16 lies between what float32 made of a number in both:
by a whole step then, 1e-3 of the number. Errors of 1e-5 do that to one number in fifty. Rounding itself is a twelfth of
a step squared, in all numbers, so that its share moves logits by half as much, the root of 12 / 50: `moved_by` / 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.webgpu.model_folders import random_tensors, save_model, tensors_of

from inferometer.architectures.config import config_of
from inferometer.backends.wgsl.cache_formats import CACHE_F16, CACHE_F32, CacheFormat
from inferometer.engines.bundled import require_config
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import FUSED, Candidate, Tuned, TuneKey
from inferometer.engines.webgpu.run.executor import Executor, Request
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.config import read_spec
from inferometer.errors import Unavailable

MIXTURES = ("tiny-mixtral", "tiny-qwen-moe")
MODELS = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma2", "tiny-gemma3", "tiny-gemma3-26l", *MIXTURES)
PROMPT = tuple(int(token) for token in np.random.default_rng(14).integers(0, 256, 71))
"""Longer than two prefill passes, than the sliding windows of 16, than what a workgroup of attention takes."""
ROWS, NEW_TOKENS, BATCH, CAPACITY = 32, 10, 4, 96
TOLERANCE = 1e-3
PENALTY = 8.0
"""Of a second answer, as random models tend to say one token for ever."""


@dataclass(frozen=True)
class Told:
    """Logits [V] behind the prompt and at the end of a greedy answer, that answer, and one with a penalty."""

    first: Any
    last: Any
    greedy: tuple[int, ...]
    penalised: tuple[int, ...]


@cache
def reference(name: str) -> Any:
    """transformers' own model, in float32 on weights rounded to float16."""
    torch = pytest.importorskip("torch", reason="the reference needs torch: pip install 'inferometer[torch]'")
    pytest.importorskip("transformers", reason="the reference needs transformers: pip install 'inferometer[torch]'")
    from inferometer.engines.hf.model import load_model

    model = load_model(name).model
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(weight.half().float())
    return model


@cache
def logits_of(name: str, tokens: tuple[int, ...], form: CacheFormat = CACHE_F16) -> Any:
    """What transformers says behind the prompt and behind each token of an answer to it: [1 + answer, V]."""
    return read_by(reference(name), PROMPT + tokens, form)[len(PROMPT) - 1 :]


def moved_by(name: str, tokens: tuple[int, ...]) -> Any:
    """By how much rounding keys and values moves a logit, at most, behind the prompt and each token [1 + answer]."""
    return np.abs(logits_of(name, tokens) - logits_of(name, tokens, CACHE_F32)).max(-1)


def read_by(model: Any, tokens: tuple[int, ...], form: CacheFormat = CACHE_F16) -> Any:
    """Logits of transformers' model behind each token [T, V], with keys and values in this format."""
    import torch
    from transformers import DynamicCache

    kept = DynamicCache()
    keep, dtype = kept.update, getattr(torch, form.dtype.name)
    kept.update = lambda k, v, *args, **kwargs: keep(k.to(dtype).float(), v.to(dtype).float(), *args, **kwargs)
    with torch.no_grad():
        return model(torch.tensor([tokens]), past_key_values=kept, use_cache=True).logits[0].numpy()


def best(logits_TV: Any, answer: tuple[int, ...], penalty: float = 1.0) -> tuple[int, ...]:
    """The token that is best at each place of an answer, given those in front of it."""
    found = []
    for index, logits_V in enumerate(logits_TV[: len(answer)]):
        seen = sorted({*PROMPT, *answer[:index]})
        changed_V = logits_V.copy()
        changed_V[seen] = np.where(logits_V[seen] > 0, logits_V[seen] / penalty, logits_V[seen] * penalty)
        found.append(int(changed_V.argmax()))
    return tuple(found)


def ask(
    executor: Executor,
    name: str,
    features: frozenset[str] | None = None,
    tuned: Tuned | None = None,
    form: CacheFormat = CACHE_F16,
) -> Told:
    """What our engine says; `features`: as if the adapter had only these."""
    adapter = executor.adapter if features is None else replace(executor.adapter, features=features)
    loaded = plan_model(open_checkpoint(name), adapter, capacity=CAPACITY, most_rows=ROWS, tuned=tuned, cache=form)
    runner = LocalRunner(executor)
    runner.load(loaded.program, loaded.contents, lambda line: None)

    def run(new_tokens: int, penalty: float = 1.0) -> tuple[tuple[int, ...], Any]:
        request = Request(PROMPT, new_tokens, BATCH, repetition_penalty=penalty)
        submissions = runner.run(request, lambda submission: None)
        tokens = tuple(token for submission in submissions for token in submission.tokens)
        return tokens, executor.read("logits").view(np.float32)[: loaded.program.vocabulary].copy()

    penalised, _ = run(NEW_TOKENS, PENALTY)
    _, first = run(1)
    greedy, last = run(NEW_TOKENS)
    return Told(first, last, greedy, penalised)


def assert_right(told: Told, name: str, form: CacheFormat = CACHE_F16) -> None:
    """As transformers says, token by token: each is what it would say next."""
    assert len(told.greedy) == len(told.penalised) == NEW_TOKENS
    logits_TV = logits_of(name, told.greedy, form)
    within = TOLERANCE if form is CACHE_F32 else moved_by(name, told.greedy).max() / 2
    np.testing.assert_allclose(told.first, logits_TV[0], atol=within, rtol=0)
    np.testing.assert_allclose(told.last, logits_TV[NEW_TOKENS - 1], atol=within, rtol=0)
    assert told.greedy == best(logits_TV, told.greedy)
    assert told.penalised == best(logits_of(name, told.penalised, form), told.penalised, PENALTY)


@pytest.fixture(scope="module")
def device() -> Iterator[Executor]:
    pytest.importorskip("wgpu", reason="needs wgpu: pip install 'inferometer[webgpu]'")
    from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

    try:
        executor = open_wgpu()
    except Unavailable as error:
        pytest.skip(str(error))
    yield executor
    executor.close()


@cache
def in_numpy(name: str, form: CacheFormat = CACHE_F16) -> Told:
    return ask(NumpyExecutor(), name, form=form)


@pytest.mark.parametrize("name", MODELS)
def test_numpy_says_what_transformers_says(name: str) -> None:
    told = in_numpy(name)

    assert_right(told, name)
    assert len(set(told.penalised)) > NEW_TOKENS // 2  # an answer that could be another


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-gemma3"])
def test_keys_and_values_of_float32_say_what_transformers_says(name: str, device: Executor) -> None:
    for told in (in_numpy(name, CACHE_F32), ask(device, name, form=CACHE_F32)):
        assert_right(told, name, CACHE_F32)
    assert told.greedy == in_numpy(name, CACHE_F32).greedy


@pytest.mark.parametrize("name", MODELS)
def test_rounding_keys_and_values_changes_no_token_and_logits_as_much_as_the_reference_says(name: str) -> None:
    exact, rounded = in_numpy(name, CACHE_F32), in_numpy(name)

    assert rounded.greedy == exact.greedy
    moved = np.abs(rounded.first - exact.first).max()
    assert moved_by(name, exact.greedy)[0] / 2 <= moved <= 1.5 * moved_by(name, exact.greedy)[0]


def test_a_context_stretched_by_yarn_says_what_transformers_says(tmp_path: Path) -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    folder = save_model(tmp_path / "yarn", "tiny-llama", rope_scaling=yarn)
    wanted = logits_of_folder(folder)  # whose keys have YaRN's factor in them: ours, without it, round to others

    told = ask(NumpyExecutor(), str(folder), form=CACHE_F32)
    np.testing.assert_allclose(told.first, wanted, atol=TOLERANCE, rtol=0)
    assert np.abs(in_numpy("tiny-llama").first - wanted).max() > 20 * TOLERANCE  # it makes a difference


OF_QWEN3_MOE = {
    "model_type": "qwen3_moe",
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 48,
    "decoder_sparse_step": 2,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize("renormalize", [False, True])
def test_experts_between_dense_layers_say_what_transformers_says(
    renormalize: bool, tmp_path: Path, device: Executor
) -> None:
    fields = {**OF_QWEN3_MOE, "norm_topk_prob": renormalize}
    spec = read_spec(config_of({**require_config("tiny-qwen3").config, **fields}, where="here", name="moe"))
    folder = save_model(tmp_path / "moe", "tiny-qwen3", tensors_of(spec), **fields)
    wanted = logits_of_folder(folder)

    assert spec.experts is not None
    assert spec.experts.layers == (1,)
    for executor in (NumpyExecutor(), device) if renormalize else (NumpyExecutor(),):
        np.testing.assert_allclose(ask(executor, str(folder), form=CACHE_F32).first, wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-qwen3"])
def test_biases_of_attention_are_added(name: str, tmp_path: Path, device: Executor) -> None:
    config, tensors = require_config(name).config, random_tensors(name)
    for layer in range(config["num_hidden_layers"]):
        for each in "qkvo":
            module = f"model.layers.{layer}.self_attn.{each}_proj"
            rows = tensors[f"{module}.weight"].shape[0]
            tensors[f"{module}.bias"] = (
                np.random.default_rng([layer, rows, ord(each)]).normal(0, 0.3, rows).astype("f4")
            )
    folder = save_model(tmp_path / "biased", name, tensors, attention_bias=True)
    wanted = logits_of_folder(folder)

    for executor in (NumpyExecutor(), device):
        told = ask(executor, str(folder), form=CACHE_F32)
        np.testing.assert_allclose(told.first, wanted, atol=TOLERANCE, rtol=0)
    assert np.abs(in_numpy(name).first - wanted).max() > 20 * TOLERANCE


def test_biases_of_the_feed_forward_are_added_in_both_forms_of_decode(tmp_path: Path, device: Executor) -> None:
    config, tensors = require_config("tiny-llama").config, random_tensors("tiny-llama")
    for layer in range(config["num_hidden_layers"]):
        for each in ("gate", "up", "down"):
            module = f"model.layers.{layer}.mlp.{each}_proj"
            rows = tensors[f"{module}.weight"].shape[0]
            tensors[f"{module}.bias"] = np.random.default_rng([layer, len(each)]).normal(0, 0.3, rows).astype("f4")
    folder = str(save_model(tmp_path / "biased", "tiny-llama", tensors, mlp_bias=True))

    def fused(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        return (FUSED, "tried") if FUSED in candidates else None

    wanted = ask(NumpyExecutor(), folder, form=CACHE_F32)
    np.testing.assert_allclose(wanted.first, logits_of_folder(Path(folder)), atol=TOLERANCE, rtol=0)
    assert np.abs(in_numpy("tiny-llama").first - wanted.first).max() > 20 * TOLERANCE
    for executor, tuned in ((NumpyExecutor(), fused), (device, None), (device, fused)):
        told = ask(executor, folder, tuned=tuned, form=CACHE_F32)
        assert (told.greedy, told.penalised) == (wanted.greedy, wanted.penalised)
        np.testing.assert_allclose(told.last, wanted.last, atol=TOLERANCE, rtol=0)


def logits_of_folder(folder: Path) -> Any:
    """What transformers says behind the prompt, in float32 on matrices rounded to float16."""
    torch = pytest.importorskip("torch", reason="the reference needs torch: pip install 'inferometer[torch]'")
    transformers = pytest.importorskip("transformers", reason="the reference needs transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(weight.half().float())
    return read_by(model, PROMPT, CACHE_F32)[-1]


@pytest.mark.parametrize("name", MODELS)
def test_a_device_says_the_same(name: str, device: Executor) -> None:
    told, wanted = ask(device, name), in_numpy(name)

    assert (told.greedy, told.penalised) == (wanted.greedy, wanted.penalised)
    assert_right(told, name)


@pytest.mark.parametrize("features", [(), ("shader-f16",)])
def test_every_profile_of_kernels_says_the_same(features: tuple[str, ...], device: Executor) -> None:
    if not device.adapter.features.issuperset(features):
        pytest.skip(f"{device.adapter.name} lacks {', '.join(features)}")

    told, wanted = ask(device, "tiny-gemma3", frozenset(features)), in_numpy("tiny-gemma3")

    assert (told.greedy, told.penalised) == (wanted.greedy, wanted.penalised)
    np.testing.assert_allclose(told.last, wanted.last, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("index", range(5))
def test_every_kernel_with_what_a_tuner_tries_last_says_the_same(index: int, device: Executor) -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        if FUSED in candidates:
            return None
        last = list({each.kernel: each for each in candidates}.values())  # of each kernel: the largest workgroups
        return last[min(index, len(last) - 1)], "tried"

    told, wanted = ask(device, "tiny-qwen2", tuned=tuned), in_numpy("tiny-qwen2")

    assert (told.greedy, told.penalised) == (wanted.greedy, wanted.penalised)
    np.testing.assert_allclose(told.last, wanted.last, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-qwen2", "tiny-qwen3"])
def test_the_fused_form_of_decode_says_the_same(name: str, device: Executor) -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        return (FUSED, "tried") if FUSED in candidates else None

    wanted = in_numpy(name)

    for executor in (NumpyExecutor(), device):
        told = ask(executor, name, tuned=tuned)
        assert (told.greedy, told.penalised) == (wanted.greedy, wanted.penalised)
        np.testing.assert_allclose(told.last, wanted.last, atol=TOLERANCE, rtol=0)
