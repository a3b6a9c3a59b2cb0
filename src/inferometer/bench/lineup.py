"""Candidates side by side, each in a process of its own, and rounds of calls that take turns.

On a CPU the clock is ours: from the moment that a call's inputs are there to the moment that its answers are, in
memory that we read. The way there and back is within it, for every candidate alike. Inputs are drawn here and come
right before the call, so neither seeds nor what others answered are in a candidate's process. What it works between its
calls is seen from outside: CPU time, threads, children, signals. On a GPU each process times the device itself, and its
times must lie within ours.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from inferometer.bench.arena import ALIGNED, HALVES, Arena, Image, Kept, image_of, restore, size_of
from inferometer.bench.contracts import made_of
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.isolation import CandidateProcess, Deadline, Reply
from inferometer.bench.outside import Clock, Standing, cpu_ns, look_at
from inferometer.bench.session import Session

if TYPE_CHECKING:
    from torch import Tensor

_PATIENCE = 10  # times as long as expected
_PROFILER_S = 60.0  # to start, to end, to write
_UNKNOWN_CACHE = 64 << 20
_SPARE_BYTES = 1 << 20  # for outputs, more than the least: what is too large must be seen as such
_BESIDE_NS, _BESIDE_SHARE = 400_000, 0.25  # CPU time between calls: the least that is odd, and as a share of a call
_FREED_NS = 0.5  # a byte: giving memory back takes time, too
_LEAST_CALLS = 5
_CHILD_NS = 1_000_000  # of a process that it started, in a round


@dataclass(frozen=True)
class Round:
    """Calls in the order that they were made.

    Attributes:
        rows: Of each call the candidate's place, begin and end on the host's clock, its ns, and ns of work after it.
        sent_ns: The host's clock when they were asked for.
        received_ns: And when they were read.
        took_ns: All of it, without what a profiler takes to start and end.
        odd: Places of candidates, with what they did that they must not.
        busy: What they did besides their calls; in the first round of a shape libraries may.
        own_ns: In interpreted kernels of the candidate's file; None where that is unknown.
        cannot: Why the timer can't time so; then there are no rows.
        traces: The profiles, by place, where they were asked for.
    """

    rows: Sequence[Sequence[float]]
    sent_ns: int
    received_ns: int
    took_ns: int = 0
    odd: Sequence[tuple[int, str]] = ()
    busy: Sequence[tuple[int, str]] = ()
    own_ns: int | None = None
    cannot: str | None = None
    traces: Mapping[int, Path] = field(default_factory=dict)


class Lineup:
    """The processes of a heat, a context manager; places are those of `sessions`.

    Args:
        sessions: One for each candidate.
        cache_bytes: The last cache of a CPU; None: unknown, or a GPU.

    Raises:
        CandidateFailed: One can't be loaded; `lane` is its place.
    """

    def __init__(self, sessions: Sequence[Session], cache_bytes: int | None = None) -> None:
        self._operator, self._device = sessions[0].operator, sessions[0].device
        self._cache_bytes = 2 * (cache_bytes or _UNKNOWN_CACHE)
        self._over: Any = None
        with ExitStack() as opened:
            processes = [opened.enter_context(CandidateProcess(each, waits=False)) for each in sessions]
            self.lanes = [_make_lane(process, place) for place, process in enumerate(processes)]
            for lane in self.lanes:
                opened.callback(lane.clock.close)
            self._opened = opened.pop_all()

    def __enter__(self) -> "Lineup":
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    @property
    def pids(self) -> list[int]:
        """Numbers of all processes."""
        return [lane.process.pid for lane in self.lanes]

    @property
    def is_alive(self) -> bool:
        """Whether all can be asked again."""
        return all(lane.process.is_alive for lane in self.lanes)

    def concerns(self, place: int) -> tuple[str, ...]:
        """What one did, as the guard of its process reports it."""
        return self.lanes[place].process.concerns

    def time(self, request: Mapping[str, Any], *, expected_s: float, profile: bool = False) -> Round:
        """Calls of all candidates in turns.

        Args:
            request: `args`, `shape`, `mode`, `timer`; `seeds` of the turns and `orders` of the candidates in them;
                `out_bytes` of one call's outputs.
            expected_s: What it took before; ten times as long is too long.
            profile: Whether each process is to be profiled.

        Raises:
            CandidateFailed: One of them went wrong, or took too long.
        """
        seconds = _PATIENCE * expected_s + self.lanes[0].process.session.limits.seconds
        until = Deadline.after(seconds + (_PROFILER_S if profile else 0.0))
        places = sorted({place for order in request["orders"] for place in order})
        began = time.perf_counter_ns()
        traces = self._begin(places, request, until, profile=profile)
        sent, rows = time.perf_counter_ns(), list[list[Any]]()
        for seed, order in zip(request["seeds"], request["orders"], strict=True):
            for row in self._turn(seed, order, request, until):
                if isinstance(row, str):
                    self._end(places, until)
                    return Round((), began, time.perf_counter_ns(), cannot=row)
                rows.append(row)
        took = time.perf_counter_ns() - sent
        ended, busy = self._end(places, until)
        odd = [(place, words) for place, reply in ended.items() for words in reply.odd]
        own = [reply.own_ns for reply in ended.values() if reply.own_ns is not None]
        received = time.perf_counter_ns()
        return Round(rows, began, received, took, odd, busy, own_ns=sum(own) if own else None, traces=traces)

    def show(self, call: int) -> "tuple[Tensor, ...]":
        """The outputs of a call of the last round.

        Raises:
            CandidateFailed: It gave none.
        """
        place, number = self._calls[call]
        lane = self.lanes[place]
        with _blamed(place):
            if self._device != "cpu":
                return lane.process.show(number)
            return restore(*lane.kept[number])

    def _begin(
        self, places: Sequence[int], request: Mapping[str, Any], until: Deadline, *, profile: bool
    ) -> dict[int, Path]:
        self._calls: list[tuple[int, int]] = []
        told = {name: request[name] for name in ("args", "shape", "mode", "timer")}
        told["made"] = made_of(self._operator, request["args"])
        traces = {place: self.lanes[place].process.files / "trace.json.gz" for place in places if profile}
        for place in places:
            with _blamed(place):
                self.lanes[place].begin({**told, "trace": str(traces[place]) if profile else None}, until)
        return traces

    def _end(self, places: Sequence[int], until: Deadline) -> tuple[dict[int, Reply], list[tuple[int, str]]]:
        """What each replies, and what it did besides its calls."""
        replies, busy = {}, []
        for place in places:
            with _blamed(place):
                lane = self.lanes[place]
                busy += [(place, words) for words in lane.beside()]
                replies[place] = lane.process.exchange(b'{"end": true}\n', until)[0]
        return replies, busy

    def _turn(
        self, seed: int, order: Sequence[int], request: Mapping[str, Any], until: Deadline
    ) -> "Iterator[list[Any] | str]":
        """A row of each call; or why the timer can't time so."""
        image = None
        if self._device == "cpu":
            image = image_of(self._operator.inputs(**request["args"], seed=seed, device="cpu"))
        for place in order:
            lane = self.lanes[place]
            with _blamed(place):
                if image is None:
                    row = lane.call_on_gpu(seed, until)
                else:
                    lane.lay(image, 2 * int(request.get("out_bytes", 0)) + _SPARE_BYTES)
                    if request["mode"] == "cold":
                        self._flush()
                    row = lane.call(image, until)
            self._calls.append((place, lane.number - 1))
            yield row if isinstance(row, str) else [place, *row]

    def _flush(self) -> None:
        """The CPU's last cache, which all processes share, written over."""
        if self._over is None:
            self._over = np.empty(self._cache_bytes, dtype=np.uint8)
        self._over.fill(0)


