"""How much more a step calls than before, where both runs mark their steps: then it is a change, and not another unit.

A program that does its work twice, or has two layers more, calls most of its functions in one common ratio more often.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.same_work import Amounts
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.analyses.comparison_limits import MORE_CALLS, MOST

_OUTSIDE = 2  # calls before the first and after the last layer: a norm, a head


class WorkChange(msgspec.Struct, frozen=True):
    """What other numbers of calls add to a step.

    `delta_ns`: of functions that both runs have, the change of their calls at the base's time of one; of new ones all
    their time, of those that are gone less it. `ratio`: of calls, candidate over base, that `functions` of the `shared`
    ones have in common; None where they have none, or 1. `repeats`: how often something seems to be done in base and
    candidate, a layer or two of them, where other functions are called as often as before.
    """

    delta_ns: int
    ratio: float | None = None
    functions: int = 0
    shared: int = 0
    repeats: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "delta_ns": self.delta_ns,
            "ratio": self.ratio,
            "functions": self.functions,
            "shared": self.shared,
            "repeats": None if self.repeats is None else list(self.repeats),
        }

    def describe(self) -> str:
        """The common ratio; empty without one."""
        if self.ratio is None:
            return ""
        which = "Every function" if self.functions == self.shared else f"{self.functions} of {self.shared} functions"
        verb = "is" if self.functions in (1, self.shared) else "are"
        text = f"{which} {verb} called {self.ratio:.2f} times as often per step"
        if self.repeats is None:
            return f"{text}."
        before, after = self.repeats
        which = "more" if after > before else "fewer"
        return f"{text}: {after} in place of {before} times, or multiples of that, as with {which} layers."


def find_work_change(lines: Sequence[Contribution], amounts: Amounts, *, marked: bool) -> WorkChange | None:
    """What a step calls more or less often; None where steps aren't marked in both runs alike."""
    if not marked:
        return None
    delta_ns = round(sum(_of_calls(line) for line in lines if line.added and line.cls not in REMAINDERS))
    ratio, functions = amounts.ratio, amounts.sharing
    if ratio is not None and _is_one(ratio):
        ratio, functions = amounts.of_most_calls()
    if ratio is None or _is_one(ratio):
        return WorkChange(delta_ns)
    return WorkChange(delta_ns, ratio, functions, amounts.shared, _repeats(amounts))


def _is_one(ratio: float) -> bool:
    return 1 / (1 + MORE_CALLS) <= ratio <= 1 + MORE_CALLS


def _of_calls(line: Contribution) -> float:
    """Time that a line's calls add, ns; of names that changed nothing is known by calls."""
    if line.kind == "new":
        return line.candidate_ns
    if line.kind == "gone":
        return -line.base_ns
    if not line.base_calls or max(map(len, line.of)) > 1:
        return 0.0
    return (line.candidate_calls / line.base_calls - 1) * line.base_ns


def _repeats(amounts: Amounts) -> tuple[int, int] | None:
    """Numbers that explain the calls: most that changed are multiples of them, and a few more outside of layers."""
    rows = amounts.calls.select("base_calls", "candidate_calls").rows()
    calls = [(round(before), round(after)) for before, after in rows]
    changed = [pair for pair in calls if pair[0] != pair[1]]
    if len(changed) == len(calls):  # all work twice is no matter of layers
        return None
    for before, after in sorted(Counter(changed)):
        if before < 2 or after < 2:
            continue
        fitting = sum(_is_by_layer(pair, before, after) for pair in changed)
        if fitting > MOST * len(changed):
            return before, after
    return None


def _is_by_layer(calls: tuple[int, int], before: int, after: int) -> bool:
    """Whether a function is called as often in each repeat, and at most `_OUTSIDE` times outside of them."""
    per_layer, rest = divmod(calls[0], before)
    return per_layer > 0 and rest <= _OUTSIDE and calls[1] == per_layer * after + rest
