"""Is a candidate right: several cases of each shape, drawn from secret seeds, against the operator's reference.

It runs in its own process and sees inputs only. After each call its inputs must be as they were, but for those that
production updates in place. The cases are usual ones, then one of each unusual kind that the shape has, then the hard
ones that the operator declares. What it makes of rows that lie apart in memory is reported separately: the contract's
tensors are dense, but engines pass slices.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferometer.bench.candidates import Candidate
from inferometer.bench.comparison import ROW, OutputCheck
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.hard_inputs import HardChecks
from inferometer.bench.isolation import CandidateProcess, while_alive
from inferometer.bench.one_call import check_call, first_wrong
from inferometer.bench.results import ShapeResult
from inferometer.bench.session import ProcessLimits, Session
from inferometer.bench.shapes import ChosenShapes, index_of
from inferometer.bench.variants import lay_apart, vary
from inferometer.operators.operator import Operator

_SEED_BITS = 62
_APART_BYTES = 1 << 30  # of inputs, at most, that are laid apart too

OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How candidates are checked: usual cases a shape, where, with which limits.

    `strided`: rows that lie apart count as a case of their own. `strict`: what the guard of its process reports makes a
    candidate wrong. `sandbox`: candidates run in bubblewrap.
    """

    cases: int = 3
    device: str = "cpu"
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    strided: bool = False
    strict: bool = False
    sandbox: bool = False


def _draw_seed() -> int:
    return secrets.randbits(_SEED_BITS)


@dataclass(frozen=True)
class _Case:
    kind: str
    args: Mapping[str, Any]
    seed: int = field(default_factory=_draw_seed)


def check_operator(
    asked: ChosenShapes, candidate: Candidate, plan: Plan, on_progress: OnProgress
) -> Iterator[ShapeResult]:
    """All shapes in one process; in a new one after it ended or was ended."""
    operator, left = asked.operator, list(asked.shapes)
    sandbox = plan.sandbox and candidate.file is not None
    session = Session(operator, candidate, plan.device, limits=plan.limits, sandbox=sandbox)
    hard = HardChecks(session, _draw_seed)
    while left:
        try:
            with CandidateProcess(session) as process:
                for label, args in while_alive(left, lambda: process.is_alive):
                    on_progress(f"answers of {candidate.name} to {operator.name}, {label}")
                    found = {**_check_shape(process, operator, args, plan, hard), "concerns": process.concerns}
                    found["interpreted"] = process.interpreted
                    if plan.strict and process.concerns and found["failure"] is None:
                        found["failure"] = f"with --strict: {process.concerns[0]}"
                    yield ShapeResult(
                        operator=operator.name,
                        shape=label,
                        index=index_of(label),
                        args=dict(args),
                        candidate=candidate.name,
                        cases=plan.cases,
                        **found,
                    )
        except CandidateFailed as failed:  # it can't be loaded
            for label, args in left:
                yield ShapeResult(
                    operator=operator.name, shape=label, index=index_of(label), args=dict(args),
                    candidate=candidate.name, cases=plan.cases, failure=str(failed),
                )  # fmt: skip
            return


def _check_shape(
    process: CandidateProcess, operator: Operator, args: Mapping[str, Any], plan: Plan, hard: HardChecks
) -> Mapping[str, Any]:
    """What a result says of right and wrong."""
    errors: list[OutputCheck] = []
    cases = [_Case("usual", args) for _ in range(plan.cases)]
    cases += [_Case(kind, given) for kind, given in vary(operator, args)]
    for case in cases:
        failure = _check_case(process, operator, case, plan.device, errors)
        if failure is not None:
            words = failure if case.kind == "usual" else f"with {case.kind} inputs: {failure}"
            return {"failure": words, "seed": case.seed, **_greatest(errors)}
    verdicts = hard.check(process, args)
    found: dict[str, Any] = {"failure": None, **_greatest(errors), "hard": {each.name: each.words for each in verdicts}}
    found["hard_left_out"] = bool(operator.hard.cases) and not verdicts
    wrong = next((each for each in verdicts if not each.right), None)
    if wrong is not None:
        return found | {"failure": f"{wrong.name}: {wrong.words}", "hard_case": wrong.name, "seed": wrong.seed}
    apart = _Case("strided", args)
    known = _check_apart(process, operator, apart, plan.device)
    if known is not None:
        found["strided"] = known
        if plan.strided and known != "right":
            found |= {"failure": f"with rows that lie apart: {known}", "seed": apart.seed}
    return found


def _check_case(
    process: CandidateProcess, operator: Operator, case: _Case, device: str, errors: list[OutputCheck]
) -> str | None:
    """Why the answer isn't right; None where it is. `errors` gets what was compared."""
    try:
        tensors = operator.inputs(**case.args, seed=case.seed, device=device)
        found = check_call(process, operator, tensors, case.args)
    except CandidateFailed as failed:
        return str(failed)
    errors += found
    return first_wrong(found)


def _check_apart(process: CandidateProcess, operator: Operator, case: _Case, device: str) -> str | None:
    """Right, refused or wrong; None where there are no such rows, or too many to copy them."""
    dense = operator.inputs(**case.args, seed=case.seed, device=device)
    if sum(tensor.numel() * tensor.element_size() for tensor in dense.values()) > _APART_BYTES:
        return None
    tensors = lay_apart(dense)
    if all(tensors[name] is dense[name] for name in dense):
        return None
    try:
        wrong = first_wrong(check_call(process, operator, tensors, case.args))
    except CandidateFailed as failed:
        return f"refused: {failed}"
    return "right" if wrong is None else f"wrong: {wrong}"


def _greatest(checks: Sequence[OutputCheck]) -> dict[str, float | None]:
    """Errors as shares of what is allowed."""
    pairs = [(check.error, check.row_error, check.tolerance) for check in checks if check.error is not None]
    whole = [error / allowed for error, _, allowed in pairs if allowed and error is not None]
    rows = [row / (ROW * allowed) for _, row, allowed in pairs if allowed and row is not None]
    return {"error": max(whole, default=None), "row_error": max(rows, default=None)}
