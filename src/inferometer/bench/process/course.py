"""In the candidate's process: one candidate, called on fresh inputs whenever it is asked for.

On a CPU nothing here is timed: inputs lie in memory that we share with it, outputs are copied there, and the clock is
read in our process (`bench/lineup.py`). No seed, answer or time ever comes here. On a GPU times are those of the
device, which only this process can ask for; its inputs are drawn here, from a seed that comes right before the call,
and its outputs are copied the moment its time is over: what a thread or another stream writes later isn't in the copy.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from inferometer.bench.process.caches import Caches
from inferometer.bench.process.interpreted import OwnTime
from inferometer.bench.process.lanes import ReadyCandidate
from inferometer.bench.process.state import State
from inferometer.bench.process.timers import Call, CannotTime, Timer, make_timer
from inferometer.bench.process.views import Views

CALL = "inferometer.call"
"""What a timed call is marked with in a profile; its number follows."""

Inputs = Callable[..., dict[str, Any]]


@dataclass
class Course:
    """A session of timed calls.

    Attributes:
        device: Where.
        views: Of the memory that is shared, on a CPU.
        inputs: Draws an operator's tensors, on a GPU.
        caches: What makes them cold or leaves them warm, on a GPU.
        own: Time in interpreted kernels of the candidate's file.
    """

    torch: Any
    device: str
    own: OwnTime
    views: Views | None = None
    inputs: Inputs | None = None
    caches: Caches | None = None
    lane: ReadyCandidate | None = None
    state: State | None = None
    _round: Mapping[str, Any] = field(default_factory=dict)
    _profile: Any = None
    _number: int = 0
    _outputs: list[list[Any]] = field(default_factory=list)
    _held: list[Any] = field(default_factory=list)
    _timers: dict[tuple[str, str, str], Timer] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Mapping[str, Any], arenas: tuple[int, int]) -> "Course":
        """With all that is needed later: nothing of ours is imported once a candidate is loaded."""
        import torch.profiler

        device = request["device"]
        own = OwnTime.watch(frozenset(request["lane"]["files"]))
        if device == "cpu":
            return cls(torch, device, own, views=Views(torch, *arenas))
        from inferometer.bench.problems.jobs import inputs_for

        inputs = inputs_for(request["operator"], request["job"])
        return cls(torch, device, own, inputs=inputs, caches=Caches.of(torch, device))

    def begin(self, lane: ReadyCandidate, state: State) -> None:
        """Once it is loaded."""
        self.lane, self.state = lane, state

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """A round begins, is called for, ends; or what a call of it gave is asked for."""
        if "place" in request:
            return self._call(request["place"])
        if "seed" in request:
            return self._time(request["seed"])
        if "show" in request:
            self.torch.save({"outputs": self._outputs[request["show"]], "inputs": {}}, request["outputs"])
            return {}
        if "layout" in request:
            assert self.views is not None
            self.views.lay(request)
            return {}
        return self._end() if "end" in request else self._begin(request)

    def _begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._round, self._number, self._outputs, self.own.ns = request, 0, [], 0
        if request["trace"] is not None:
            kinds = self.torch.profiler.ProfilerActivity
            kinds = [kinds.CPU] if self.device == "cpu" else [kinds.CPU, kinds.CUDA]
            self._profile = self.torch.profiler.profile(activities=kinds)
            self._profile.__enter__()
        return {}

    def _end(self) -> dict[str, Any]:
        profile, self._profile = self._profile, None
        if profile is not None:
            profile.__exit__(None, None, None)
            profile.export_chrome_trace(self._round["trace"])
        return {"odd": self.state.odd() if self.state else [], "own_ns": self.own.ns if self.own.known else None}

    def _mark(self) -> AbstractContextManager[Any]:
        mark = self.torch.profiler.record_function(f"{CALL} {self._number}") if self._profile else nullcontext()
        self._number += 1
        return mark

    def _call(self, place: int) -> dict[str, Any]:
        """One on inputs in shared memory: what the outputs are that lie there now."""
        assert self.views is not None
        assert self.lane is not None
        tensors = self.views.take(place)
        with self.torch.no_grad():
            with self._mark():
                found = self.lane.call(tensors, self._round["args"], self._round["made"])
            return {"outputs": self.views.put(self.lane.accept(found, tensors))}

    def _time(self, seed: int) -> dict[str, Any]:
        """One by a timer of the device: begin and end on the host's clock, its ns, and the ns of work after it."""
        assert self.inputs is not None
        assert self.lane is not None
        assert self.caches is not None
        lane, caches, mode = self.lane, self.caches, self._round["mode"]
        args, made = self._round["args"], self._round["made"]
        before = self._held  # stays until these have memory: no call gets that of the call before
        tensors = self.inputs(**args, seed=seed, device=self.device)
        self._held = list(tensors.values())
        del before

        def run(given: Mapping[str, Any]) -> list[Any]:  # a graph's replays have inputs of their own
            return lane.listed(lane.call(given, args, made), given)

        call = Call(run, tensors, lambda: caches.prepare(mode, tensors), self._mark())
        try:
            with self.torch.no_grad():
                found = self._timer()(call)
                copies = [each.clone() for each in found.found if type(each) is self.torch.Tensor]
        except CannotTime as error:
            return {"cannot": str(error)}
        lane.accept(found.found, tensors)
        self._outputs.append(copies)
        return {"row": [found.begin_ns, found.end_ns, found.ns, found.late_ns]}

    def _timer(self) -> Timer:
        """A timer is kept for a shape, since some learn."""
        assert self.caches is not None
        key = (self._round["timer"], self._round["mode"], self._round["shape"])
        if key not in self._timers:
            self._timers.clear()
            self._timers[key] = make_timer(self.torch, key[0], key[1], self.caches.size_bytes)
        return self._timers[key]
