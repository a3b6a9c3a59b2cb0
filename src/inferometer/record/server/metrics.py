"""What an engine counts of itself: a few of its Prometheus metrics once a second, as counters named `engine.`.

The names are data, with their sources: `metrics.json`; vLLM's, SGLang's and TGI's. Metrics were renamed over time: of
several names for one thing the newest that is there counts. Sums and counts of latencies grow over the server's life:
their differences are what happened meanwhile. Requests, tokens and seconds are added up over engines; usage is their
mean. Of several tensor- or pipeline-parallel ranks the first counts. TGI has no latency between tokens: the time of its
decode batches, each of which makes one token of each request, stands for it.

While a server has no metrics, `/v1/models` is asked now and then, to see that it lives: SGLang's `/health` would
generate a token.
"""

import math
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from inferometer.errors import InputError, Unavailable
from inferometer.record.server.http import Http, NoAnswer
from inferometer.record.sink import Sink

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TIMEOUT_S = 5.0
_MOST_SAMPLES = 4096  # of one name: an engine has one per model and rank
_LONGEST_LINE = 4096  # of a sample: labels are names and numbers
_GONE = 3  # so many broken connections in a row, and the server is gone
_ALIVE_EVERY = 5  # ticks


class Metric(msgspec.Struct, frozen=True):
    """One of ours: its unit, what the engines call it (newest first), and by what its values are multiplied.

    `grows`: a count or a sum over the server's life. `is_mean`: over engines; others are added up. `labels`: what a
    sample of that name must have to be the one that is meant.
    """

    name: str
    unit: str
    names: tuple[str, ...]
    factor: float = 1.0
    is_mean: bool = False
    grows: bool = False
    labels: dict[str, dict[str, str]] = {}

    def __hash__(self) -> int:
        return hash(self.name)


class _Known(msgspec.Struct):
    sources: list[str]
    metrics: tuple[Metric, ...]


METRICS = msgspec.json.decode(Path(__file__).with_name("metrics.json").read_bytes(), type=_Known).metrics
GROWING = frozenset(metric.name for metric in METRICS if metric.grows)


def read_metrics(text: str) -> dict[Metric, float]:
    """The values of `METRICS` in the text of a scrape; those that it lacks, and what isn't finite, are left out."""
    text, taken = "\n" + text, {}
    for metric in METRICS:
        for name in metric.names:
            if values := [*_values_of(text, name, metric.labels.get(name, {}))]:
                value = metric.factor * sum(values) / (len(values) if metric.is_mean else 1)
                if math.isfinite(value):
                    taken[metric] = value
                break
    return taken


def _values_of(text: str, name: str, wanted: Mapping[str, str]) -> Iterator[float]:
    """Of the samples called `name`, `_MOST_SAMPLES` at most. Most lines of a scrape aren't looked at."""
    at, seen = text.find("\n" + name), 0
    while at >= 0 and seen < _MOST_SAMPLES:
        end = text.find("\n", at + 1)
        line = text[at + 1 : None if end < 0 else end][:_LONGEST_LINE]
        found = _LINE.fullmatch(line)
        if found and found[1] == name:
            labels = dict(_LABEL.findall(found[2] or ""))
            number = _number(found[3])
            if number is not None and _is_first(labels) and wanted.items() <= labels.items():
                yield number
        seen += 1
        at = text.find("\n" + name, at + 1)


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
            hint = "" if self.samples else "; SGLang has them with --enable-metrics"
            self._lack(f"no metrics of the engine (/metrics: {answer.status}{hint})")
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