@dataclass
class _Lane:
    """One process, and what is known of it between calls."""

    process: CandidateProcess
    standing: Standing
    clock: Clock
    layout: Any = None
    half: int = 0
    number: int = 0  # of the round's next call
    kept: list[Kept] = field(default_factory=list)
    freed_bytes: int = 0
    cpu: int | None = None
    beside_ns: list[int] = field(default_factory=list)
    call_ns: list[float] = field(default_factory=list)
    round_began: Standing = field(default_factory=Standing)

    def begin(self, request: Mapping[str, Any], until: Deadline) -> None:
        """A round."""
        self.number, self.kept, self.beside_ns, self.call_ns = 0, [], [], []
        self.process.exchange(json.dumps(request).encode() + b"\n", until)
        self.cpu = None
        self.round_began = look_at(self.process.pid)

    def lay(self, image: Image, least_out: int) -> None:
        """Both memories are large enough, and mapped there with tensors of this layout."""
        inputs, outputs = self._memory()
        half = max(ALIGNED, image.size)
        grew = inputs.hold(HALVES * half) | outputs.hold(least_out)
        if grew or (image.layout, half) != (self.layout, self.half):
            places = [half * i for i in range(HALVES)]
            told = {"layout": image.layout, "places": places, "size": inputs.size, "out": outputs.size}
            self.process.ask(told)
            self.layout, self.half, self.cpu = image.layout, half, None

    def call(self, image: Image, until: Deadline) -> list[Any]:
        """Begin, end, ns, and ns after it: one call by our clock, its outputs kept."""
        inputs, outputs = self._memory()
        place = self.number % HALVES
        line = b'{"place": %d}\n' % place
        inputs.write(image, place * self.half)
        before = self.clock.start()
        reply, begin, end = self.process.exchange(line, until)
        ns = self.clock.stop(end - begin)
        if reply.outputs is None:
            raise CandidateFailed("it gave no outputs")
        data = outputs.read(min(outputs.size, size_of(reply.outputs)), 0)
        if before is not None and self.cpu is not None:
            self.beside_ns.append(before - self.cpu)
        self.call_ns.append(ns)
        self.cpu = cpu_ns(self.process.pid)
        self.kept.append((data, reply.outputs))
        self.freed_bytes = len(data)
        self.number += 1
        return [begin, end, ns, 0]

    def call_on_gpu(self, seed: int, until: Deadline) -> "list[Any] | str":
        """One call as its process times it, within our clock; or why the timer can't."""
        reply, begin, end = self.process.exchange(b'{"seed": %d}\n' % seed, until)
        self.number += 1
        if reply.cannot is not None:
            return reply.cannot
        if reply.row is None or not begin <= reply.row[0] <= reply.row[1] <= end:
            raise CandidateFailed("its times aren't within the time that its call took")
        return list(reply.row)

    def beside(self) -> list[str]:
        """What it did in the round that isn't timed."""
        now = look_at(self.process.pid)
        found = now.since(self.standing, self.round_began, busy_ns=_CHILD_NS)
        self.standing = now
        if len(self.beside_ns) >= _LEAST_CALLS:
            allowed = max(_BESIDE_NS, _BESIDE_SHARE * median(self.call_ns)) + _FREED_NS * self.freed_bytes
            if (spent := median(self.beside_ns)) > allowed:
                found.append(f"it worked for {spent / 1000:,.0f} \u03bcs between calls: work that isn't timed")
        return found

    def _memory(self) -> tuple[Arena, Arena]:
        assert self.process.inputs is not None
        assert self.process.outputs is not None
        return self.process.inputs, self.process.outputs


def _make_lane(process: CandidateProcess, place: int) -> _Lane:
    """They load side by side."""
    with _blamed(place):
        process.wait_until_loaded()
    return _Lane(process, look_at(process.pid), Clock(process.pid))


@contextmanager
def _blamed(place: int) -> Iterator[None]:
    """What fails is this candidate's."""
    try:
        yield
    except CandidateFailed as failed:
        failed.lane = place
        raise
