"""Is a candidate right: several cases of each shape, drawn from secret seeds, against the operator's reference.

The candidate runs in its own process and sees inputs only. After each call its inputs must be as they were, but for
those that production updates in place.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.analyses.result import Field, Result, Section, frame_of
from inferometer.bench.comparison import ROW, OutputCheck, compare_outputs
from inferometer.bench.isolation import CandidateFailed, CandidateProcess, Limits
from inferometer.bench.shapes import Asked
from inferometer.operators.operator import Operator
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

_SEED_BITS = 62


@dataclass(frozen=True)
class ShapeCheck:
    """One shape: `failure` is why a case gave no right answer, None where all did.

    `error`, `row_error`: the greatest of all cases and outputs, as shares of what is allowed (above 1: too much); None
    where there was no answer to compare. `seed`: of the case that failed, to repeat it.
    """

    operator: str
    shape: str
    cases: int
    failure: str | None
    error: float | None = None
    row_error: float | None = None
    seed: int | None = None

    @property
    def is_right(self) -> bool:
        """Whether all cases were."""
        return self.failure is None


@dataclass(frozen=True)
class Correctness(Result):
    """What came of every shape of every operator that was asked for."""

    candidate: str
    device: str
    checks: tuple[ShapeCheck, ...]
    losses: Losses

    @property
    def is_right(self) -> bool:
        """Whether every shape is."""
        return all(check.is_right for check in self.checks)

    def facts(self) -> Sequence[tuple[str, str]]:
        right = sum(check.is_right for check in self.checks)
        return [
            ("Candidate", self.candidate),
            ("Device", self.device),
            ("Verdict", f"{'right' if self.is_right else 'wrong'}: {right} of {len(self.checks)} shapes"),
        ]

    def sections(self) -> Sequence[Section]:
        fields = [
            Field("operator", "Operator", "text"),
            Field("verdict", "Verdict", "text"),
            Field("cases", "Cases", "count", spare=2),
            Field("error", "Error", "share", spare=1),
            Field("row_error", "Worst row", "share", spare=1),
            Field("failure", "Wrong", "text", spare=1),
            Field("shape", "Shape", "name"),
        ]
        rows = [{**_plain(check), "verdict": "right" if check.is_right else "wrong"} for check in self.checks]
        words = f"Error: of what is allowed. A row may be off {ROW} times as much as the whole."
        return [Section("Shapes", fields, frame_of(rows, fields), (words,) if self.is_right else ())]

    def as_json(self) -> dict[str, Any]:
        return {
            "candidate": self.candidate,
            "device": self.device,
            "stage": "correct",
            "right": self.is_right,
            "shapes": [{**_plain(check), "right": check.is_right} for check in self.checks],
        }


def check_correct(
    asked: Sequence[Asked],
    candidate: Path | None,
    *,
    cases: int = 3,
    device: str = "cpu",
    limits: Limits = Limits(),  # noqa: B008  it is frozen
    said: "Callable[[str], None]" = lambda _: None,
) -> Correctness:
    """Every shape of `asked` in `cases` cases; `candidate` None: the operators' references. `said` gets progress."""
    checks = [
        check
        for one in asked
        for check in _check_operator(one, candidate, cases=cases, device=device, limits=limits, said=said)
    ]
    name = "torch (the references)" if candidate is None else str(candidate)
    return Correctness(name, device, tuple(checks), Losses(ALL_TABLES))


def _check_operator(
    asked: Asked,
    path: Path | None,
    *,
    cases: int,
    device: str,
    limits: Limits,
    said: "Callable[[str], None]",
) -> Iterator[ShapeCheck]:
    """All shapes in one process; in a new one after it ended or was ended."""
    operator, left = asked.operator, list(asked.shapes)
    while left:
        try:
            with CandidateProcess(operator, path, limits) as process:
                while left and process.is_alive:
                    label, args = left.pop(0)
                    said(f"answers of {operator.name}, {label}")
                    yield _check_shape(process, operator, label, args, cases=cases, device=device)
        except CandidateFailed as failed:  # it can't be loaded
            yield from (ShapeCheck(operator.name, label, cases, str(failed)) for label, _ in left)
            return


def _check_shape(
    process: CandidateProcess, operator: Operator, label: str, args: Mapping[str, Any], *, cases: int, device: str
) -> ShapeCheck:
    errors: list[OutputCheck] = []
    for _ in range(cases):
        seed = secrets.randbits(_SEED_BITS)
        try:
            found = _check_case(operator, args, seed, process, device)
        except CandidateFailed as failed:
            return ShapeCheck(operator.name, label, cases, str(failed), *_greatest(errors), seed)
        errors += found
        wrong = next((check for check in found if not check.is_right), None)
        if wrong is not None:
            reason = f"{wrong.output}: {wrong.reason}"
            return ShapeCheck(operator.name, label, cases, reason, *_greatest(errors), seed)
    return ShapeCheck(operator.name, label, cases, None, *_greatest(errors))


def _check_case(
    operator: Operator, args: Mapping[str, Any], seed: int, process: CandidateProcess, device: str
) -> list[OutputCheck]:
    tensors = operator.inputs(**args, seed=seed, device=device)
    answer = process.answer(tensors, args)
    changed = _changed(operator, tensors, answer.inputs)
    if changed is not None:
        return [OutputCheck(changed, "this input was changed, and is none that production updates in place")]
    return compare_outputs(operator, answer.outputs, operator.answer(tensors, args))


def _changed(operator: Operator, before: "Mapping[str, Tensor]", after: "Mapping[str, Tensor]") -> str | None:
    """The first input that differs, bit for bit."""
    import torch

    for name, tensor in before.items():
        if name in operator.updates:
            continue
        other = after.get(name)
        if other is None or other.shape != tensor.shape or other.dtype != tensor.dtype:
            return name
        own = (each.contiguous().view(-1).view(torch.uint8) for each in (tensor, other))
        if not torch.equal(*own):
            return name
    return None


def _greatest(checks: Sequence[OutputCheck]) -> tuple[float | None, float | None]:
    """Errors as shares of what is allowed."""
    pairs = [(check.error, check.row_error, check.tolerance) for check in checks if check.error is not None]
    whole = [error / allowed for error, _, allowed in pairs if allowed and error is not None]
    rows = [row / (ROW * allowed) for _, row, allowed in pairs if allowed and row is not None]
    return (max(whole, default=None), max(rows, default=None))


def _plain(check: ShapeCheck) -> dict[str, Any]:
    return {
        "operator": check.operator,
        "shape": check.shape,
        "cases": check.cases,
        "failure": check.failure,
        "error": check.error,
        "row_error": check.row_error,
        "seed": check.seed,
    }
