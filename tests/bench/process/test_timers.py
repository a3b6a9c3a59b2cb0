"""Timers on a pretended GPU: what they queue, in which order, and which time is the call's."""

from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from inferometer.bench.process.timers import Call, CannotTime, EventTimer, GraphTimer, make_timer

torch = pytest.importorskip("torch", reason="torch isn't installed")


class Gpu:
    """torch.cuda with a queue whose work is done when it is waited for: kernels of 10 µs on the stream."""

    def __init__(self) -> None:
        self.done = list[str]()
        self.now_us = 0.0
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                self.at = 0.0

            def record(self) -> None:
                gpu.done.append("record")
                self.at = gpu.now_us

            def synchronize(self) -> None:
                gpu.done.append("wait")

            def elapsed_time(self, other: "Event") -> float:
                return (other.at - self.at) / 1000

        class CUDAGraph:
            calls = 0

            def replay(self) -> None:
                gpu.done.append("replay")
                gpu.now_us += 10.0 * self.calls

        class Stream:
            def wait_stream(self, other: Any) -> None: ...

        self.Event, self.CUDAGraph, self.Stream, self.refuses = Event, CUDAGraph, Stream, False

    def _sleep(self, cycles: int) -> None:
        self.done.append("sleep")
        self.now_us += cycles / 2000

    def synchronize(self) -> None:
        self.done.append("synchronize")

    def kernel(self) -> None:
        self.done.append("kernel")
        self.now_us += 10.0

    def current_stream(self) -> Any:
        return self.Stream()

    @contextmanager
    def stream(self, stream: Any) -> Any:
        yield

    @contextmanager
    def graph(self, graph: Any) -> Any:
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        before = self.done.count("kernel")
        yield
        graph.calls = self.done.count("kernel") - before


class Torch:
    def __init__(self) -> None:
        self.cuda = Gpu()


@contextmanager
def no_mark() -> Any:
    yield


def timed(timer: Any, library: Torch, tensors: dict[str, Any] | None = None) -> Any:
    def call(given: Mapping[str, Any]) -> Any:
        library.cuda.kernel()
        return given["x"] * 2

    ready = lambda: library.cuda.done.append("ready")  # noqa: E731
    return timer(Call(0, call, {"x": torch.ones(4)} if tensors is None else tensors, ready, no_mark()))


def test_events_stand_around_the_call_behind_a_wait() -> None:
    library = Torch()
    found = timed(EventTimer(library), library)
    assert library.cuda.done[:6] == ["synchronize", "sleep", "ready", "record", "kernel", "record"]
    assert found.ns == pytest.approx(10_000)
    assert found.begin_ns <= found.end_ns
    assert found.found.tolist() == [2.0] * 4


def test_a_graph_s_time_is_that_of_one_of_its_calls() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1 << 20, cold=False)
    first, again = timed(timer, library), timed(timer, library, {"x": torch.full((4,), 3.0)})
    assert first.ns == again.ns == pytest.approx(10_000)
    assert library.cuda.done.count("replay") == 2
    assert library.cuda.done.count("kernel") == 2 + 8  # to warm up, and captured


def test_every_replay_has_one_set_of_fresh_inputs() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=0, cold=False)
    for value in range(20):
        timed(timer, library, {"x": torch.full((4,), float(value))})
    held = sorted(each["x"][0].item() for each in timer._captured[0].sets)
    assert held == [12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]


def test_a_cold_graph_turns_over_more_than_three_caches_or_isn_t_timed() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1024, cold=True)
    timed(timer, library, {"x": torch.ones(64)})
    assert len(timer._captured[0].sets) == 12
    with pytest.raises(CannotTime, match="turned over"):
        timed(GraphTimer(library, cache_bytes=1 << 20, cold=True), library)


def test_what_can_t_be_captured_says_so() -> None:
    library = Torch()
    library.cuda.refuses = True
    with pytest.raises(CannotTime, match="can't be captured as a graph: operation not permitted"):
        timed(GraphTimer(library, cache_bytes=1, cold=False), library)


def test_another_shape_is_captured_anew() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1, cold=False)
    timed(timer, library)
    timed(timer, library, {"x": torch.ones(5)})
    assert timer._captured[0].sets[0]["x"].shape == (5,)


@pytest.mark.parametrize("name", ["host", "cupti"])
def test_timers_of_the_host_s_clock_wait_for_nothing_else(name: str) -> None:
    library = Torch()
    found = timed(make_timer(library, name, "warm", 1), library)
    assert found.ns == found.end_ns - found.begin_ns
    assert library.cuda.done.count("synchronize") == (0 if name == "host" else 2)
