"""How fast candidates are that are right: each compared with the base, in turns, both in processes of their own.

Where a candidate fails while it is timed, its result says so and its times are dropped. The base's times are those that
it had next to the first candidate; ratios always from calls that stood side by side.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inferometer.bench.candidates import Candidate
from inferometer.bench.conditions import Watch, drop_throttled
from inferometer.bench.correct import OnProgress, Plan
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.isolation import while_alive
from inferometer.bench.lineup import Lineup
from inferometer.bench.profiles.attribution import attribute_device, attribute_host
from inferometer.bench.profiles.kernel_times import kernel_times
from inferometer.bench.race import Caught, Pace, Race, Times
from inferometer.bench.results import Attribution, Mode, ShapeResult, Timing, Versus
from inferometer.bench.samples import compare_times, summarize_times
from inferometer.bench.session import Session
from inferometer.bench.variants import vary
from inferometer.errors import InputError
from inferometer.operators.operator import Operator

USUAL = "usual"

MOSTLY_OWN = 0.9
"""Share of the time in kernels of its own below which a candidate that defines some is told to use others."""

_SHOWN = 4


@dataclass(frozen=True)
class Heat:
    """Candidates that take turns: the base first, or one alone.

    `shapes`: labels and arguments of those that all of them have right.
    """

    operator: Operator
    candidates: tuple[Candidate, ...]
    shapes: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass
class Measured:
    """What timing adds to the result of one candidate on one shape."""

    timings: list[Timing] = field(default_factory=list)
    versus: list[Versus] = field(default_factory=list)
    attribution: Attribution | None = None
    concerns: list[str] = field(default_factory=list)
    failure: str | None = None

    @property
    def says_something(self) -> bool:
        """Whether it was timed, or why it wasn't."""
        return bool(self.timings or self.concerns or self.failure)

    def on(self, result: ShapeResult) -> ShapeResult:
        """The result with it; without times where the candidate failed."""
        if self.failure is not None:
            return msgspec.structs.replace(result, failure=self.failure)
        return msgspec.structs.replace(
            result,
            timings=tuple(self.timings),
            versus=tuple(self.versus),
            attribution=self.attribution,
            own_share=None if self.attribution is None else self.attribution.own,
            concerns=tuple(dict.fromkeys((*result.concerns, *self.concerns))),
        )


def time_heat(
    heat: Heat, plan: Plan, pace: Pace, watch: Watch, cache_bytes: int | None, on_progress: OnProgress
) -> Iterator[tuple[str, list[Measured]]]:
    """By shape, what came of each candidate; a new process after one ended."""
    sessions = [
        Session(
            heat.operator,
            each,
            plan.device,
            timed=True,
            limits=plan.limits,
            sandbox=plan.sandbox and each.file is not None,
        )
        for each in heat.candidates
    ]
    left = list(heat.shapes)
    while left:
        try:
            with Lineup(sessions, cache_bytes) as lineup:
                for pid in lineup.pids:
                    watch.add_own(pid)
                for label, args in while_alive(left, lambda: lineup.is_alive):
                    on_progress(f"times of {heat.candidates[-1].name} for {heat.operator.name}, {label}")
                    yield label, _time_shape(heat, lineup, label, args, plan, pace, watch)
        except CandidateFailed as failed:  # it can't be loaded
            for label, _args in left:
                yield label, _blame(heat, failed, str(failed))
            return


def _time_shape(
    heat: Heat, lineup: Lineup, label: str, args: Mapping[str, Any], plan: Plan, pace: Pace, watch: Watch
) -> list[Measured]:
    found = [Measured() for _ in heat.candidates]
    try:
        for kind, given in [(USUAL, args), *vary(heat.operator, args)]:
            race = _race(heat, lineup, f"{label} {kind}", given, plan, pace)
            for mode in pace.modes if kind == USUAL else pace.modes[:1]:
                _add(race.run(mode), found, heat, mode, kind, pace, watch)
            if kind == USUAL:
                _attribute(race, found, heat, plan.device)
    except (Caught, CandidateFailed) as failed:
        return _blame(heat, failed, str(failed))
    for place, each in enumerate(found):
        told = lineup.concerns(place)
        each.concerns += told
        if told and plan.strict:
            return _blame(heat, Caught(place, ""), f"with --strict: {told[0]}")
    return found


