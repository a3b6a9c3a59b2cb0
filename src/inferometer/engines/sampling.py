"""How the next token is chosen: the most probable one, or drawn by seed. B sequences, V vocabulary.

All of it runs in the operators `argmax`, `softmax` and `top_k_top_p` of the arm in use. The numbers that decide a draw
come from a generator of the host, so that a seed means the same on every device; backends whose probabilities differ in
the last digits may still draw different tokens.
"""

import math
from dataclasses import dataclass
from typing import Any

from inferometer.engines.generation import Sampler, take_first
from inferometer.errors import InputError

LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0  # beyond, logits over the temperature leave float16 or say nothing


@dataclass(frozen=True)
class Sampling:
    """What a token is drawn from.

    Attributes:
        temperature: Logits are divided by it; 0: always the most probable token, nothing is drawn.
        top_k: Only the k most probable are drawn from; 0: all.
        top_p: Of these, the fewest whose probabilities reach p of their sum; 1: all.
        seed: Of the draws.

    Raises:
        InputError: A number is out of its range, or there is a limit where nothing is drawn.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        warm = LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE  # no nan is
        if self.temperature != 0 and not warm:
            wanted = f"expected 0, or {LEAST_TEMPERATURE:g} to {MOST_TEMPERATURE:g}"
            raise InputError(f"temperature: {wanted}, found {self.temperature:g}")
        if self.top_k < 0:
            raise InputError(f"top-k: expected a number of tokens, or 0 for all, found {self.top_k}")
        if not (0 < self.top_p <= 1) or math.isnan(self.top_p):
            raise InputError(f"top-p: expected a share above 0 and up to 1, found {self.top_p:g}")
        if self.is_greedy and (self.top_k or self.top_p < 1):
            raise InputError("top-k and top-p choose what is drawn from, and with temperature 0 nothing is drawn",
                             hint="Give a temperature, such as 0.7.")  # fmt: skip

    @property
    def is_greedy(self) -> bool:
        """Whether it is always the most probable token."""
        return self.temperature == 0

    def sampler(self) -> Sampler:
        """For `generate`, with draws of its own from the seed's first on."""
        return take_first if self.is_greedy else _Draw(self)


class _Draw:
    """Draws one number per sequence and token, in their order."""

    def __init__(self, sampling: Sampling) -> None:
        import torch

        self._sampling = sampling
        self._generator = torch.Generator().manual_seed(sampling.seed)

    def __call__(self, logits_BV: Any, position: int) -> Any:
        import torch

        from inferometer.engines.arms import call

        uniform_B = torch.rand(logits_BV.shape[0], generator=self._generator, dtype=torch.float32)
        probability_BV = call("softmax", logits_BV, temperature=self._sampling.temperature)
        k, p = self._sampling.top_k, self._sampling.top_p
        return call("top_k_top_p", probability_BV, uniform_B.to(logits_BV.device), k=k, p=p)
