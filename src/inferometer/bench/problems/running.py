"""Runs problems one after the other: each candidate right first, then fast, compared with the problem's reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from inferometer.bench.candidates import Candidates
from inferometer.bench.correct import OnProgress, Plan
from inferometer.bench.evaluation import Evaluation
from inferometer.bench.problems.suite import Found, Preparation, Problem
from inferometer.bench.race import Pace
from inferometer.bench.results import CandidateRecord, Conditions, Run
from inferometer.bench.run import evaluate
from inferometer.bench.timer_choice import TimerChoice
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES


@dataclass(frozen=True)
class Outcome:
    """One problem, and what came of its candidates."""

    problem: Problem
    run: Run


@dataclass(frozen=True)
class SuiteOutcome:
    """All problems: together as one run, and each."""

    evaluation: Evaluation
    outcomes: tuple[Outcome, ...]


def run_suite(
    found: Sequence[Found],
    preparation: Preparation,
    *,
    pace: Pace | None = None,
    timer: TimerChoice | None = None,
    on_progress: OnProgress = lambda _: None,
) -> SuiteOutcome:
    """Every problem that can be run; the others are in the evaluation's `refused`, with the reason.

    A problem without a candidate tries its own reference, which shows that it runs.

    Raises:
        InputError: None can be run: the reason of the first.
    """
    outcomes: list[Outcome] = []
    refused: dict[str, str] = {}
    first: InputError | None = None
    for number, each in enumerate(found):
        on_progress(f"{each.name}: its reference")
        try:
            outcomes.append(_run(preparation.prepare(each, number), preparation.plan, pace, timer, on_progress))
        except InputError as error:
            first = first or error
            refused[each.name] = error.message
    if not outcomes:
        assert first is not None
        raise first
    run = merge([each.run for each in outcomes])
    return SuiteOutcome(Evaluation(run, refused, Losses(ALL_TABLES)), tuple(outcomes))


def _run(
    problem: Problem, plan: Plan, pace: Pace | None, timer: TimerChoice | None, on_progress: Callable[[str], None]
) -> Outcome:
    with problem.reference:
        if problem.definition is not None:  # others were asked when they were read
            _try_reference(problem, plan.device)
        with_base = pace is not None or not problem.candidates
        candidates = Candidates((problem.base, *problem.candidates) if with_base else problem.candidates, {})
        found = evaluate([problem.asked], candidates, plan, pace=pace, timer=timer, on_progress=on_progress)
    return Outcome(problem, found.run)


def _try_reference(problem: Problem, device: str) -> None:
    """Ask it once, so that what fails in it isn't blamed on a candidate.

    Raises:
        InputError: It gives no answer.
    """
    operator, (_, args) = problem.asked.operator, problem.asked.shapes[0]
    operator.answer(operator.inputs(**args, seed=0, device=device), args)


def merge(runs: Sequence[Run]) -> Run:
    """As one: at least one run, all on the same machine with the same settings."""
    if len(runs) == 1:
        return runs[0]
    candidates: dict[str, CandidateRecord] = {}
    for run in runs:
        for each in run.candidates:
            known = candidates.get(each.name, each)
            same = known.sha256 == each.sha256
            candidates[each.name] = known if same else msgspec.structs.replace(known, sha256=None)
    remarks = dict.fromkeys(remark for run in runs for remark in run.conditions.remarks)
    throttled: dict[str, float] = {}
    for run in runs:
        for reason, share in run.conditions.throttled.items():
            throttled[reason] = max(share, throttled.get(reason, 0.0))
    return msgspec.structs.replace(
        runs[0],
        candidates=tuple(candidates.values()),
        results=tuple(result for run in runs for result in run.results),
        conditions=Conditions(throttled=throttled, remarks=tuple(remarks)),
    )
