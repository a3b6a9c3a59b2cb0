"""In the candidate's process on a GPU: timers of one call. Which of them ran is recorded; none stands in for another.

- events: two events in the device's queue. A wait is queued before them, so that the host has queued the whole call
  when the first is reached; work that the call left on other streams is found by how long the device still takes.
- graph: replays of a captured graph of several calls: for cold caches with more inputs than they hold, for warm ones
  again and again with those that half of them hold.
- cupti: the host's clock, and kernel times come from the profile that the calls are made under.
"""

import time
from collections.abc import Callable, Iterable, Mapping
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
    """Events around the call on the current stream.

    The wait before them is twice what the host took for the call before, and doubled as long as it is too short.
    """

    torch: Any
    _wait_ns: int = 0

    def __call__(self, call: Call) -> Timed:
        """Time it."""
        host_ns = 0

        def run() -> list[Any]:
            nonlocal host_ns
            begin = _clock()
            found = call.run(call.tensors)
            host_ns = _clock() - begin
            return found

        timed, was_short = _between_events(self.torch.cuda, self._wait_ns, call.ready, run)
        self._wait_ns = max(2 * host_ns, 2 * self._wait_ns if was_short else 0)
        return timed


@dataclass
class _Captured:
    """A graph of `calls` calls, on one set of inputs after the other; `found`: the outputs of the first on each."""

    graph: Any
    sets: list[dict[str, Any]]
    found: list[list[Any]]
    calls: int
    at: int = 0


@dataclass
class GraphTimer:
    """A graph of several calls, each on a set of inputs; every replay one of the sets is fresh.

    Cold means that the sets are more than three times the last cache; where they can't be, it doesn't time so. Warm
    means that they, and outputs of their size, take half of it at most, and each has its turn again until there are
    eight calls; of larger inputs there is one set. A kernel that writes into its inputs can't have another turn.
    """

    torch: Any
    cache_bytes: int
    cold: bool
    _captured: _Captured | None = None

    def __call__(self, call: Call) -> Timed:
        """Time it: a replay, over its calls.

        Raises:
            CannotTime: It can't be captured, or caches can't be as they should.
        """
        held = self._captured
        if held is None or not _same_kind(held.sets[0], call.tensors):
            held = self._captured = self._capture(call)
        held.at = (held.at + 1) % len(held.sets)
        for name, tensor in call.tensors.items():
            held.sets[held.at][name].copy_(tensor)
        timed, _ = _between_events(self.torch.cuda, 0, lambda: None, held.graph.replay)
        plain = self.torch.Tensor
        copies = [each.clone() if type(each) is plain else each for each in held.found[held.at]]
        return timed._replace(ns=timed.ns / held.calls, found=copies)

    def _capture(self, call: Call) -> _Captured:
        torch = self.torch
        sets = [{name: tensor.clone() for name, tensor in call.tensors.items()} for _ in range(self._sets(call))]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for each in sets[:2]:
                call.run(each)
        torch.cuda.current_stream().wait_stream(aside)
        graph, calls = torch.cuda.CUDAGraph(), max(_FEW, len(sets))
        try:
            with torch.cuda.graph(graph):
                found = [call.run(sets[i % len(sets)]) for i in range(calls)]
        except RuntimeError as error:
            raise CannotTime(f"its call can't be captured as a graph: {str(error).splitlines()[0]}") from error
        if calls > len(sets) and _shares_memory(found[0], sets[0].values()):
            raise CannotTime("it writes into its inputs, and caches don't hold as many as a graph needs")
        return _Captured(graph, sets, found[: len(sets)], calls)

    def _sets(self, call: Call) -> int:
        size: int = max(1, sum(tensor.numel() * tensor.element_size() for tensor in call.tensors.values()))
        if not self.cold:
            return max(1, min(_FEW, self.cache_bytes // (4 * size)))
        wanted = max(_FEW, ceil(3 * self.cache_bytes / size))
        if wanted > _MANY or wanted * size > _GRAPH_BYTES:
            raise CannotTime("its inputs can't be turned over in a graph so that caches are cold")
        return wanted


def _shares_memory(outputs: Iterable[Any], inputs: Iterable[Any]) -> bool:
    held = {each.untyped_storage().data_ptr() for each in inputs} - {0}  # of no memory
    return any(each.untyped_storage().data_ptr() in held for each in outputs if hasattr(each, "untyped_storage"))


def _between_events(cuda: Any, wait_ns: int, ready: Callable[[], None], run: Callable[[], Any]) -> tuple[Timed, bool]:
    """Time between two events around `run`, both queued behind a wait on the device; and whether that was too short."""
    first, last = (cuda.Event(enable_timing=True) for _ in range(2))
    cuda.synchronize()
    ready()
    cuda._sleep(ceil(min(max(wait_ns, _LEAST_WAIT_NS), _MOST_WAIT_NS) * _CYCLES_A_NS))
    begin = _clock()
    first.record()
    found = run()
    last.record()
    was_short = first.query()
    last.synchronize()
    own = _clock()
    cuda.synchronize()
    end = _clock()
    return Timed(begin, end, first.elapsed_time(last) * 1e6, end - own, found), was_short


def _same_kind(held: Mapping[str, Any], tensors: Mapping[str, Any]) -> bool:
    return all(held[name].shape == each.shape and held[name].dtype == each.dtype for name, each in tensors.items())
