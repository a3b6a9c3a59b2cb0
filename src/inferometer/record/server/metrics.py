"""What an engine counts of itself: a few of its Prometheus metrics once a second, as counters named `engine.`.

Sources: the Prometheus text format, and the pages "Production Metrics" of vLLM (to 0.32) and SGLang (to 0.5), read
2026-11-22. Metrics were renamed over time: of several names for one thing the newest that is there counts. Sums and
counts of latencies grow over the server's life: their differences are what happened meanwhile. Requests, tokens and
seconds are added up over engines; usage is their mean. Of several tensor- or pipeline-parallel ranks the first counts.

While a server has no metrics, `/v1/models` is asked now and then, to see that it lives: SGLang's `/health` would
generate a token.
"""

import math
import re
import threading
from dataclasses import dataclass

from inferometer.errors import InputError, Unavailable
from inferometer.record.server.http import Http, NoAnswer
from inferometer.record.sink import Sink

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TIMEOUT_S = 5.0
_GONE = 3  # so many broken connections in a row, and the server is gone
_ALIVE_EVERY = 5  # ticks


@dataclass(frozen=True)
class Metric:
    """One of ours: its unit, what the engines call it (newest first), and by what its values are multiplied."""

    name: str
    unit: str
    sources: tuple[str, ...]
    factor: float = 1.0
    is_mean: bool = False


def _latency(name: str, of: str, *sources: str) -> tuple[Metric, Metric]:
    """Sum and count of a histogram of seconds, a value for each `of`."""
    return (
        Metric(f"engine.{name}_sum", "s", tuple(f"{source}_seconds_sum" for source in sources)),
        Metric(f"engine.{name}_count", of, tuple(f"{source}_seconds_count" for source in sources)),
    )


METRICS = (
    Metric("engine.requests_running", "requests", ("vllm:num_requests_running", "sglang:num_running_reqs")),
    Metric("engine.requests_waiting", "requests", ("vllm:num_requests_waiting", "sglang:num_queue_reqs")),
    Metric("engine.generated_tokens", "tokens", ("vllm:generation_tokens_total", "sglang:generation_tokens_total")),
    Metric("engine.prompt_tokens", "tokens", ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")),
    Metric(
        "engine.kv_cache_usage",
        "%",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        factor=100,  # they call it percent, and give shares of 1
        is_mean=True,
    ),
    *_latency("time_to_first_token", "requests", "vllm:time_to_first_token", "sglang:time_to_first_token"),
    *_latency(
        "inter_token_latency",
        "tokens",
        "vllm:inter_token_latency",
        "vllm:time_per_output_token",
        "sglang:inter_token_latency",
        "sglang:time_per_output_token",
    ),
)
_KNOWN = frozenset(source for metric in METRICS for source in metric.sources)


def read_metrics(text: str) -> dict[Metric, float]:
    """The values of `METRICS` in the text of a scrape; those that it lacks, and what isn't finite, are left out."""
    values: dict[str, list[float]] = {}
    for line in text.splitlines():
        if not line.startswith(("vllm:", "sglang:")):
            continue
        found = _LINE.fullmatch(line)
        if found and found[1] in _KNOWN and _is_first(dict(_LABEL.findall(found[2] or ""))):
            number = _number(found[3])
            if number is not None:
                values.setdefault(found[1], []).append(number)
    taken = {}
    for metric in METRICS:
        some = next((values[source] for source in metric.sources if source in values), None)
        if some:
            taken[metric] = metric.factor * sum(some) / (len(some) if metric.is_mean else 1)
    return taken


def labels_of(text: str, name: str) -> dict[str, str]:
    """The labels of the first sample called `name`; none where there is no such sample."""
    for line in text.splitlines():
        if line.startswith(name + "{") and (found := _LINE.fullmatch(line)):
            return dict(_LABEL.findall(found[2] or ""))
    return {}


class EngineMetrics:
    """Samples a server's metrics into the table `counters`, at most `len(METRICS)` rows per tick, until `stop`.

    Args:
        sink: Takes the rows.
        http: The server.
        host: Name of its machine, for the rows.
        hz: Ticks a second.
        sample: False: only look whether the server lives.
        patient: Ask on where an answer has no metrics: an engine that starts has none yet.
    """

    def __init__(
        self, sink: Sink, http: Http, host: str, *, hz: float = 1.0, sample: bool = True, patient: bool = False
    ) -> None:
        self._sink, self._http, self._host, self._period_s = sink, http, host, 1 / hz
        self._has_metrics, self._is_patient = sample, patient
        self._broken = self._tick = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inferometer-engine-metrics", daemon=True)
        self.samples = 0
        self.missing: str | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the server stopped answering: connections broke, or nobody listened, several times in a row."""
        return self._broken >= _GONE

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a question under way is not waited for longer than it may take. A second call does nothing."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_TIMEOUT_S + 1)

    def take(self) -> None:
        """One tick, now. For tests; the thread does it by itself."""
        self._tick += 1
        try:
            if self._has_metrics:
                self._scrape()
            elif self._tick % _ALIVE_EVERY == 1:
                self._http.get("/v1/models", _TIMEOUT_S)
            else:
                return
            self._broken = 0
        except NoAnswer as error:
            self._broken += error.is_gone
        except (InputError, Unavailable) as error:
            self._lack(f"no metrics of the engine: {error.message}")

    def _run(self) -> None:
        while not self._stop.is_set():
            self.take()
            self._stop.wait(self._period_s)

    def _scrape(self) -> None:
        began_ns = self._sink.clock.now()
        answer = self._http.get("/metrics", _TIMEOUT_S)
        at_ns = (began_ns + self._sink.clock.now()) // 2
        values = read_metrics(answer.text) if answer.is_ok else {}
        if self._stop.is_set():
            return
        if not values:
            self._lack(f"no metrics of the engine (/metrics: {answer.status}; SGLang has them with --enable-metrics)")
            return
        self.missing = None
        self._sink.add(
            "counters",
            len(values),
            {
                "metric": [metric.name for metric in values],
                "host": self._host,
                "time_ns": at_ns,
                "value": list(values.values()),
                "unit": [metric.unit for metric in values],
            },
        )
        self.samples += len(values)

    def _lack(self, what: str) -> None:
        self._has_metrics, self.missing = self._is_patient, what


def _is_first(labels: dict[str, str]) -> bool:
    return all(labels.get(name, "0") == "0" for name in ("tp_rank", "pp_rank"))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
