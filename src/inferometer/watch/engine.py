"""Intervals of an engine's own metrics, as steps: the time per output token next to what the engine had to do.

An engine counts the time between two tokens of a request, and how often (`record/server/metrics.py`). The difference of
two readings is the mean of an interval. Where it doesn't, the time per token follows from requests and tokens: what
runs makes a token each at a time. An interval without tokens is none, nor is one in which a count fell, as it does when
the engine has started anew.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Self

from msgspec.structs import replace as replaced

from inferometer.record.clock import Clock
from inferometer.record.server.http import Http
from inferometer.record.server.metrics import EngineMetrics
from inferometer.record.server.sampling import sampling
from inferometer.record.sink import Sink
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace
from inferometer.watch.steps import WatchedStep

ANCHOR = "output token"
"""What delimits an interval's time: it is the mean of so many."""

KEPT_S = 1200.0
"""How long rows stay in memory: the normal time and the slow one that a cause is looked for in."""

_FEWEST_TOKENS = 4  # of an interval: the mean of fewer is mostly the luck of when it was asked
_NS = 1e9


class Recent:
    """A sink that keeps the rows of the last `KEPT_S` in memory, and hands all on to another, if there is one.

    Args:
        on_reading: Called, from any thread, with the time and the values of each reading of the engine's metrics.
        onward: Keeps them for good.
    """

    def __init__(self, on_reading: Callable[[int, Mapping[str, float]], object], onward: Sink | None = None) -> None:
        self._clock = onward.clock if onward else Clock.start()
        self._on_reading, self._onward = on_reading, onward
        self._facts = Facts(format="recording", source="watched", clock_base_ns=self._clock.base_ns)
        self._losses = Losses(ALL_TABLES)
        self._rows: deque[tuple[float, str, int, Mapping[str, Values]]] = deque()
        self._lock = threading.Lock()

    @property
    def clock(self) -> Clock:
        """Of all rows."""
        return self._clock

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """As `Sink.add`."""
        now = time.monotonic()
        with self._lock:
            self._rows.append((now, table, rows, columns))
            while self._rows[0][0] < now - KEPT_S:
                self._rows.popleft()
        if self._onward:
            self._onward.add(table, rows, columns)
        if table == "counters" and (reading := _reading_of(columns)):
            self._on_reading(*reading)

    def tell(self, change: Callable[[Facts], Facts]) -> None:
        """As `Sink.tell`."""
        with self._lock:
            self._facts = change(self._facts)
        if self._onward:
            self._onward.tell(change)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """As `Sink.lose`."""
        with self._lock:
            self._losses.count(name, count, example=example)
        if self._onward:
            self._onward.lose(name, count, example=example)

    def trace(self, source: str) -> Trace:
        """All rows that are kept."""
        builder = TraceBuilder()
        with self._lock:
            rows, facts = [*self._rows], replaced(self._facts, source=source)
            builder.losses.add(self._losses)
        for _, table, count, columns in rows:
            builder.add(table, count, columns)
        return builder.finish(facts)


class Engine:
    """The engine at `http`, asked once a second while the `with` block runs, with the counters of this machine.

    Args:
        http: The engine.
        hz: Samples of this machine's counters a second.
        onward: Keeps all rows for good.
    """

    def __init__(self, http: Http, *, hz: float = 10.0, onward: Sink | None = None) -> None:
        self._http, self._hz = http, hz
        self._steps: SimpleQueue[WatchedStep] = SimpleQueue()
        self._intervals = Intervals()
        self._recent = Recent(self._read, onward)
        self._running = ExitStack()
        self._metrics: EngineMetrics | None = None
        self.lacks: list[str] = []

    def __enter__(self) -> Self:
        hz = self._hz, 1.0
        samples = sampling(self._recent, self._http, counters=True, hz=hz, lack=self.lacks.append, patient=True)
        self._metrics = self._running.enter_context(samples)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def trouble(self) -> str | None:
        """Why there is nothing new, if there is a reason."""
        if self._metrics is not None and self._metrics.is_gone:
            return f"nothing answers at {self._http.url}"
        return self._metrics.missing if self._metrics else None

    def steps(self, wait_s: float) -> Iterator[WatchedStep]:
        """Those that came since the last call, after `wait_s` at most for the first."""
        try:
            yield self._steps.get(timeout=wait_s)
            while True:
                yield self._steps.get_nowait()
        except Empty:
            return

    def trace(self) -> Trace:
        """What was recorded of the last `KEPT_S`."""
        return self._recent.trace(self._http.url)

    def _read(self, at_ns: int, values: Mapping[str, float]) -> None:
        step = self._intervals.add(at_ns, values)
        if step is not None:
            columns: dict[str, Values] = {
                "start_ns": step.start_ns,
                "dur_ns": step.dur_ns,
                "anchor": ANCHOR,
                "source": "recorded",
            }
            self._recent.add("steps", 1, columns)
            self._steps.put(step)


class Intervals:
    """Makes steps of readings of an engine's metrics; the names are those of `record/server/metrics.py`.

    The work of an interval: prompt tokens per second, requests running, and the part of the KV cache in use, %.
    """

    def __init__(self) -> None:
        self._last_ns = 0
        self._last: dict[str, float] = {}

    def add(self, at_ns: int, values: Mapping[str, float]) -> WatchedStep | None:
        """The interval that ends with a reading at `at_ns`; None where it says nothing."""
        last_ns, last = self._last_ns, self._last
        self._last_ns, self._last = at_ns, dict(values)
        if not last or at_ns <= last_ns:
            return None
        seconds = (at_ns - last_ns) / _NS
        grown = {name: values[name] - last[name] for name in _GROWING if name in values and name in last}
        if any(change < 0 for change in grown.values()):
            return None
        running = (values.get(_RUNNING, 0.0) + last.get(_RUNNING, 0.0)) / 2
        per_token = _per_token_s(grown, running, seconds)
        if per_token is None or per_token <= 0:
            return None
        work = (grown.get(_PROMPT, 0.0) / seconds, running, values.get(_CACHE, 0.0))
        return WatchedStep(last_ns, max(1, round(per_token * _NS)), None, None, tuple(max(0.0, each) for each in work))


def _reading_of(columns: Mapping[str, Values]) -> tuple[int, dict[str, float]] | None:
    """The time and values where these are of an engine, which come as one reading at a time."""
    metrics, at_ns, values = columns["metric"], columns["time_ns"], columns["value"]
    if not isinstance(metrics, list) or not isinstance(values, list) or not isinstance(at_ns, int):
        return None
    if not str(metrics[0]).startswith("engine."):
        return None
    return at_ns, dict(zip(metrics, values, strict=True))


_RUNNING, _CACHE = "engine.requests_running", "engine.kv_cache_usage"
_GENERATED, _PROMPT = "engine.generated_tokens", "engine.prompt_tokens"
_LATENCY, _COUNT = "engine.inter_token_latency_sum", "engine.inter_token_latency_count"
_GROWING = (_GENERATED, _PROMPT, _LATENCY, _COUNT)


def _per_token_s(grown: Mapping[str, float], running: float, seconds: float) -> float | None:
    if _COUNT in grown and _LATENCY in grown:
        return grown[_LATENCY] / grown[_COUNT] if grown[_COUNT] >= _FEWEST_TOKENS else None
    tokens = grown.get(_GENERATED, 0.0)
    return seconds * running / tokens if tokens >= _FEWEST_TOKENS and running > 0 else None
