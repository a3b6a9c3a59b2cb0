"""The thresholds of rules by name, and what a user set of them: checked, and told where it differs.

A threshold is a share of the time at stake, 0 to 1, from which on a finding is `low`, `medium` or `high`. What a rule
counts into that time (what is a short kernel, what a slow copy) is its own and can't be set.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import msgspec

from inferometer.errors import InputError
from inferometer.findings.rule import Rule
from inferometer.units import format_share


class ChangedThreshold(msgspec.Struct, frozen=True):
    """One that a user set to another value than the rule's own."""

    name: str
    value: float
    default: float

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names."""
        return {"name": self.name, "value": self.value, "default": self.default}

    def __str__(self) -> str:
        return f"{self.name} {format_share(self.value)} in place of {format_share(self.default)}"


def thresholds_of(rules: Iterable[Rule]) -> dict[str, float]:
    """All that these rules have, by name, as they are declared."""
    return {name: value for rule in rules for scale in rule.scales for name, value in scale.thresholds.items()}


def changed_of(rules: Iterable[Rule], given: Mapping[str, float]) -> tuple[ChangedThreshold, ...]:
    """Those of `given` that differ from what the rules declare.

    Raises:
        InputError: As for `check_thresholds`.
    """
    declared = thresholds_of(rules)
    check_thresholds(given, declared)
    return tuple(ChangedThreshold(name, given[name], declared[name]) for name in given if given[name] != declared[name])


def check_thresholds(given: Mapping[str, Any], declared: Mapping[str, float], *, where: str = "thresholds") -> None:
    """Refuse what can't be set.

    Raises:
        InputError: A name is unknown, a value no share, or a graver severity would begin below a lesser one.
    """
    for name, value in given.items():
        if name not in declared:
            near = get_close_matches(name, declared, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"{where}: there is no threshold {name!r}{hint}", hint="`inferometer rules` lists them.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
            raise InputError(f"{where}: {name}: expected a share of time from 0 to 1, found {value!r}")
    now = {**declared, **given}
    for scale in dict.fromkeys(name.rpartition(".")[0] for name in given):
        names = [name for severity in ("low", "medium", "high") if (name := f"{scale}.{severity}") in now]
        for lesser, graver in pairwise(names):
            if now[lesser] > now[graver]:
                raise InputError(
                    f"{where}: {lesser} is {now[lesser]:g}, above {graver}, {now[graver]:g}",
                    hint=f"Set {graver if lesser in given else lesser}, too.",
                )


def say_changed(changed: Sequence[ChangedThreshold], rule: str) -> list[str]:
    """The sentence that a finding of the rule has where it was judged by other thresholds than the rule's own."""
    own = [str(each) for each in changed if each.name.startswith(f"{rule}.")]
    return [f"Judged by thresholds of the settings: {', '.join(own)}."] if own else []
