"""Timers on a pretended GPU: what they queue, in which order, and which time is the call's."""

from collections.abc import Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from inferometer.bench.process.timers import Call, CannotTime, EventTimer, GraphTimer, make_timer

torch = pytest.importorskip("torch", reason="torch isn't installed")


class Gpu:
    """torch.cuda with a queue whose work is done when it is waited for: kernels of 10 µs on the stream."""

    def __init__(self) -> None:
        self.done = list[str]()
        self.slept = list[int]()
        self.is_ahead = False  # of the host: its queue was empty when the call was queued
        self.now_us = 0.0
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                self.at, self.is_timed = 0.0, enable_timing

            def record(self) -> None:
                gpu.done.append("record")
                self.at = gpu.now_us

            def synchronize(self) -> None:
                gpu.done.append("wait")

            def query(self) -> bool:
                return gpu.is_ahead

            def elapsed_time(self, other: "Event") -> float:
                if not (self.is_timed and other.is_timed):
                    raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
                return (other.at - self.at) / 1000

        class CUDAGraph:
            calls = 0

            def replay(self) -> None:
                gpu.done.append("replay")
                gpu.now_us += 10.0 * self.calls

        class Stream:
            def wait_stream(self, other: Any) -> None:
                gpu.done.append("wait for a stream")

        self.Event, self.CUDAGraph, self.Stream, self.refuses = Event, CUDAGraph, Stream, False

    def _sleep(self, cycles: int) -> None:
        self.done.append("sleep")
        self.slept.append(cycles)
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
    Tensor = torch.Tensor

    def __init__(self) -> None:
        self.cuda = Gpu()


@contextmanager
def no_mark() -> Any:
    yield


def timed(timer: Any, library: Torch, tensors: dict[str, Any] | None = None) -> Any:
    def call(given: Mapping[str, Any]) -> list[Any]:
        library.cuda.kernel()
        return [given["x"] * 2]

    ready = lambda: library.cuda.done.append("ready")  # noqa: E731
    return timer(Call(call, {"x": torch.ones(4)} if tensors is None else tensors, ready, no_mark()))


def test_events_stand_around_the_call_behind_a_wait() -> None:
    library = Torch()
    found = timed(EventTimer(library), library)
    around = ["synchronize", "ready", "sleep", "record", "kernel", "record", "wait", "synchronize"]
    assert library.cuda.done == around
    assert found.ns == pytest.approx(10_000)
    assert found.begin_ns <= found.end_ns
    assert [each.tolist() for each in found.found] == [[2.0] * 4]


def test_a_graph_s_time_is_that_of_one_of_its_calls() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1 << 20, cold=False)
    first, again = timed(timer, library), timed(timer, library, {"x": torch.full((4,), 3.0)})
    assert first.ns == again.ns == pytest.approx(10_000)
    assert library.cuda.done.count("replay") == 2
    assert library.cuda.done.count("kernel") == 2 + 8  # to warm up, and captured


def test_the_stream_that_warms_up_and_the_caller_s_wait_for_each_other() -> None:
    library = Torch()
    timed(GraphTimer(library, cache_bytes=1 << 20, cold=False), library)
    assert library.cuda.done[:4] == ["wait for a stream", "kernel", "kernel", "wait for a stream"]


def test_every_replay_has_one_set_of_fresh_inputs() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1 << 20, cold=False)
    for value in range(20):
        timed(timer, library, {"x": torch.full((4,), float(value))})
    assert timer._captured is not None
    held = sorted(each["x"][0].item() for each in timer._captured.sets)
    assert held == [12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]


def test_a_cold_graph_turns_over_more_than_three_caches_or_isn_t_timed() -> None:
    library = Torch()
    timer = GraphTimer(library, cache_bytes=1024, cold=True)
    timed(timer, library, {"x": torch.ones(64)})
    assert sets_of(timer) == 12
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
    assert held_by(timer)["x"].shape == (5,)
    timed(timer, library, {"x": torch.ones(5, dtype=torch.int32)})
    assert held_by(timer)["x"].dtype == torch.int32
    for size in (2, 3):
        timed(timer, library, {"x": torch.ones(5), "y": torch.ones(size)})
        assert held_by(timer)["y"].shape == (size,)


def found_in(timer: GraphTimer) -> int:
    assert timer._captured is not None
    return len(timer._captured.found)


def test_a_warm_graph_of_large_inputs_has_eight_calls_on_them_whose_mean_is_told() -> None:
    timer = GraphTimer(library := Torch(), cache_bytes=1, cold=False)
    assert timed(timer, library).ns == pytest.approx(10_000)
    assert sets_of(timer) == 1


def test_a_kernel_that_writes_into_large_inputs_has_no_warm_graph() -> None:
    def in_place(given: Mapping[str, Any]) -> list[Any]:
        return [given["x"].mul_(2)]

    def call() -> Call:
        return Call(in_place, {"x": torch.ones(4)}, lambda: None, no_mark())

    with pytest.raises(CannotTime, match=r"^it writes into its inputs, and caches don't hold as many as"):
        GraphTimer(Torch(), cache_bytes=16, cold=False)(call())
    assert GraphTimer(Torch(), cache_bytes=1 << 20, cold=False)(call()).found is not None


def held_by(timer: GraphTimer) -> dict[str, Any]:
    assert timer._captured is not None
    return timer._captured.sets[0]


