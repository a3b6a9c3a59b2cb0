"""Intervals of an engine's metrics, and a watched engine that is slow for a while, starts anew, and ends."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.watch.serving import hook
from tests.watch.streams import run_watch

from inferometer.commands import watch
from inferometer.record.journal.rolling import RollingStore
from inferometer.record.server.metrics import EngineMetrics
from inferometer.trace.store import read_store
from inferometer.watch.engine import Readings
from inferometer.watch.intervals import Intervals


def _reading(tokens: float, seconds: float, running: float = 4.0, prompt: float = 0.0) -> dict[str, float]:
    return {
        "engine.inter_token_latency_sum": seconds,
        "engine.inter_token_latency_count": tokens,
        "engine.generated_tokens": tokens,
        "engine.prompt_tokens": prompt,
        "engine.requests_running": running,
        "engine.kv_cache_usage": 25.0,
    }


def test_an_interval_is_the_mean_of_its_tokens() -> None:
    intervals = Intervals()
    assert intervals.add(10**9, _reading(100, 2.0)) is None
    step = intervals.add(3 * 10**9, _reading(150, 3.5, running=8, prompt=600))
    assert step is not None
    assert (step.start_ns, step.dur_ns) == (10**9, 30_000_000)
    assert step.work == (300.0, 6.0, 25.0)


def test_without_latencies_tokens_and_requests_say_it() -> None:
    kept = ("engine.generated_tokens", "engine.requests_running")
    readings = [{name: one[name] for name in kept} for one in (_reading(100, 0), _reading(180, 0))]
    intervals = Intervals()
    intervals.add(0, readings[0])
    step = intervals.add(10**9, readings[1])
    assert step is not None
    assert step.dur_ns == 50_000_000  # four requests, 80 tokens in a second


@pytest.mark.parametrize(
    ("at_ns", "second"),
    [
        (2 * 10**9, _reading(100, 2.0)),  # no tokens
        (2 * 10**9, _reading(102, 2.1)),  # too few
        (2 * 10**9, _reading(5, 0.1)),  # it started anew
        (10**9, _reading(200, 4.0)),  # the clock stands
        (2 * 10**9, {"engine.requests_running": 4.0}),
        (2 * 10**9, {}),
    ],
)
def test_an_interval_that_says_nothing_is_none(at_ns: int, second: dict[str, float]) -> None:
    intervals = Intervals()
    intervals.add(10**9, _reading(100, 2.0))
    assert intervals.add(at_ns, second) is None


def test_rows_are_handed_on_and_those_of_the_engine_read(tmp_path: Path) -> None:
    readings: list[tuple[int, dict[str, float]]] = []
    both: dict[str, Any] = {"metric": ["engine.requests_running", "engine.kv_cache_usage"], "value": [1.0, 2.0]}
    with RollingStore(tmp_path / "run.ifm") as store:
        sink = Readings(store, lambda at_ns, values: readings.append((at_ns, dict(values))))
        sink.add("counters", 2, {**both, "time_ns": 5, "unit": ["requests", "%"], "host": "h"})
        sink.add("counters", 1, {"metric": "gpu_temperature", "time_ns": 6, "value": 7.0, "unit": "C"})
        sink.lose("counter_unavailable", 2, example="NVML")
    assert readings == [(5, {"engine.requests_running": 1.0, "engine.kv_cache_usage": 2.0})]
    trace = read_store(tmp_path / "run.ifm")
    assert trace.counters.collect().height == 3
    assert trace.losses.total("counter_unavailable") == 2


def test_counters_of_this_machine_are_no_cause_of_an_engine_elsewhere(tmp_path: Path) -> None:
    readings: list[int] = []
    rows: dict[str, Any] = {"value": [1.0], "time_ns": 5, "unit": ["requests"], "host": "h"}
    with RollingStore(tmp_path / "run.ifm") as store:
        sink = Readings(store, lambda at_ns, _: readings.append(at_ns), is_elsewhere=True)
        sink.add("counters", 1, {"metric": ["engine.requests_running"], **rows})
        sink.add("counters", 1, {"metric": ["others_cpu_usage"], **rows})
        sink.add("counters", 1, {"metric": "gpu_temperature", "time_ns": 6, "value": 7.0, "unit": "C"})
    assert readings == [5]
    assert read_store(tmp_path / "run.ifm").counters.collect()["metric"].to_list() == ["engine.requests_running"]


@pytest.mark.usefixtures("quick")
def test_of_an_engine_elsewhere_only_its_own_metrics_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("record.server.sampling", "watch.engine"):
        monkeypatch.setattr(f"inferometer.{module}.is_this_machine", lambda host: False)
    engine = _Engine(slow_from=80)
    _until(monkeypatch, lambda: engine.readings > 160)
    kept = tmp_path / "kept.ifm"
    with _serving(engine) as url:
        _, out, err = run_watch(url, "--json", "--hz", "20", "-o", str(kept))
    assert {name.partition(".")[0] for name in read_store(kept).counters.collect()["metric"]} == {"engine"}
    assert "counters of 127.0.0.1" in err
    (slow,) = json.loads(out)["slowdowns"]
    assert slow["why"] is None or slow["why"]["metric"] is None


class _Engine:
    """Counts tokens as if it made one in 10 ms for each of 4 requests, in 20 ms from the reading `slow_from` on."""

    def __init__(self, slow_from: int = 10**9, body: bytes | None = None) -> None:
        self.readings, self.tokens, self.seconds = 0, 0.0, 0.0
        self._slow_from, self._body = slow_from, body

    def metrics(self) -> bytes:
        self.readings += 1
        if self._body is not None:
            return self._body
        self.tokens += 400
        self.seconds += 400 * (0.02 if self.readings > self._slow_from else 0.01)
        return (
            f"vllm:num_requests_running 4\nvllm:generation_tokens_total {self.tokens}\n"
            f"vllm:inter_token_latency_seconds_sum {self.seconds}\n"
            f"vllm:inter_token_latency_seconds_count {self.tokens}\n"
        ).encode()


@contextmanager
def _serving(engine: _Engine) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = engine.metrics() if self.path == "/metrics" else b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings fifty times a second, so that a test takes seconds."""
    made = EngineMetrics.__init__

    def quickly(self: EngineMetrics, *args: Any, **given: Any) -> None:
        made(self, *args, **{**given, "hz": 50.0})

    monkeypatch.setattr(EngineMetrics, "__init__", quickly)


