"""Steps of a simulated engine under a load that varies: what a watcher must not take for a slowdown.

Continuous batching with chunked prefill. Requests arrive at random, at a rate that rises and falls over the hours, now
and then forty at once; prompts and answers are log-normal, some of the prompts fill sixteen steps. There are pauses
without a request. A step takes a constant, a part for its padded batch, for the context that it reads, for its prompt
tokens and for these times the context; around that, noise that resembles its neighbours, a heavy tail, and a rare pause
of the host. Nothing of it is known to the watcher but what an engine tells: phase, prompt tokens, requests, context.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from inferometer.watch.steps import WatchedStep

HOUR_S: Final = 3600.0
_CHUNK: Final = 2048  # prompt tokens of a step
_BATCH: Final = 256  # requests at a time


@dataclass
class Load:
    """An engine from `seed`; `slow` are stretches of time: begin, end in s, and by what its steps are multiplied."""

    seed: int
    slow: tuple[tuple[float, float, float], ...] = ()
    _running: list[list[int]] = field(default_factory=list)  # context, tokens to come
    _waiting: list[list[int]] = field(default_factory=list)  # prompt to come, tokens to come
    _noise: float = 0.0

    def steps(self, seconds: float) -> Iterator[WatchedStep]:
        """Its steps, in order of time."""
        random = np.random.default_rng(self.seed)
        now = arrival = 0.0
        while now < seconds:
            arrival = self._arrive(random, now, arrival)
            if not self._running and not self._waiting:
                now = arrival
                continue
            decode, context = len(self._running), sum(tokens for tokens, _ in self._running)
            prefill = self._admit()
            took = self._takes(random, prefill, decode, context) * self._slowness(now)
            phase = "mixed" if prefill and decode else "prefill" if prefill else "decode"
            work = (float(prefill), float(decode), float(context))
            yield WatchedStep(round(now * 1e9), round(took * 1e9), phase, None, work)
            now += took
            self._running = [[tokens + 1, left - 1] for tokens, left in self._running if left > 1]

    def _arrive(self, random: np.random.Generator, now: float, arrival: float) -> float:
        rate = 4.0 * (1.2 + np.sin(2 * now / HOUR_S))
        while arrival <= now:
            for _ in range(40 if random.random() < 0.002 else 1):
                prompt = min(32_768, int(random.lognormal(6, 1.2)))
                self._waiting.append([max(1, prompt), 1 + min(2000, int(random.lognormal(4.5, 0.8)))])
            arrival = max(arrival, now - 5) + random.exponential(1 / rate)
        return arrival

    def _admit(self) -> int:
        """Prompt tokens of the next step; requests whose prompt is done join what runs."""
        left = _CHUNK
        while self._waiting and left and len(self._running) < _BATCH:
            taken = min(left, self._waiting[0][0])
            self._waiting[0][0] -= taken
            left -= taken
            if not self._waiting[0][0]:
                self._running.append([taken, self._waiting.pop(0)[1]])
        return _CHUNK - left

    def _takes(self, random: np.random.Generator, prefill: int, decode: int, context: int) -> float:
        padded = 1 << max(0, decode - 1).bit_length()
        ms = 8 + 0.02 * padded + 2e-5 * context + 0.02 * prefill + 1e-9 * prefill * context
        self._noise = 0.5 * self._noise + random.normal(0, 0.01)
        tail = 1 + 0.05 * random.pareto(2) if random.random() < 0.05 else 1.0
        pause = random.uniform(20, 80) if random.random() < 2e-4 else 0.0
        return float(ms * np.exp(self._noise) * tail + pause) / 1e3

    def _slowness(self, now: float) -> float:
        return next((times for begin, end, times in self.slow if begin <= now < end), 1.0)
