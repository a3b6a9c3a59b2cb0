"""Intervals of an engine's own metrics, as steps: the time per output token next to what the engine had to do.

An engine counts the time between two tokens of a request, and how often (`record/server/metrics.py`). The difference of
two readings is the mean of an interval. Where it doesn't, the time per token follows from requests and tokens: what
runs makes a token each at a time. An interval without tokens is none, nor is one in which a count fell, as it does when
the engine has started anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inferometer.watch.steps import WatchedStep

_FEWEST_TOKENS = 4  # of an interval: the mean of fewer is mostly the luck of when it was asked
_NS = 1e9


@dataclass(frozen=True)
class Rates:
    """What an engine did in its last interval, per second, and how many requests it has; None: it doesn't say."""

    generated_per_s: float | None
    prompt_per_s: float | None
    running: float | None
    waiting: float | None
    cache_percent: float | None


class Intervals:
    """Makes steps of readings of an engine's metrics; the names are those of `record/server/metrics.py`.

    The work of an interval: prompt tokens per second, requests running, and the part of the KV cache in use, %.
    """

    def __init__(self) -> None:
        self._last_ns = 0
        self._last: dict[str, float] = {}
        self.rates: Rates | None = None

    def add(self, at_ns: int, values: Mapping[str, float]) -> WatchedStep | None:
        """The interval that ends with a reading at `at_ns`; None where it says nothing."""
        last_ns, last = self._last_ns, self._last
        self._last_ns, self._last = at_ns, dict(values)
        if not last or at_ns <= last_ns:
            return None
        seconds = (at_ns - last_ns) / _NS
        grown = {name: values[name] - last[name] for name in _GROWING if name in values and name in last}
        if not all(0 <= change < _MOST for change in grown.values()):
            return None
        self.rates = _rates(grown, values, seconds)
        running = (values.get(_RUNNING, 0.0) + last.get(_RUNNING, 0.0)) / 2
        per_token = _per_token_s(grown, running, seconds)
        if per_token is None or not 0 < per_token < _LONGEST_S:
            return None
        work = (grown.get(_PROMPT, 0.0) / seconds, running, values.get(_CACHE, 0.0))
        if not all(each < _MOST for each in work):
            return None
        return WatchedStep(last_ns, max(1, round(per_token * _NS)), None, None, tuple(max(0.0, each) for each in work))


_LONGEST_S = 1e6  # of a token: more is no time
_MOST = 1e15  # of anything that an engine counts in a second
_RUNNING, _WAITING, _CACHE = "engine.requests_running", "engine.requests_waiting", "engine.kv_cache_usage"
_GENERATED, _PROMPT = "engine.generated_tokens", "engine.prompt_tokens"
_LATENCY, _COUNT = "engine.inter_token_latency_sum", "engine.inter_token_latency_count"
_GROWING = (_GENERATED, _PROMPT, _LATENCY, _COUNT)


def _per_token_s(grown: Mapping[str, float], running: float, seconds: float) -> float | None:
    if _COUNT in grown and _LATENCY in grown:
        return grown[_LATENCY] / grown[_COUNT] if grown[_COUNT] >= _FEWEST_TOKENS else None
    tokens = grown.get(_GENERATED, 0.0)
    return seconds * running / tokens if tokens >= _FEWEST_TOKENS and running > 0 else None


def _rates(grown: Mapping[str, float], values: Mapping[str, float], seconds: float) -> Rates:
    made, read = (grown[name] / seconds if name in grown else None for name in (_GENERATED, _PROMPT))
    return Rates(made, read, values.get(_RUNNING), values.get(_WAITING), values.get(_CACHE))
