"""In the candidate's process on a GPU: timers of one call. Which of them ran is recorded; none stands in for another.

- events: two events in the device's queue. A wait is queued before them, so that the host has queued the whole call
  when the first is reached; work that the call left on other streams is found by how long the device still takes.
- graph: replays of a captured graph of several calls, each with inputs of its own.
- cupti: the host's clock, and kernel times come from the profile that the calls are made under.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

_clock = time.perf_counter_ns
_CYCLES_A_NS = 2.0  # at most: the wait on the device must not be shorter than asked for
_LEAST_WAIT_NS, _MOST_WAIT_NS = 50_000, 20_000_000
_FEW, _MANY = 8, 64  # calls in a graph
_GRAPH_BYTES = 16 << 30  # of inputs in a graph


class CannotTime(Exception):
    """This timer can't time this kernel so; the message says why."""


class Call(NamedTuple):
    """A call to be timed.

    Attributes:
        run: The kernel, of tensors by name: its outputs in the contract's order.
        tensors: For this call.
        ready: Makes caches as they should be; comes right before the call.
        mark: Is entered around the call.
    """

    run: Callable[[Mapping[str, Any]], list[Any]]
    tensors: Mapping[str, Any]
    ready: Callable[[], None]
    mark: AbstractContextManager[Any]


class Timed(NamedTuple):
    """Host's clock at begin and end, ns of the call, ns of work that ended after it, and the call's outputs."""

    begin_ns: int
    end_ns: int
    ns: float
    late_ns: int
    found: list[Any]


Timer = Callable[[Call], Timed]


def make_timer(torch: Any, name: str, mode: str, cache_bytes: int) -> Timer:
    """The timer of this name."""
    if name == "events":
        return EventTimer(torch)
    if name == "graph":
        return GraphTimer(torch, cache_bytes, cold=mode == "cold")
    return lambda call: _time_under_profiler(torch, call)


def _time_under_profiler(torch: Any, call: Call) -> Timed:
    """Each call has ended on the device before the next is made ready."""
    call.ready()
    torch.cuda.synchronize()
    with call.mark:
        begin = _clock()
        found = call.run(call.tensors)
        end = _clock()
    torch.cuda.synchronize()
    return Timed(begin, end, end - begin, 0, found)


@dataclass
class EventTimer:
    """Events around the call on the current stream."""

    torch: Any
    _host_ns: int = 0  # of the call before

    def __call__(self, call: Call) -> Timed:
        """Time it."""

        def run() -> list[Any]:
            begin = _clock()
            found = call.run(call.tensors)
            self._host_ns = _clock() - begin
            return found

        return _between_events(self.torch.cuda, 2 * self._host_ns, call.ready, run)


@dataclass
class _Captured:
    graph: Any
    sets: list[dict[str, Any]]
    found: list[list[Any]]
    at: int = 0


@dataclass
class GraphTimer:
    """A graph of several calls, each on a set of inputs; every replay one of the sets is fresh.

    Cold means that the sets are more than three times the last cache; where they can't be, it doesn't time so.
    """

    torch: Any
    cache_bytes: int
    cold: bool
    _captured: _Captured | None = None

    def __call__(self, call: Call) -> Timed:
        """Time it: a replay, over its calls.

        Raises:
            CannotTime: It can't be captured, or caches can't be cold.
        """
        held = self._captured
        if held is None or not _same_kind(held.sets[0], call.tensors):
            held = self._captured = self._capture(call)
        held.at = (held.at + 1) % len(held.sets)
        for name, tensor in call.tensors.items():
            held.sets[held.at][name].copy_(tensor)
        timed = _between_events(self.torch.cuda, 0, lambda: None, held.graph.replay)
        plain = self.torch.Tensor
        copies = [each.clone() if type(each) is plain else each for each in held.found[held.at]]
        return timed._replace(ns=timed.ns / len(held.sets), found=copies)

    def _capture(self, call: Call) -> _Captured:
        torch = self.torch
        sets = [{name: tensor.clone() for name, tensor in call.tensors.items()} for _ in range(self._sets(call))]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for each in sets[:2]:
                call.run(each)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                found = [call.run(each) for each in sets]
        except RuntimeError as error:
            raise CannotTime(f"its call can't be captured as a graph: {str(error).splitlines()[0]}") from error
        return _Captured(graph, sets, found)

    def _sets(self, call: Call) -> int:
        size: int = max(1, sum(tensor.numel() * tensor.element_size() for tensor in call.tensors.values()))
        wanted = max(_FEW, ceil(3 * self.cache_bytes / size)) if self.cold else _FEW
        if wanted <= _MANY and wanted * size <= _GRAPH_BYTES:
            return wanted
        if self.cold:
            raise CannotTime("its inputs can't be turned over in a graph so that caches are cold")
        return max(1, int(_GRAPH_BYTES // size))


def _between_events(cuda: Any, wait_ns: int, ready: Callable[[], None], run: Callable[[], Any]) -> Timed:
    """Time between two events around `run`, both queued behind a wait on the device."""
    first, last = (cuda.Event(enable_timing=True) for _ in range(2))
    cuda.synchronize()
    cuda._sleep(ceil(min(max(wait_ns, _LEAST_WAIT_NS), _MOST_WAIT_NS) * _CYCLES_A_NS))
    ready()
    begin = _clock()
    first.record()
    found = run()
    last.record()
    last.synchronize()
    own = _clock()
    cuda.synchronize()
    end = _clock()
    return Timed(begin, end, first.elapsed_time(last) * 1e6, end - own, found)


def _same_kind(held: Mapping[str, Any], tensors: Mapping[str, Any]) -> bool:
    return all(held[name].shape == each.shape and held[name].dtype == each.dtype for name, each in tensors.items())
