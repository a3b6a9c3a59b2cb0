"""A model whose answers are written down: it says the bytes of a script, token by token, through the operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.engines.made_backends import decoder_backend

from inferometer.backends.backend import DecoderKernel
from inferometer.engines.arms import Arm, call

EOS = 256


@dataclass
class Bytes:
    """Bytes as tokens; a chat is its messages in a row, `u:` and `a:` before them."""

    name: str = "bytes"
    eos: frozenset[int] = frozenset({EOS})
    vocabulary: int = EOS + 1

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(token for token in ids if token < EOS).decode(errors="replace")

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.encode("".join(f"{each['role'][0]}:{each['content']}\n" for each in messages) + "a:")


@dataclass
class ScriptedEngine:
    """Says `script` again and again; `at_pass(number, tokens)` is called first in each pass."""

    script: Sequence[int] = tuple(b"yes!")
    at_pass: Callable[[int, int], None] = lambda number, tokens: None
    context_limit: int | None = None
    name: str = "scripted"
    device: str = "cpu"
    dtype: str = "float32"
    vocabulary: int = EOS + 1
    source: str = "none: a script"
    parameters: int = 257
    weight_bytes: int = 1028
    notes: tuple[str, ...] = ()
    tokenizer: Bytes = field(default_factory=Bytes)
    prompts: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def start(self, batch: int, length: int) -> Any:
        assert self.context_limit is None or length <= self.context_limit
        self.lengths.append(length)
        return SimpleNamespace(passes=0, tokens=[])

    def resume(self, cache: Any, kept: int, length: int) -> Any:
        resumed = self.start(1, length)
        resumed.tokens = cache.tokens[:kept]
        return resumed

    def forward(self, cache: Any, tokens_BT: Any) -> Any:
        import torch

        cache.tokens += tokens_BT[0].tolist()
        if not cache.passes:
            self.prompts.append(self.tokenizer.decode(cache.tokens))
        self.at_pass(cache.passes, tokens_BT.shape[1])
        wanted = torch.tensor([[float(self.script[cache.passes % len(self.script)])]])
        cache.passes += 1
        tokens_V1 = torch.arange(float(self.vocabulary))[:, None]
        return -((call("linear", torch.ones(1, 1), tokens_V1, None) - wanted) ** 2)


def arm_of(operator: str, function: Callable[..., Any], refuses: Callable[..., str | None] | None = None) -> Arm:
    """An arm whose backend `odd` has one operator, this function."""
    implementation = DecoderKernel(function) if refuses is None else DecoderKernel(function, refuses)
    odd = decoder_backend("odd", (operator,), lambda name: implementation)
    return Arm("odd", {operator: odd}, {"linear": "odd has no linear"} if operator != "linear" else {})
