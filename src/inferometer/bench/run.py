"""Every candidate on every shape, right first, then fast, and all of it as one run that a file can hold."""

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec

from inferometer import __version__
from inferometer.backends import require_backend
from inferometer.bench.calibration import read_calibration
from inferometer.bench.candidates import Candidate, Candidates
from inferometer.bench.conditions import Watch
from inferometer.bench.correct import OnProgress, Plan, check_operator
from inferometer.bench.evaluation import Evaluation
from inferometer.bench.fast import Heat, time_heat
from inferometer.bench.machine import Machine, describe_machine
from inferometer.bench.manifest import take_manifest
from inferometer.bench.race import Pace
from inferometer.bench.results import Bound, Conditions, Run, ShapeResult
from inferometer.bench.shapes import ChosenShapes
from inferometer.bench.timer_choice import TimerChoice
from inferometer.hardware.device import Device
from inferometer.operators import operators
from inferometer.operators.bounds import bounds_of
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES


def evaluate(
    asked: Sequence[ChosenShapes],
    candidates: Candidates,
    plan: Plan,
    *,
    pace: Pace | None = None,
    timer: TimerChoice | None = None,
    bounds: Device | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Evaluation:
    """All that was asked; `pace` None: no times. `bounds`: the device whose bounds times are compared with."""
    packages = [
        package for each in candidates.chosen if each.file is None for package in require_backend(each.name).packages
    ]
    machine = describe_machine(plan.device, packages)
    results: dict[tuple[str, str, str], ShapeResult] = {}
    read_calibration()  # before any candidate runs
    manifest = take_manifest()
    changed: str | None = None
    watch = None if pace is None else Watch(machine.on)
    with watch or nullcontext():
        for one in asked:
            for candidate in candidates.chosen:
                if candidate.serves(one.operator.name):
                    results |= {_key(found): found for found in check_operator(one, candidate, plan, on_progress)}
                    if changed := manifest.why_not():
                        break
            if pace is not None and watch is not None and not changed:
                _time(one, candidates.chosen, plan, pace, watch, machine, results, on_progress)
                changed = manifest.why_not()
            if changed:
                results = {key: _untrusted(each, candidates, changed) for key, each in results.items()}
                break
    found = tuple(_bounded(each, bounds or machine.device) for each in results.values())
    run = _run(candidates, plan, pace, timer, machine, found, Conditions() if watch is None else watch.conditions())
    return Evaluation(run, candidates.refused, Losses(ALL_TABLES))


def _time(
    asked: ChosenShapes,
    candidates: Sequence[Candidate],
    plan: Plan,
    pace: Pace,
    watch: Watch,
    machine: Machine,
    results: dict[tuple[str, str, str], ShapeResult],
    on_progress: OnProgress,
) -> None:
    """Times of the base with each of the others into `results`; of whoever is right alone, without the other."""
    base, *others = candidates
    timed: set[tuple[str, str, str]] = set()

    def is_right(candidate: Candidate, label: str) -> bool:
        found = results.get((asked.operator.name, candidate.name, label))
        return found is not None and found.is_right

    def run(heat: Heat) -> None:
        for label, found in time_heat(heat, plan, pace, watch, machine.cache_bytes, on_progress) if heat.shapes else ():
            for candidate, measured in zip(heat.candidates, found, strict=True):
                key = (asked.operator.name, candidate.name, label)
                if key not in timed and measured.says_something:
                    results[key] = measured.on(results[key])
                    timed.add(key)

    for other in others:
        right = [each for each in asked.shapes if is_right(other, each[0])]
        run(Heat(asked.operator, (base, other), tuple(each for each in right if is_right(base, each[0]))))
        run(Heat(asked.operator, (other,), tuple(each for each in right if not is_right(base, each[0]))))
    alone = (each for each in asked.shapes if (asked.operator.name, base.name, each[0]) not in timed)
    run(Heat(asked.operator, (base,), tuple(each for each in alone if is_right(base, each[0]))))


def _untrusted(result: ShapeResult, candidates: Candidates, changed: str) -> ShapeResult:
    """Files aren't what they were when the run began: the candidate's result is wrong, those of others unknown."""
    is_file = any(each.name == result.candidate and each.file is not None for each in candidates.chosen)
    words = changed if is_file else f"not known: {changed}"
    return msgspec.structs.replace(result, failure=words, timings=(), versus=(), attribution=None, own_share=None)


def _bounded(result: ShapeResult, device: Device | None) -> ShapeResult:
    """With the least time that the device allows, where it is known."""
    known = operators().get(result.operator)  # a foreign one has no bound
    if device is None or known is None:
        return result
    found = bounds_of(known.work(**result.args), device)
    if found.bound_ns is None:
        return result
    bound = Bound(
        device=device.name,
        bound_ns=found.bound_ns,
        binding=found.binding,
        warm_ns=found.memory_warm_ns,
        launch_ns=None if device.launch is None else float(device.launch.value),
    )
    return msgspec.structs.replace(result, bound=bound)


def _run(
    candidates: Candidates,
    plan: Plan,
    pace: Pace | None,
    timer: TimerChoice | None,
    machine: Machine,
    results: tuple[ShapeResult, ...],
    conditions: Conditions,
) -> Run:
    settings: dict[str, Any] = {"cases": plan.cases, "limit_s": plan.limits.seconds, "strided": plan.strided}
    settings |= {"strict": plan.strict, "sandbox": plan.sandbox}
    if pace is not None:
        settings |= {"base": candidates.chosen[0].name, "timer": pace.timer, "seconds": pace.seconds}
        settings |= {"modes": list(pace.modes), "timers_refused": dict(timer.refused) if timer else {}}
    return Run(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        inferometer=__version__,
        device=machine.name,
        on=machine.on,
        functional_only=machine.is_cpu,
        stage="correct" if pace is None else "fast",
        versions=machine.versions,
        settings=settings,
        candidates=tuple(each.as_record() for each in candidates.chosen),
        results=results,
        conditions=conditions,
    )


def _key(result: ShapeResult) -> tuple[str, str, str]:
    return result.operator, result.candidate, result.shape
