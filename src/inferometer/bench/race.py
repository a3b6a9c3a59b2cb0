"""Calls of candidates in turns, until their medians stand still or the time for it is over.

All get the same inputs, drawn anew for every turn, and the order changes from turn to turn. Statistics are made here,
where no candidate's code runs, and outputs of calls that were timed are compared with the reference, picked after the
fact.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from inferometer.bench.comparison import compare_outputs
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.lineup import Lineup, Round
from inferometer.bench.results import Mode, Timer
from inferometer.bench.samples import is_steady
from inferometer.hardware.measure.timing import STEADY
from inferometer.operators.operator import Operator

SEED_BITS = 62

_ROUND_S = 0.2  # about what a round of calls takes
_MOST_TURNS = 256  # of a round
_KEPT_BYTES = 2 << 30  # of outputs that a round leaves to be picked from
_SETTLE_SHARE = 0.5  # of the time for samples, at most, for warming up
_LEAST_ROUNDS = 2
_TURNS_CHECKED = 4  # of a round, where there are as many
_CHECK_SHARE = 0.5  # of the time for samples that comparing may take, between the first round and the last
_PROFILED = 5  # calls
_LATE_NS, _LATE_SHARE, _LEAST_LATE = 50_000, 0.1, 3  # a device with nothing left to do says so sooner; of calls

ProfileTimes = Callable[[Path], Sequence[float]]
"""A profile to the ns of device work of every call in it."""


@dataclass(frozen=True)
class Pace:
    """How calls are timed.

    Attributes:
        timer: Of all calls.
        seconds: At most for the samples of a shape in one mode, of all candidates together.
        modes: States of the caches.
    """

    timer: Timer
    seconds: float
    modes: tuple[Mode, ...] = ("cold", "warm")


@dataclass
class Times:
    """Of the candidates of one heat, in one mode: ns turn by turn, and begin and end on the host's clock.

    `checked`: how many answers of each were compared. `cannot`: why the timer can't time so; then there are no times.
    """

    ns: list[list[float]]
    spans: list[list[tuple[float, float]]]
    checked: list[int]
    cannot: str | None = None

    @classmethod
    def of(cls, lanes: int) -> "Times":
        """Empty times for so many candidates."""
        return cls([[] for _ in range(lanes)], [[] for _ in range(lanes)], [0] * lanes)


class Caught(Exception):
    """A candidate was wrong, or did what it must not, while it was timed; `lane` is its place, None: whoever it was."""

    def __init__(self, lane: int | None, reason: str) -> None:
        super().__init__(reason)
        self.lane = lane


@dataclass
class Race:
    """One shape for the candidates of a heat.

    Attributes:
        lineup: Their processes.
        outputs_bytes: Of one call.
        of_profile: Times of calls from a profile.
        clock: Says when the time is over, in seconds.
    """

    lineup: Lineup
    operator: Operator
    shape: str
    args: Mapping[str, Any]
    lanes: int
    device: str
    pace: Pace
    outputs_bytes: int
    of_profile: ProfileTimes
    clock: Callable[[], float] = time.perf_counter
    _turn_s: float = 0.0  # what a turn took, in the last round

    def run(self, mode: Mode) -> Times:
        """Warm up, then sample.

        Raises:
            CandidateFailed: One of them gave no answer.
            Caught: One was wrong.
        """
        turns, times = self._settle(mode), Times.of(self.lanes)
        if isinstance(turns, str):
            times.cannot = turns
            return times
        began, rounds, checking = self.clock(), 0, 0.0
        while True:
            seeds = [secrets.randbits(SEED_BITS) for _ in range(turns)]
            found = self._round(mode, seeds)
            _take(found, times)
            rounds += 1
            now = self.clock()
            over = now - began - checking >= self.pace.seconds
            done = rounds >= _LEAST_ROUNDS and (over or all(map(is_steady, times.ns)))
            if done or rounds == 1 or checking < _CHECK_SHARE * (now - began - checking):
                self._check(found, seeds, times)
                checking += self.clock() - now
            if done:
                return times

    def profile(self, lane: int, timer: Timer) -> Round:
        """A few calls of one candidate, under the profiler.

        Raises:
            CandidateFailed: It gave no answer.
        """
        seeds = [secrets.randbits(SEED_BITS) for _ in range(_PROFILED)]
        asked = self._request("warm", seeds, [[lane]] * _PROFILED) | {"timer": timer}
        return self.lineup.time(asked, expected_s=_PROFILED * self._turn_s, profile=True)

    def _settle(self, mode: Mode) -> int | str:
        """Run until two rounds agree or the time for it is over: how many turns a round takes; or why none can be."""
        began, before, turns = self.clock(), None, 1
        while True:
            found = self._round(mode, [secrets.randbits(SEED_BITS) for _ in range(turns)], is_first=before is None)
            if found.cannot is not None:
                return found.cannot
            now = [median(ns) for ns in _take(found, Times.of(self.lanes)).ns]
            turns = self._turns()
            if before is not None and all(abs(a - b) <= STEADY * a for a, b in zip(now, before, strict=True)):
                return turns
            if before is not None and self.clock() - began >= _SETTLE_SHARE * self.pace.seconds:
                return turns
            before = now

    def _turns(self) -> int:
        """Of the next round: as many as fit in its time, and as leave no more outputs than there is room for."""
        kept = _KEPT_BYTES // max(1, self.outputs_bytes * self.lanes)
        return max(1, min(_MOST_TURNS, int(_ROUND_S / max(self._turn_s, 1e-6)), kept))

    def _round(self, mode: Mode, seeds: Sequence[int], *, is_first: bool = False) -> Round:
        """In the first one of a shape, libraries may still start threads of their own: to compile."""
        places = list(range(self.lanes))
        orders = [places[:: 1 if turn % 2 else -1] for turn in range(len(seeds))]
        asked = self._request(mode, seeds, orders)
        expected_s = self._turn_s * len(seeds)
        found = self.lineup.time(asked, expected_s=expected_s, profile=self.pace.timer == "cupti")
        if found.cannot is not None:
            return found
        self._turn_s = found.took_ns * 1e-9 / len(seeds)
        own_times = self.device != "cpu" and self.pace.timer == "host"
        refuse_odd(replace(found, busy=()) if is_first else found, orders, own_times=own_times)
        if not found.traces:
            return found
        by_place = {place: iter(self.of_profile(path)) for place, path in found.traces.items()}
        kernel_ns = [next(by_place[int(row[0])]) for row in found.rows]
        idle = next((int(row[0]) for row, ns in zip(found.rows, kernel_ns, strict=True) if not ns), None)
        if idle is not None:
            raise Caught(idle, "a call of it had no work for the device: nothing to time")
        return replace(found, rows=[[*row[:3], ns, 0.0] for row, ns in zip(found.rows, kernel_ns, strict=True)])

    def _request(self, mode: Mode, seeds: Sequence[int], orders: Sequence[Sequence[int]]) -> dict[str, Any]:
        return {
            "args": dict(self.args),
            "shape": self.shape,
            "seeds": list(seeds),
            "orders": list(orders),
            "mode": mode,
            "timer": self.pace.timer,
            "out_bytes": self.outputs_bytes,
        }

    def _check(self, found: Round, seeds: Sequence[int], times: Times) -> None:
        """Compare the answers of a few turns, picked now, with the reference."""
        for turn in secrets.SystemRandom().sample(range(len(seeds)), min(_TURNS_CHECKED, len(seeds))):
            self._check_turn(turn, found, seeds[turn], times)

    def _check_turn(self, turn: int, found: Round, seed: int, times: Times) -> None:
        tensors = self.operator.inputs(**self.args, seed=seed, device=self.device)
        wanted = self.operator.answer(tensors, self.args)
        for call in range(turn * self.lanes, (turn + 1) * self.lanes):
            lane = int(found.rows[call][0])
            compared = compare_outputs(self.operator, self.lineup.show(call), wanted, self.args, tensors)
            wrong = next((check for check in compared if not check.is_right), None)
            if wrong is not None:
                raise Caught(lane, f"a timed call was wrong: {wrong.output}: {wrong.reason}")
            times.checked[lane] += 1


def refuse_odd(found: Round, orders: Sequence[Sequence[int]], *, own_times: bool) -> None:
    """Refuse what an honest round can't be.

    Args:
        found: The round.
        orders: As they were asked for.
        own_times: Whether candidates' processes timed their calls by the host's clock. What we time is CPU time too,
            which may be longer than a call: several threads take it, and the end of one call as the next begins.

    Raises:
        CandidateFailed: Times aren't within the round, as this process saw it, or calls are missing.
        Caught: Functions were replaced, modes left on, work done between calls or left to other streams.
    """
    for lane, words in (*found.odd, *found.busy):
        raise Caught(lane, words)
    if [row[0] for row in found.rows] != [lane for order in orders for lane in order]:
        raise CandidateFailed("its calls aren't those that were asked for")
    now = float(found.sent_ns)
    for _lane, begin, end, ns, _late in found.rows:
        if not (now <= begin <= end <= found.received_ns and 0 <= ns < float("inf")):
            raise CandidateFailed("its times aren't within the time that the round took")
        if own_times and ns > end - begin:
            raise CandidateFailed("a call took longer than from its begin to its end")
        now = end
    _refuse_late(found.rows)


def _refuse_late(rows: Sequence[Sequence[float]]) -> None:
    """Whether the device still works when the call's own stream is done: in most calls, as one may be chance."""
    by_lane: dict[int, list[tuple[float, float]]] = {}
    for lane, _begin, _end, ns, late in rows:
        by_lane.setdefault(int(lane), []).append((late, ns))
    for lane, pairs in by_lane.items():
        late, ns = (median(values) for values in zip(*pairs, strict=True))
        if len(pairs) >= _LEAST_LATE and late > max(_LATE_NS, _LATE_SHARE * ns):
            words = f"work on another stream went on for {late / 1000:,.0f} µs after the call's own stream was done"
            raise Caught(lane, words)


def _take(found: Round, times: Times) -> Times:
    for lane, begin, end, ns, _late in found.rows:
        times.ns[int(lane)].append(ns)
        times.spans[int(lane)].append((begin, end))
    return times
