"""What changed between two runs, function by function, with time conserved.

First the amounts of work: is a cycle the same in both runs, and if not, can it be made so (`same_work`). Then every
function of either run is matched (`matches`, `replacements`), and its time per step compared
(`contributions`): the added lines and `unexplained_ns` are the change of the step, to the nanosecond.

A step is what one device of one process and rank does in one complete cycle; times are means over steps, in which
cycles without a call of a function count as none. From launches a step is the functions' summed time, less overlap,
plus idle time. Where cycles and functions were timed by the source, it is the device's functions and the time not on
the device; host functions run at the same moments, so they are listed and not added. From printed sums, and where one
of the runs is such, a step is the summed time of the device's functions.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from inferometer.analyses.compare.activity.activity import Activity
from inferometer.analyses.compare.class_ratios import Domain, find_domain
from inferometer.analyses.compare.contributions import Contribution, Side, contribution_lines
from inferometer.analyses.compare.matches import VARIED, Match, Matching, match_families, match_names, match_words
from inferometer.analyses.compare.replacements import match_places
from inferometer.analyses.compare.same_work import Amounts, Repair, compare_amounts, repair_units
from inferometer.analyses.compare.sampling_units import REMAINDERS, Account, Units, Values, common_account, units_of
from inferometer.analyses.compare.significance import interval
from inferometer.analyses.compare.work_change import WorkChange, find_work_change


class Changes(msgspec.Struct, frozen=True):
    """How a step of the candidate differs from one of the base.

    `amounts`: calls per cycle before any repair. `base_steps`, `candidate_steps`: complete steps compared, of all
    lanes. `step_ratio`: candidate over base; None where the base has no step. `step_ratio_interval` and
    `step_delta_interval_ns`: None where a run has one cycle of unknown spread. `contributions`: the added lines first,
    those changed beyond noise before the others. `step_times`: of each complete cycle, ns, empty where a run has no
    cycles. `account`: what a step is made of besides functions: `idle` (and overlap), `rest` (not on the device) or
    `sums`. `work`: how much more a step calls, where both runs mark their steps alike.
    """

    amounts: Amounts
    repair: Repair | None
    base_steps: int
    candidate_steps: int
    base_step_ns: int
    candidate_step_ns: int
    step_ratio: float | None
    step_ratio_interval: tuple[float, float] | None
    contributions: tuple[Contribution, ...]
    domain: Domain
    matches: tuple[Match, ...]
    account: Account
    notes: tuple[str, ...] = ()
    step_times: tuple[Values, Values] = (np.empty(0), np.empty(0))
    work: WorkChange | None = None
    step_delta_interval_ns: tuple[int, int] | None = None

    @property
    def step_delta_ns(self) -> int:
        """Change of the step, ns."""
        return self.candidate_step_ns - self.base_step_ns

    @property
    def unexplained_ns(self) -> int:
        """Change of the step that no line explains: what rounding each line to a nanosecond leaves."""
        return self.step_delta_ns - sum(line.delta_ns for line in self.contributions if line.added)

    @property
    def changed(self) -> tuple[Contribution, ...]:
        """The lines that differ beyond noise."""
        return tuple(line for line in self.contributions if line.kind != "same")

    def as_json(self) -> dict[str, Any]:
        return {
            "step_ratio": self.step_ratio,
            "step_ratio_interval": None if self.step_ratio_interval is None else list(self.step_ratio_interval),
            "base_step_ns": self.base_step_ns,
            "candidate_step_ns": self.candidate_step_ns,
            "base_steps": self.base_steps,
            "candidate_steps": self.candidate_steps,
            "domain": self.domain.cls,
            "classes": [one.as_json() for one in self.domain.classes],
            "contributions": [line.as_json() for line in self.contributions],
            "unexplained_ns": self.unexplained_ns,
            "notes": list(self.notes),
        }


def find_changes(base: Activity, candidate: Activity, *, marked: bool = False) -> Changes:
    """Every function's part in the change of a step from base to candidate; any run may be empty.

    Args:
        base: The run.
        candidate: The other.
        marked: Both runs mark their steps alike, so no repair applies: what is called more often is a change.
    """
    account = common_account(base, candidate)
    first, second = units_of(base, account), units_of(candidate, account)
    named = _by_names(first, second)
    amounts = compare_amounts(first, second, named.matches)
    windows = first.windowed or second.windowed or account == "sums"
    repair = None
    if not marked:
        base, candidate, repair = repair_units(base, candidate, amounts, named.matches, windows=windows)
    if repair is not None and repair.kind == "merged":
        first, second = units_of(base, account), units_of(candidate, account)
        named = _by_names(first, second)
    scale = repair.ratio if repair is not None and repair.kind == "normalised" else 1.0
    ratio = amounts.ratio if amounts.ratio and (repair is None or repair.kind == "normalised") else 1.0
    _match_rest(named, base, candidate, ratio)
    left, right = Side.of(first, salt=0), Side.of(second, scale, salt=1)
    steps = round(left.step), round(right.step)
    lines = tuple(contribution_lines(left, right, named.matches, steps[1] - steps[0]))
    return Changes(
        amounts=amounts,
        repair=repair,
        base_steps=first.steps,
        candidate_steps=second.steps,
        base_step_ns=steps[0],
        candidate_step_ns=steps[1],
        step_ratio=right.step / left.step if left.step > 0 and second.steps else None,
        step_ratio_interval=_ratio_interval(left, right),
        contributions=lines,
        domain=find_domain(left, right, named.matches, steps[0]),
        matches=tuple(named.matches),
        account=account,
        step_times=(left.step_times, right.step_times),
        notes=tuple(_notes(base, candidate, None if marked else amounts, windows=windows)),
        work=find_work_change(lines, amounts, marked=marked),
        step_delta_interval_ns=_delta_interval(left, right),
    )


def _by_names(base: Units, candidate: Units) -> Matching:
    left, right = (units.per_step.filter(~units.per_step["cls"].is_in(REMAINDERS)) for units in (base, candidate))
    return match_names(left, right)


def _match_rest(matching: Matching, base: Activity, candidate: Activity, ratio: float) -> None:
    """Match by order where both runs show one, then by what names say; the rest is gone or new."""
    match_places(matching, base.order, candidate.order, ratio)
    is_ordered = not (base.order.is_empty() or candidate.order.is_empty())
    if not is_ordered:
        match_words(matching, ratio)
    match_families(matching, ratio, VARIED if is_ordered else None)
    matching.close()


def _ratio_interval(base: Side, candidate: Side) -> tuple[float, float] | None:
    if not (_varies(base.units) and _varies(candidate.units)):
        return None
    before, after = base.step_draws, candidate.step_draws
    if (before <= 0).any() or (after <= 0).any():  # so few units, so unlike, that a step may as well take no time
        return None
    return interval(after / before)


def _delta_interval(base: Side, candidate: Side) -> tuple[int, int] | None:
    if not (_varies(base.units) and _varies(candidate.units)):
        return None
    low, high = interval(candidate.step_draws - base.step_draws)
    return round(low), round(high)


def _varies(units: Units) -> bool:
    return bool((units.count > 1).any() or np.isfinite(units.spread).any())


def _notes(base: Activity, candidate: Activity, amounts: Amounts | None, *, windows: bool) -> Iterator[str]:
    for words, run in (("Base", base), ("Candidate", candidate)):
        yield from (f"{words}: {note}" for note in run.notes)
        partial = run.cycles.height - run.cycles["complete"].sum()
        if partial:
            yield f"{words}: {partial:,} of {run.cycles.height:,} cycles are partial and left out."
    if amounts and amounts.shared and amounts.ratio is None:
        what = "windows can't be brought to the same number of steps" if windows else "cycles may be different work"
        yield f"Most of the {amounts.shared:,} shared functions have no common ratio of calls: {what}."
    if {base.basis, candidate.basis} == {"launches", "function_times"}:
        yield "One run has launches, the other times by cycle: idle and overlapped time are one line."
