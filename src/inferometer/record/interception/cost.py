"""What interception costs a program: an estimate from ops that do nothing, timed with and without it.

The recorded work can't be run twice, so this isn't a measurement of it: an op with many or unusual arguments costs
more, and one that is launched to a GPU while it is busy costs the program nothing.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from inferometer.record.clock import Clock

if TYPE_CHECKING:
    from inferometer.record.sharing import Recorder
    from inferometer.record.sink import Sink
    from inferometer.trace.builder import Values
    from inferometer.trace.facts import Facts

NOTE = "Interception: "
_CALLS = 50
_ROUNDS = 7  # with 50 calls each some 3 ms in all; the median is of them


class OpCount:
    """A sink that counts ops, and drops them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ops = 0

    def add(self, table: str, rows: int, columns: "Mapping[str, Values]") -> None:
        """Count them."""
        if table == "ops":
            self.ops += rows

    def change_facts(self, change: "Callable[[Facts], Facts]") -> None:
        """Dropped."""

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """Nothing to lose."""


def op_cost_ns(torch: Any, make: "Callable[[Sink], Recorder]") -> float:
    """By how much interception lengthens an empty op, ns: the median of some rounds; at least 0."""
    plain = _time_ops(torch)
    interception = make(OpCount(Clock.start()))
    interception.start()
    try:
        _time_ops(torch, rounds=1)  # an op's first call is looked at more closely
        intercepted = _time_ops(torch)
    finally:
        interception.stop()
    return max(intercepted - plain, 0.0)


def cost_note(ops: int, each_ns: float, wall_ns: int) -> str:
    """One line for the notes."""
    took_ns = ops * each_ns
    share = f", {took_ns / wall_ns:.2%} of the recorded time" if wall_ns > 0 else ""
    return (
        f"{NOTE}an estimate of {took_ns / 1e6:.1f} ms{share}: {ops:,} ops at {each_ns / 1e3:.1f} us, which an op "
        "that does nothing took longer at the start."
    )


def _time_ops(torch: Any, rounds: int = _ROUNDS) -> float:
    """Ns of an op: the median over rounds of a mean over calls."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(_CALLS):
            torch.empty(0)
        times.append((time.perf_counter_ns() - began) / _CALLS)
    return median(times)
