"""A model of two small layers, quick enough for tests of what is around a model, and backends that do as reported.

B sequences, T new tokens, H hidden size, V vocabulary. What came before is one sum a sequence: the cache.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from tests.engines.made_backends import decoder_backend

from inferometer.backends.backend import Backend, DecoderKernel
from inferometer.engines.arms import Arm, decoder_of, known_backends
from inferometer.engines.paths import scope

H, LAYERS, VOCABULARY = 8, 2, 13


@dataclass
class ToyEngine:
    """An `Engine`. `before` is called with the tokens of every pass, which are in `passes`, too."""

    name: str = "toy"
    device: str = "cpu"
    dtype: str = "float32"
    vocabulary: int = VOCABULARY
    passes: list[Any] = field(default_factory=list)
    before: Callable[[Any], None] = lambda tokens: None

    def __post_init__(self) -> None:
        import torch

        seeded = torch.Generator().manual_seed(7)

        def made(*shape: int) -> Any:
            return torch.randn(*shape, generator=seeded).to(getattr(torch, self.dtype))

        self.embedding = made(VOCABULARY, H)
        self.norms = [made(H) for _ in range(LAYERS)]
        self.gates, self.ups = [made(H, H) for _ in range(LAYERS)], [made(H, H) for _ in range(LAYERS)]
        self.head = made(VOCABULARY, H)

    def start(self, batch: int, length: int) -> Any:
        return {"sum": 0.0, "room": length}

    def forward(self, cache: Any, tokens_BT: Any) -> Any:
        from inferometer.engines.arms import call

        self.before(tokens_BT)
        self.passes.append(tokens_BT)
        with scope("forward"):
            with scope("embedding"):
                x = self.embedding[tokens_BT]
            for n in range(LAYERS):
                with scope(f"layers.{n}"):
                    normed = call("rms_norm", x, self.norms[n], site="input_norm", eps=1e-6)
                    with scope("mlp"):
                        gate = call("linear", normed, self.gates[n], None, site="gate")
                        up = call("linear", normed, self.ups[n], None, site="up")
                        x = x + call("silu_mul", gate, up)
            cache["sum"] = cache["sum"] + x.sum(1)
            cache["room"] -= tokens_BT.shape[1]
            assert cache["room"] >= 0
            return call("linear", cache["sum"], self.head, None, site="lm_head")


def backend(
    name: str, operators: Collection[str], change: Callable[..., Any], refuses: Callable[..., str | None] | None = None
) -> Backend:
    """`change(call, *args, **settings)` answers each of `operators`; `call` is plain PyTorch's."""
    plain = known_backends()["torch"]

    def load(operator: str) -> DecoderKernel:
        call = decoder_of(plain).load(operator).call
        return DecoderKernel(
            lambda *args, **settings: change(call, *args, **settings), refuses or (lambda *args, **settings: None)
        )

    return decoder_backend(name, operators, load)


def arm(name: str, operators: Collection[str], change: Callable[..., Any], **options: Any) -> Arm:
    """An arm of one such backend of the same name; other operators run on plain PyTorch."""
    made = backend(name, operators, change, **options)
    return Arm(name, dict.fromkeys(operators, made))


def slow(delay_s: float) -> Callable[..., Any]:
    """Right, and late: the processor is busy meanwhile."""

    def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        until = time.perf_counter() + delay_s
        while time.perf_counter() < until:
            pass
        return call(*args, **settings)

    return change


class FakeClock:
    """The clock of scopes and phases: a nanosecond goes by at each look at it."""

    def __init__(self, patch: Any) -> None:
        self.now_ns = 0
        for module in ("paths", "ab.completion"):
            patch.setattr(f"inferometer.engines.{module}._clock", self)

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def late(self, delay_ns: int) -> Callable[..., Any]:
        """Right, and late by this clock."""

        def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
            self.now_ns += delay_ns
            return call(*args, **settings)

        return change