def _until(monkeypatch: pytest.MonkeyPatch, is_over: Callable[[], bool]) -> None:
    """Ends a watch when something has happened, however long that takes."""
    monkeypatch.setattr(watch, "_until", lambda length: is_over)


@pytest.mark.usefixtures("quick")
def test_an_engine_that_becomes_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine(slow_from=80)
    _until(monkeypatch, lambda: engine.readings > 200)
    kept = tmp_path / "kept.ifm"
    with _serving(engine) as url:
        code, out, err = run_watch(url, "--json", "--fail-on", "alarm", "-o", str(kept))
    found = json.loads(out)
    (slow,) = found["slowdowns"]
    assert (code, found["unit"], found["state"]) == (1, "interval", "slow")
    assert (slow["step"], slow["steps_to_alarm"] <= 30) == (79, True)
    assert slow["phases"][0]["ratio"] == pytest.approx(2, rel=0.01)
    assert "took 2.00 times the expected time" in err
    _, out, _ = run_watch(str(kept), "--json")
    again = json.loads(out)
    assert again["steps"] >= found["steps"]  # of readings while the watch came to its end, too
    assert again["slowdowns"][0]["step"] == 79


@pytest.mark.usefixtures("quick")
def test_a_webhook_and_prometheus_have_the_alarm_and_a_restart_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _Engine(slow_from=80)
    kept = tmp_path / "kept.ifm"
    scraped: list[str] = []

    def is_over() -> bool:
        if engine.readings > 150 and not scraped:
            scraped.append(_scraped(said))
        return engine.readings > 160

    said: list[str] = []
    monkeypatch.setattr("click.echo", lambda text="", **_: said.append(str(text)))
    _until(monkeypatch, is_over)
    with _serving(engine) as url, hook() as (address, got):
        words = url, "-o", str(kept), "--no-why", "--no-live", "--webhook", f"{address}/SECRET", "--listen", "0"
        run_watch(*words)
        _until(monkeypatch, lambda: engine.readings > 260)
        code, out, _ = run_watch(*words, "--json", "--fail-on", "alarm")
    assert [document["event"] for _, _, document in got] == ["alarm"]
    assert got[0][2]["slowdown"]["step"] == 79
    assert not any("SECRET" in line for line in said)
    assert 'inferometer_watch_state{state="slow"} 1.0' in scraped[0]
    found = json.loads(out)
    assert (code, found["state"], found["steps"] > 200, len(found["slowdowns"])) == (1, "slow", True, 1)
    assert any(line.startswith("Goes on with what was learned of ") for line in said)
    assert json.loads(run_watch(str(kept), "--json", "--no-why")[1])["slowdowns"][0]["step"] == 79


def _scraped(said: list[str]) -> str:
    (address,) = [line.rpartition(" ")[2] for line in said if line.startswith("Prometheus can scrape ")]
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.usefixtures("quick")
def test_what_was_learned_of_another_engine_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine()
    (tmp_path / "kept.ifm.learned").write_text("{")
    _until(monkeypatch, lambda: engine.readings > 60)
    with _serving(engine) as url:
        code, _, err = run_watch(url, "-o", tmp_path / "kept.ifm", "--no-live")
    assert code == 0
    assert "Learned anew: " in err
    assert "kept.ifm.learned: can't be replaced" in err or "it is not replaced" in err
    assert (tmp_path / "kept.ifm.learned").read_text() == "{"


@pytest.mark.usefixtures("quick")
def test_a_store_that_no_watch_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    code, _, err = run_watch("http://127.0.0.1:9", "-o", tmp_path / "mine", "--for", "1")
    assert code == 3
    assert "it is not replaced" in err


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xff\xfe\x00" * 999, b"<html>no</html>"),
        *(b"vllm:num_requests_running{" * 9999, b"vllm:generation_tokens_total NaN\n"),
    ],
)
def test_a_body_that_is_no_metrics_is_said_and_borne(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine(body=body)
    _until(monkeypatch, lambda: engine.readings > 5)
    with _serving(engine) as url:
        code, _, err = run_watch(url)
    assert code == 3
    assert "expected steps, found none" in err
    assert "no metrics of the engine" in err


@pytest.mark.usefixtures("quick")
def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    _until(monkeypatch, lambda: bool(said))
    monkeypatch.setattr("click.echo", lambda text, **_: said.append(text))
    code, _, _ = run_watch("http://127.0.0.1:9")
    assert code == 3
    assert said[0] == "Waiting: nothing answers at http://127.0.0.1:9"