def _race(heat: Heat, lineup: Lineup, shape: str, args: Mapping[str, Any], plan: Plan, pace: Pace) -> Race:
    operator = heat.operator
    written = operator.work(**args).written_bytes
    return Race(lineup, operator, shape, args, len(heat.candidates), plan.device, pace, written, device_times)


def device_times(path: Path) -> Sequence[float]:
    """Of every call in a profile, ns; 0 of one without work for the device.

    Raises:
        CandidateFailed: It doesn't say.
    """
    try:
        found = kernel_times(path)
    except InputError as error:
        raise CandidateFailed(f"the profile of its calls can't be read: {error.message}") from error
    if found.lost or found.damage:
        raise CandidateFailed(f"the profiler lost {found.lost} launches: another --timer measures without it")
    return [float(ns) for ns in found.busy_ns]


def _add(times: Times, found: list[Measured], heat: Heat, mode: Mode, kind: str, pace: Pace, watch: Watch) -> None:
    """Times of one mode to every candidate, without turns in which the device throttled."""
    if times.cannot is not None:
        for each in found:
            each.concerns.append(f"not timed with {mode} caches: {times.cannot}")
        return
    kept = ~np.logical_or.reduce([_throttled(spans, watch) for spans in times.spans])
    dropped = int((~kept).sum())
    if not kept.any():
        for each in found:
            each.concerns.append(f"not timed with {mode} caches: the device throttled all the time")
        return
    ns = [np.asarray(each)[kept].tolist() for each in times.ns]
    for place, each in enumerate(found):
        timing = summarize_times(
            ns[place], mode=mode, timer=pace.timer, checked=times.checked[place], dropped=dropped, inputs=kind
        )
        each.timings.append(timing)
        if not timing.steady and kind == USUAL:
            each.concerns.append(f"{mode}: not steady when the time was over")
        if place and kind == USUAL:
            each.versus.append(compare_times(heat.candidates[0].name, ns[0], ns[place], mode))


def _throttled(spans: Sequence[tuple[float, float]], watch: Watch) -> Any:
    starts, ends = np.asarray(spans).T
    return drop_throttled(starts, ends, watch.throttled_spans())


def _attribute(race: Race, found: list[Measured], heat: Heat, device: str) -> None:
    """Whose code the time of each candidate went to, from calls of their own.

    Raises:
        Caught: None of the kernels that a candidate defines ran.
    """
    for lane, (each, candidate) in enumerate(zip(found, heat.candidates, strict=True)):
        own = candidate.own_kernels
        profiled = race.profile(lane, "host" if device == "cpu" else "cupti")
        trace = profiled.traces.get(lane)
        if trace is None:
            continue
        with suppress(InputError):  # a profile without work of the device: nothing is reported
            if device == "cpu":
                each.attribution = attribute_host(trace, profiled.own_ns if own else None)
            else:
                each.attribution = attribute_device(trace, own or None)
        if not own or each.attribution is None:
            continue
        if each.attribution.own == 0:
            to = next(iter(each.attribution.by_name), "nothing")
            raise Caught(lane, f"it defines {', '.join(sorted(own)[:3])}, but none of these ran: the time went to {to}")
        each.concerns += _decoy(each.attribution)


def _decoy(found: Attribution) -> list[str]:
    """Whether others than its own kernels take a good part of the time, with the shares of the largest."""
    if found.own is None or found.own >= MOSTLY_OWN:
        return []
    parts = ", ".join(f"{name} {share:.0%}" for name, share in list(found.by_name.items())[:_SHOWN])
    return [f"its own kernels take {found.own:.0%} of its time; by name, the largest first: {parts}"]


def _blame(heat: Heat, failed: Caught | CandidateFailed, reason: str) -> list[Measured]:
    """One failed, the last where it isn't known which; of the others nothing is known."""
    at = len(heat.candidates) - 1 if failed.lane is None else failed.lane
    return [Measured(failure=reason if place == at else None) for place in range(len(heat.candidates))]
