"""Engines that answer what no engine would: a watch bears it, takes bounded time and memory, and asks nobody else."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.record.journal.rolling import RollingStore
from inferometer.record.server import metrics
from inferometer.record.server.http import MOST_BYTES, Http
from inferometer.record.server.metrics import EngineMetrics, read_metrics
from inferometer.trace.store import read_store
from inferometer.watch.engine import Readings
from inferometer.watch.intervals import Intervals
from inferometer.watch.watcher import Watcher

_NAMES = [metric.name for metric in metrics.METRICS]
_VALID = "vllm:num_requests_running 4\nvllm:generation_tokens_total 10\n"


@contextmanager
def _talking(talk: Callable[[socket.socket], object]) -> Iterator[tuple[str, list[int]]]:
    """A server whose every connection is `talk`; its address, and the bytes that each took."""
    taken: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(5)
                        taken.append(0)
                        connection.recv(4096)
                        talk(_Counting(connection, taken))  # type: ignore[arg-type]

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        finally:
            stop.set()
            thread.join()


class _Counting:
    def __init__(self, connection: socket.socket, taken: list[int]) -> None:
        self._connection, self._taken = connection, taken

    def sendall(self, data: bytes) -> None:
        self._connection.sendall(data)
        self._taken[-1] += len(data)


def _asked(talk: Callable[[socket.socket], object], path: Path, times: int = 1) -> tuple[EngineMetrics, list[int]]:
    """Of an engine that talks so: what was asked, and the bytes that it took."""
    with _talking(talk) as (url, taken), RollingStore(path) as store:
        asking = EngineMetrics(Readings(store, lambda *_: None), Http(url), "h", patient=True)
        for _ in range(times):
            asking.take()
    return asking, taken


def _answer(body: bytes, head: bytes = b"") -> Callable[[socket.socket], object]:
    return lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body)


def test_a_body_of_a_gigabyte_is_left_after_some_megabytes(tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n" + _VALID.encode())
        for _ in range(1024):
            connection.sendall(b"x" * (1 << 20))

    asking, (taken,) = _asked(talk, tmp_path / "run.ifm")
    assert taken < MOST_BYTES + (16 << 20)  # what the system's buffers hold
    assert asking.missing is not None
    assert "longer than 8 MiB" in asking.missing
    assert not asking.is_gone


def test_an_answer_that_drips_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_TIMEOUT_S", 0.3)

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(40):
            connection.sendall(b"#")
            threading.Event().wait(0.05)

    asking, _ = _asked(talk, tmp_path / "run.ifm")
    assert asking.samples == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_nowhere(tmp_path: Path, status: int) -> None:
    with _talking(_answer(_VALID.encode())) as (elsewhere, asked_elsewhere):
        head = f"HTTP/1.1 {status} x\r\nLocation: {elsewhere}/metrics\r\n\r\n".encode()
        asking, taken = _asked(lambda connection: connection.sendall(head), tmp_path / "run.ifm")
    assert (len(taken), asked_elsewhere) == (1, [])
    assert asking.missing is not None
    assert "sends elsewhere" in asking.missing


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\x00" * 100_000, b"\xff\xfe" * 9999, b"{" * 100_000, b"vllm:" * 99_999),
        b"vllm:num_requests_running{" * 9999,
        b'vllm:num_requests_running{a="' + b"\\" * 100_000,
        b"vllm:num_requests_running NaN\nvllm:generation_tokens_total +Inf\n",
        b"vllm:num_requests_running 1e999\n",
        b"vllm:num_requests_running 0x10\nvllm:num_requests_running 1 2 3\n",
        b"vllm:num_requests_runningx 3\n" * 100_000,
        "vllm:num_requests_running ٣\n".encode(),
    ],
)
def test_what_is_no_metrics_gives_none(tmp_path: Path, body: bytes) -> None:
    asking, _ = _asked(_answer(body), tmp_path / "run.ifm", times=2)
    rows = read_store(tmp_path / "run.ifm").counters.collect()
    assert rows["value"].is_finite().all()
    assert asking.samples == rows.height
    assert rows.height == (2 if "٣".encode() in body else 0)  # Python's float reads digits of any script


def test_labels_with_markup_go_nowhere(tmp_path: Path) -> None:
    body = 'vllm:num_requests_running{model="<script>\\"} 9 \x1b[2J"} 4\n'
    _asked(_answer(body.encode()), tmp_path / "run.ifm")
    (row,) = read_store(tmp_path / "run.ifm").counters.collect().rows(named=True)
    assert (row["metric"], row["value"]) == ("engine.requests_running", 4.0)
    assert b"script" not in b"".join(path.read_bytes() for path in (tmp_path / "run.ifm").iterdir())


def test_metrics_that_come_and_go(tmp_path: Path) -> None:
    answers = iter(["", _VALID, "x", _VALID])

    def talk(connection: socket.socket) -> None:
        _answer(next(answers).encode())(connection)

    asking, _ = _asked(talk, tmp_path / "run.ifm", times=4)
    assert asking.samples == 4
    assert asking.missing is None


def test_a_million_samples_of_one_name_are_not_all_read() -> None:
    text = "".join(f'vllm:num_requests_running{{engine="{number}"}} 1\n' for number in range(100_000))
    assert read_metrics(text)[metrics.METRICS[0]] == 4096


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 10**6).map(float)
_READINGS = st.dictionaries(st.sampled_from(_NAMES), _NUMBERS)


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), _READINGS), max_size=60))
def test_any_readings_at_any_times_are_borne(readings: list[tuple[int, dict[str, float]]]) -> None:
    intervals, watcher = Intervals(), Watcher()
    for at_ns, values in readings:
        if step := intervals.add(at_ns, values):
            assert step.dur_ns > 0
            assert all(0 <= amount < 1e15 for amount in step.work)
            watcher.add(step)


@given(st.lists(st.tuples(st.integers(1, 10**15), st.tuples(*[st.floats(0, 1e15)] * 3)), min_size=40, max_size=90))
def test_steps_of_any_time_and_work_are_judged(steps: list[tuple[int, tuple[float, ...]]]) -> None:
    from inferometer.watch.steps import WatchedStep

    watcher, at_ns = Watcher(), 0
    for took_ns, work in steps:
        watcher.add(WatchedStep(at_ns, took_ns, None, None, work))
        at_ns += took_ns
    assert all(drift == drift for _, _, drift in watcher.drifts())


def test_an_engine_that_starts_anew_is_no_slowdown() -> None:
    def reading(tokens: float) -> dict[str, float]:
        return {"engine.inter_token_latency_count": tokens, "engine.inter_token_latency_sum": tokens / 100}

    intervals, watcher, changes = Intervals(), Watcher(), []
    for second in range(400):
        step = intervals.add(second * 10**9, reading(100.0 * (second % 130)))
        changes += [watcher.add(step)[1]] if step else []
    assert len(changes) == 396  # of 399: three restarts
    assert not any(changes)


def test_a_clock_that_jumps_ahead_is_one_long_interval() -> None:
    intervals = Intervals()
    values = {"engine.inter_token_latency_count": 0.0, "engine.inter_token_latency_sum": 0.0}
    intervals.add(0, values)
    jumped = {"engine.inter_token_latency_count": 100.0, "engine.inter_token_latency_sum": 1.0}
    step = intervals.add(3600 * 10**9, jumped)
    assert step is not None
    assert step.dur_ns == 10_000_000
    assert intervals.add(1800 * 10**9, {name: 2 * value for name, value in jumped.items()}) is None
