"""What an A/B does now, as data, and how long it still takes: from a probe at its start, later from what is over.

The probe is a pass over the prompt by each arm, the second of two, next to the first arm's whole completion. The lower
end takes every completion that follows to be as long as the probe says; the upper one twice as long, for scopes,
compilation and what else runs on the machine, and with a control, which follows only where verdicts are in doubt.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inferometer.engines.ab.plan import Plan

_SLOWER = 2.0


@dataclass(frozen=True)
class Progress:
    """An arm and what it does.

    `number` of `count`: which repetition, search or control it is; None elsewhere. `left_ns`: the least and the most
    time that all of the A/B still takes, about; None where that is unknown.
    """

    arm: str
    part: str
    detail: str = ""
    number: int | None = None
    count: int | None = None
    left_ns: tuple[int, int] | None = None

    def __str__(self) -> str:
        which = "" if self.number is None else f" {self.number} of {self.count}"
        return f"{self.arm}, {self.part}{which}{self.detail}"


@dataclass(frozen=True)
class Probe:
    """An arm's two passes over the prompt, ns: kernels are compiled in the first."""

    first_ns: int
    second_ns: int


def estimate(plan: Plan, probes: Mapping[str, Probe], decode_ns: int, *, is_recorded: bool) -> tuple[int, int]:
    """The least and the most time of all that follows the probe, ns.

    Args:
        plan: Sizes.
        probes: Of all arms, the base first.
        decode_ns: Of the base's completion, without its prefill.
        is_recorded: Whether each arm is recorded at the end.
    """
    base, *others = probes.values()
    each_ns = {name: (base.second_ns + decode_ns) * probe.second_ns / base.second_ns for name, probe in probes.items()}
    base_ns, *others_ns = each_ns.values()
    pairs_ns = sum(base_ns + other_ns for other_ns in others_ns)
    completions = 2 * plan.repetitions + plan.warmup + bool(others) + is_recorded
    least_ns = completions * sum(each_ns.values()) + pairs_ns
    compile_ns = sum(max(0, probe.first_ns - probe.second_ns) for probe in probes.values())
    return round(least_ns), round(_SLOWER * (least_ns + compile_ns + plan.repetitions * pairs_ns))


class TimeLeft:
    """Counts down what was estimated, until whole repetitions say it better."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._ends_ns: tuple[int, int] | None = None
        self._began_ns: dict[int, int] = {}

    def expect(self, least_ns: int, most_ns: int) -> None:
        """It ends so long from now."""
        now_ns = self._clock()
        self._ends_ns = (now_ns + least_ns, now_ns + most_ns)

    def repeat(self, number: int, count: int) -> None:
        """Repetition `number` of `count` runs, from 1; the others take as long as those that are over."""
        now_ns = self._clock()
        self._began_ns.setdefault(number, now_ns)
        first_ns = self._began_ns.get(1)
        if number > 1 and first_ns is not None:
            left_ns = round((self._began_ns[number] - first_ns) / (number - 1) * (count - number + 1))
            self._ends_ns = (self._began_ns[number] + left_ns,) * 2

    def stop(self) -> None:
        """What follows the repetitions was not estimated."""
        self._ends_ns = None

    def now(self) -> tuple[int, int] | None:
        """The least and the most time left, ns, never below 0; None while it isn't known."""
        if self._ends_ns is None:
            return None
        now_ns = self._clock()
        least_ns, most_ns = (max(0, end_ns - now_ns) for end_ns in self._ends_ns)
        return least_ns, most_ns
