"""In the candidate's process: candidates called in turns on fresh inputs, each call timed by itself.

The clock, the inputs and the kernels that others are held against are loaded before the candidate. Every call gets
tensors that were drawn for it, in memory that the call before it didn't have, and its outputs are copied the moment its
time is over: what a thread or another stream writes later isn't in the copy.
"""

import _thread
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from inferometer.bench.process.caches import Caches
from inferometer.bench.process.interpreted import OwnTime
from inferometer.bench.process.lanes import ReadyCandidate
from inferometer.bench.process.tampering import Seal
from inferometer.bench.process.timers import Call, CannotTime, Timer, make_timer

CALL = "inferometer.call"
"""What a timed call is marked with in a profile; its number follows."""

_threads, _clock = _thread._count, time.perf_counter_ns


@dataclass
class Course:
    """A session of timed calls.

    Attributes:
        inputs: Draws an operator's tensors.
        device: Where.
        caches: What makes them cold or leaves them warm.
        own: Time in interpreted kernels of the candidate's file.
        lanes: The candidates, in the order of the request.
    """

    torch: Any
    inputs: Callable[..., dict[str, Any]]
    device: str
    caches: Caches
    own: OwnTime
    lanes: list[ReadyCandidate] = field(default_factory=list)
    sealed: Seal | None = None
    _at: int | None = None  # whose call it is
    _outputs: list[list[Any]] = field(default_factory=list)
    _held: list[Any] = field(default_factory=list)
    _timers: dict[tuple[str, str, str], Timer] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> "Course":
        """With all that is needed later: nothing of ours is imported once a candidate is loaded."""
        import torch.profiler

        from inferometer.operators import require_operator

        device = request["device"]
        caches = Caches.of(torch, device, request["cache_bytes"])
        files = frozenset(each["file"] for each in request["lanes"] if each["file"] is not None)
        return cls(torch, require_operator(request["operator"]).inputs, device, caches, OwnTime.watch(files))

    def begin(self, lanes: list[ReadyCandidate], sealed: Seal) -> None:
        """Once all are loaded."""
        self.lanes, self.sealed = lanes, sealed

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time a round of calls, or hand out the outputs of one of them."""
        if "show" in request:
            self.torch.save({"outputs": self._outputs[request["show"]], "inputs": {}}, request["outputs"])
            return {}
        try:
            return self._time(request)
        except CannotTime as error:
            return {"cannot": str(error)}
        except BaseException as error:
            error.lane = self._at  # type: ignore[attr-defined]  # reported with the message
            raise

    def _time(self, request: dict[str, Any]) -> dict[str, Any]:
        timer, threads = self._timer(request), _threads()
        rows: list[list[Any]] = []
        self._outputs, self.own.ns, self._at = [], 0, None
        with self._profiled(request.get("trace")), self.torch.no_grad():
            began = _clock()
            for seed, order in zip(request["seeds"], request["orders"], strict=True):
                drawn = self.inputs(**request["args"], seed=seed, device=self.device)
                rows += [self._call(lane, drawn, request, timer) for lane in order]
            took = _clock() - began
        own_ns = self.own.ns if self.own.known else None
        broken = self.sealed.broken() if self.sealed else []
        threads = _threads() - threads
        return {"calls": rows, "threads": threads, "broken": broken[:3], "own_ns": own_ns, "took_ns": took}

    def _call(self, at: int, drawn: Mapping[str, Any], request: dict[str, Any], timer: Timer) -> list[Any]:
        """The lane, begin and end on the host's clock, the call's own ns, and the ns of work that came after it."""
        self._at = at
        lane, args, mode, number = self.lanes[at], request["args"], request["mode"], len(self._outputs)
        before = self._held  # stays until these have memory: no call gets that of the call before
        tensors = {name: tensor.clone() for name, tensor in drawn.items()}
        self._held = list(tensors.values())
        del before
        mark = self.torch.profiler.record_function(f"{CALL} {number}") if request.get("trace") else nullcontext()
        call = Call(at, lambda given: lane.call(given, args), tensors, lambda: self.caches.prepare(mode, tensors), mark)
        found = timer(call)
        listed = list(found.found) if isinstance(found.found, tuple | list) else [found.found]
        copies = [each.clone() for each in listed if type(each) is self.torch.Tensor]
        lane.accept(found.found, tensors)
        self._outputs.append(copies)
        return [at, found.begin_ns, found.end_ns, found.ns, found.late_ns]

    def _timer(self, request: Mapping[str, Any]) -> Timer:
        """A timer is kept for a shape, since some learn."""
        key = (request["timer"], request["mode"], request["shape"])
        if key not in self._timers:
            self._timers.clear()
            self._timers[key] = make_timer(self.torch, request["timer"], request["mode"], self.caches.size_bytes)
        return self._timers[key]

    @contextmanager
    def _profiled(self, trace: str | None) -> Iterator[None]:
        """Under torch's profiler, where a file for the profile is named."""
        if trace is None:
            yield
            return
        kinds = self.torch.profiler.ProfilerActivity
        kinds = [kinds.CPU] if self.device == "cpu" else [kinds.CPU, kinds.CUDA]
        with self.torch.profiler.profile(activities=kinds) as profile:
            yield
        profile.export_chrome_trace(trace)