def sets_of(timer: GraphTimer) -> int:
    assert timer._captured is not None
    return len(timer._captured.sets)


def test_under_the_profiler_each_call_ends_before_the_next_is_made_ready() -> None:
    library = Torch()
    found = timed(make_timer(library, "cupti", "warm", 1), library)
    assert found.ns == found.end_ns - found.begin_ns
    assert library.cuda.done == ["ready", "synchronize", "kernel", "synchronize"]
    assert found.late_ns == 0


def test_a_timer_is_made_by_its_name_and_a_graph_for_its_caches() -> None:
    library = Torch()
    assert make_timer(library, "events", "cold", 5) == EventTimer(library)
    assert make_timer(library, "graph", "cold", 5) == GraphTimer(library, 5, cold=True)
    assert make_timer(library, "graph", "warm", 5) == GraphTimer(library, 5, cold=False)


def tick(monkeypatch: pytest.MonkeyPatch, ns: int) -> None:
    """A host's clock that goes on by this much whenever it is read."""
    ticks = count(1)
    monkeypatch.setattr("inferometer.bench.process.timers._clock", lambda: next(ticks) * ns)


def test_the_host_s_clock_is_read_around_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    tick(monkeypatch, 7)
    assert timed(make_timer(library := Torch(), "cupti", "cold", 1), library)[:4] == (7, 14, 7, 0)


def test_what_ends_after_the_second_event_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    tick(monkeypatch, 7)  # read at the begin, twice around the call, at the second event, and when all is done
    found = timed(EventTimer(library := Torch()), library)
    assert (found.begin_ns, found.end_ns, found.late_ns) == (7, 35, 7)


@pytest.mark.parametrize(
    ("host_ns", "cycles"),
    [(1, 100_000), (25_000, 100_000), (25_001, 100_004), (1_000_000, 4_000_000), (10**8, 40_000_000)],
)
def test_the_wait_is_twice_what_the_host_took_for_the_last_call(
    monkeypatch: pytest.MonkeyPatch, host_ns: int, cycles: int
) -> None:
    """Two cycles a ns, from 50 µs to 20 ms."""
    tick(monkeypatch, host_ns)
    timer = EventTimer(library := Torch())
    for _ in range(2):
        timed(timer, library)
    assert library.cuda.slept == [100_000, cycles]


def test_a_wait_that_was_too_short_is_doubled_until_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    tick(monkeypatch, 50_000)
    timer = EventTimer(library := Torch())
    for is_ahead in (True, True, True, False, False):
        library.cuda.is_ahead = is_ahead
        timed(timer, library)
    assert library.cuda.slept == [100_000, 200_000, 400_000, 800_000, 200_000]


def of_bytes(size: int) -> dict[str, Any]:
    """An input without memory."""
    return {"x": torch.empty(size, dtype=torch.uint8, device="meta")}


GIB, MIB = 2**30, 2**20
CACHE = 64 * MIB


@pytest.mark.parametrize(
    ("size", "sets"), [(0, 8), (1, 8), (2 * MIB, 8), (2 * MIB + 1, 7), (5 * MIB, 3), (16 * MIB, 1), (400 * MIB, 1)]
)
def test_a_warm_graph_has_eight_sets_or_what_half_of_the_cache_holds_with_their_outputs(size: int, sets: int) -> None:
    timer = GraphTimer(library := Torch(), cache_bytes=CACHE, cold=False)
    for _ in range(2):
        timed(timer, library, of_bytes(size))
    assert sets_of(timer) == sets
    assert library.cuda.done.count("kernel") == 8 + min(sets, 2)  # captured once, whatever the number of sets
    assert found_in(timer) == sets


@pytest.mark.parametrize(
    ("cache", "size", "sets"),
    [
        *((20, 1, 60), (1, 1000, 8), (3000, 1000, 9), (3001, 1000, 10), (64_000, 3000, 64), (64_001, 3000, None)),
        *((GIB, GIB, 8), (5 * GIB, 2 * GIB, 8), (3 * GIB, GIB, 9), (16 * GIB, 3 * GIB, None)),
    ],
)
def test_a_cold_graph_has_three_caches_in_at_most_64_sets_of_16_gib(cache: int, size: int, sets: int | None) -> None:
    timer = GraphTimer(library := Torch(), cache_bytes=cache, cold=True)
    if sets is None:
        with pytest.raises(CannotTime, match=r"^its inputs can't be turned over in a graph so that caches are cold$"):
            timed(timer, library, of_bytes(size))
    else:
        timed(timer, library, of_bytes(size))
        assert sets_of(timer) == sets


def test_a_graph_s_answers_are_copied_before_the_next_replay_writes_them() -> None:
    timer = GraphTimer(Torch(), cache_bytes=1, cold=False)
    call = Call(lambda given: [given["x"] * 2, given["x"] * 3], {"x": torch.ones(2)}, lambda: None, no_mark())
    found = timer(call).found
    assert timer._captured is not None
    for held in timer._captured.found:
        for each in held:
            each.zero_()
    assert [each.tolist() for each in found] == [[2.0, 2.0], [3.0, 3.0]]


def test_what_a_graph_s_kernel_gives_besides_tensors_is_left_for_whoever_judges_it() -> None:
    timer = GraphTimer(Torch(), cache_bytes=1, cold=False)
    found = timer(Call(lambda given: [None, 3], {"x": torch.ones(2)}, lambda: None, no_mark())).found
    assert found == [None, 3]
