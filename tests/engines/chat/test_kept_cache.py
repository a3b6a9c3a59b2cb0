"""A second answer that reads only what is new says what it says without: both engines, on a bundled model."""

from itertools import pairwise
from typing import Any

import pytest

from inferometer.engines.chat.conversation import Conversation
from inferometer.engines.hf.model import load_model
from inferometer.engines.webgpu.chat.conversation import DeviceConversation
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu

QUESTIONS = ("How are you?", "And what is new?", "Well then.")


def _ask_all(conversation: Any) -> list[Any]:
    return [conversation.ask(question) for question in QUESTIONS]


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-gemma3"])
def test_webgpu_reads_only_what_is_new(model: str) -> None:
    engine = load_webgpu(model, LoadOptions(on="numpy", capacity_tokens=256, greedy=True))

    kept = _ask_all(DeviceConversation(engine, new_tokens=12))
    anew = _ask_all(DeviceConversation(engine, new_tokens=12, keeps_cache=False))

    assert [each.tokens for each in kept] == [each.tokens for each in anew]
    assert [each.kept_tokens for each in anew] == [0, 0, 0]
    assert kept[0].kept_tokens == 0
    for before, answer in pairwise(kept):
        assert answer.kept_tokens >= before.prompt_tokens
        read = sum(one.tokens for each in answer.submissions for one in each.passes if "prefill" in one.phases)
        assert read == answer.read_tokens == answer.prompt_tokens - answer.kept_tokens


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-gemma3"])
def test_hf_reads_only_what_is_new(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    pytest.importorskip("transformers", reason="transformers isn't installed")
    engine = load_model(model)

    anew = _ask_all(Conversation(engine, new_tokens=12, keeps_cache=False))
    lengths: list[int] = []
    forward = engine.forward

    def counted(cache: Any, tokens: Any) -> Any:
        lengths.append(tokens.shape[1])
        return forward(cache, tokens)

    monkeypatch.setattr(engine, "forward", counted)
    kept = _ask_all(Conversation(engine, new_tokens=12))

    assert [each.tokens for each in kept] == [each.tokens for each in anew]
    assert [length for length in lengths if length > 1] == [each.read_tokens for each in kept]
    assert [each.kept_tokens >= before.prompt_tokens for before, each in pairwise(kept)] == [True] * 2
