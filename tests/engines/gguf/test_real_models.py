"""Real models in GGUF files, with both engines: tokenizer, template and weights give an answer that makes sense.

`python -m benchmarks.gguf_models` compares whole answers and logits with transformers', which reads the files itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.engines.gguf.real_models import GEMMA3, SMOLLM2, real_model

from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
from inferometer.engines.webgpu.run.executor import Request
from inferometer.errors import Unavailable

pytest.importorskip("gguf", reason="needs gguf: pip install 'inferometer[webgpu]'")
pytest.importorskip("tokenizers", reason="needs tokenizers: pip install 'inferometer[webgpu]'")

QUESTION = "What is the capital of France?"
TOKENS = 7
ANSWERS = {SMOLLM2: "The capital of France is Paris.", GEMMA3: "\n\nThe capital of France is Paris"}
"""The first was taught to answer; the second goes on with a text."""


class Model(NamedTuple):
    name: str
    path: Path

    def prompt(self, tokenizer: Tokenizer) -> list[int]:
        if self.name == SMOLLM2:
            return tokenizer.chat([{"role": "user", "content": QUESTION}])
        return tokenizer.encode(QUESTION)


@pytest.fixture(params=[SMOLLM2, GEMMA3])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Model]:
    path = real_model(request.param, tmp_path)
    if path is None:
        pytest.skip(f"{request.param} isn't installed: make test-all does")
    yield Model(request.param, path)
    path.unlink()


def test_hf_answers(model: Model) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from inferometer.engines.generation import generate, take_first
    from inferometer.engines.hf.model import load_model

    engine = load_model(str(model.path))
    prompt_BT = torch.tensor([model.prompt(engine.tokenizer)])
    tokens = [int(tokens_B[0]) for _, tokens_B in generate(engine, prompt_BT, TOKENS, take_first)]
    assert engine.tokenizer.decode(tokens) == ANSWERS[model.name]


def test_webgpu_answers(model: Model) -> None:
    pytest.importorskip("wgpu", reason="needs wgpu: pip install 'inferometer[webgpu]'")
    try:
        engine = load_webgpu(str(model.path), LoadOptions(capacity_tokens=64, greedy=True))
    except Unavailable as error:
        pytest.skip(str(error))
    try:
        request = Request(tuple(model.prompt(engine.tokenizer)), TOKENS)
        submissions = engine.runner.run(request, lambda submission: None)
        tokens = [token for submission in submissions for token in submission.tokens]
    finally:
        engine.close()
    assert engine.tokenizer.decode(tokens) == ANSWERS[model.name]
