"""What a kernel path asked for against what ran: a row for each operator whose kernel or count is another.

The path asks for the first kernel of each step, once for each layer. What runs may be another kernel (the adapter lacks
a feature, a tuner measured better) or more launches of it (a matrix cut at the adapter's limit).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from inferometer.engines.webgpu.plan.kernel_path import FUSED_OPS
from inferometer.engines.webgpu.program import Pass, Phase, Program
from inferometer.engines.webgpu.run.executor import LoadedModel, PlannedStep, Selection

Slot = tuple[Phase | str, str, str | None]
"""Phase, operator, role."""


@dataclass(frozen=True)
class PlanDifference:
    """An operator of a phase: the kernels planned and executed (None: none), launches of all passes, and why."""

    phase: str
    op: str
    role: str | None
    planned: str | None
    executed: str | None
    planned_count: int
    executed_count: int
    reason: str


@dataclass(frozen=True)
class PlanDiff:
    """Empty `rows` where all ran as planned. `passes`: how many were looked at."""

    rows: tuple[PlanDifference, ...]
    passes: int


def diff_plan(loaded: LoadedModel, passes: Sequence[Pass]) -> PlanDiff:
    """Compare the plan with what these passes launched.

    Args:
        loaded: The program with its plan and its selections.
        passes: What ran: `submission.passes` of all submits.
    """
    times = Counter(phase for each in passes for phase in each.phases)
    planned = _counts_planned(loaded.planned, times)
    executed = executed_counts(loaded.program, times)
    reasons = {(each.phase, each.op, each.role, each.kernel): each for each in loaded.selections}
    rows = [
        row
        for slot in dict.fromkeys((*planned, *executed))
        for row in _rows(slot, planned.get(slot, Counter()), executed.get(slot, Counter()), reasons, loaded)
    ]
    return PlanDiff(tuple(rows), len(passes))


def _counts_planned(steps: Iterable[PlannedStep], times: Mapping[Phase, int]) -> dict[Slot, Counter[str]]:
    counts: dict[Slot, Counter[str]] = {}
    passes = {str(phase): number for phase, number in times.items()}
    for step in steps:
        if passes.get(step.phase):
            slot = (step.phase, step.op, step.role)
            counts.setdefault(slot, Counter())[step.kernel] += step.count * passes[step.phase]
    return counts


def executed_counts(program: Program, times: Mapping[Phase, int]) -> dict[Slot, Counter[str]]:
    """Launches of each kernel of each phase, operator and role, where the phases ran so many times; in their order."""
    counts: dict[Slot, Counter[str]] = {}
    for phase, number in times.items():
        for dispatch in program.phases[phase]:
            kernel = program.pipelines[dispatch.pipeline].kernel
            counts.setdefault((phase, dispatch.op, dispatch.role), Counter())[kernel] += number
    return counts


def _rows(
    slot: Slot,
    planned: Mapping[str, int],
    executed: Mapping[str, int],
    reasons: Mapping[tuple[str, str, str | None, str], Selection],
    loaded: LoadedModel,
) -> list[PlanDifference]:
    """Kernels that one has and the other hasn't stand side by side, in the order of the plan."""
    if planned == executed:
        return []
    both = [kernel for kernel in planned if kernel in executed and planned[kernel] != executed[kernel]]
    pairs: list[tuple[str | None, str | None]] = [(kernel, kernel) for kernel in both]
    gone = [kernel for kernel in planned if kernel not in executed]
    new = [kernel for kernel in executed if kernel not in planned]
    pairs += zip_longest(gone, new)
    return [
        PlanDifference(
            *slot,
            planned=wanted,
            executed=found,
            planned_count=planned.get(wanted or "", 0),
            executed_count=executed.get(found or "", 0),
            reason=_reason(slot, wanted, found, reasons, loaded),
        )
        for wanted, found in pairs
    ]


def _reason(
    slot: Slot,
    wanted: str | None,
    found: str | None,
    reasons: Mapping[tuple[str, str, str | None, str], Selection],
    loaded: LoadedModel,
) -> str:
    phase, op, role = slot
    if wanted == found:
        return "cut into parts: a matrix above the adapter's binding limit, or a grid above WebGPU's"
    if found is not None and (selection := reasons.get((phase, op, role, found))) is not None:
        return selection.reason
    fused = (each.reason for each in loaded.selections if each.phase == phase and each.op in FUSED_OPS)
    if found is None and (reason := next(fused, None)) is not None:
        return reason.partition("; ")[0]
    others = [each for each in loaded.selections if (each.phase, each.role) == (phase, role)]
    return "; ".join(dict.fromkeys(f"{each.kernel}: {each.reason}" for each in others)) or "not in the program"
