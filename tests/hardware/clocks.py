"""A clock that moves only when work is done, and jobs whose calls take known times."""

from collections.abc import Callable, Iterator
from itertools import repeat

from inferometer.hardware.measure.timing import Job


class Clock:
    """Nanoseconds since it was made; `ran` has how many calls each run was of."""

    def __init__(self) -> None:
        self.now_ns = 0.0
        self.ran: list[int] = []

    def __call__(self) -> int:
        return round(self.now_ns)

    def job(self, call_ns: Callable[[int], float] | float, amount: float = 1.0, how: str = "pretended") -> Job:
        """Each call of run i takes `call_ns(i)`."""
        counted: Iterator[float] = repeat(call_ns) if not callable(call_ns) else map(call_ns, range(10**6))

        def run(calls: int) -> float:
            took = calls * next(counted)
            self.now_ns += took
            self.ran.append(calls)
            return took

        return Job(how, amount, run)
