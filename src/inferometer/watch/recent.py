"""How long the last steps took, next to what they should have taken: what a screen or a scrape shows of now."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inferometer.watch.watcher import Judged

SHOWN = 16
"""Steps that a mean is of: about a second of decoding, a quarter of a minute of an engine's intervals."""

_MOST_SERIES = 64


@dataclass(frozen=True)
class Now:
    """Means over the last steps of one owner and phase; what was expected is None where none could be judged."""

    owner: str | None
    phase: str | None
    steps: int
    total_ns: int
    took_ns: float
    expected_ns: float | None
    low_ns: float | None
    high_ns: float | None


class Recent:
    """The last `SHOWN` steps of each owner and phase, of the first 64 of these."""

    def __init__(self) -> None:
        self._last: dict[tuple[str | None, str | None], deque[Judged]] = {}
        self._counts: dict[tuple[str | None, str | None], list[int]] = {}
        self.left_out = 0
        self.last_end_ns: int | None = None

    def add(self, judged: Judged) -> None:
        """One step more; those of further owners and phases are counted in `left_out`."""
        key = judged.step.owner, judged.step.phase
        self.last_end_ns = max(self.last_end_ns or 0, judged.step.end_ns)
        if key not in self._last:
            if len(self._last) >= _MOST_SERIES:
                self.left_out += 1
                return
            self._last[key], self._counts[key] = deque(maxlen=SHOWN), [0, 0]
        self._last[key].append(judged)
        self._counts[key][0] += 1
        self._counts[key][1] += judged.step.dur_ns

    def now(self) -> Iterator[Now]:
        """The present state of each owner and phase."""
        for (owner, phase), last in list(self._last.items()):
            steps = [*last]
            took = float(np.mean([judged.step.dur_ns for judged in steps]))
            known = [(judged.expected_ns or 0.0, *judged.between_ns) for judged in steps if judged.between_ns]
            expected, low, high = np.mean(known, axis=0).tolist() if known else (None, None, None)
            count, total_ns = self._counts[owner, phase]
            yield Now(owner, phase, count, total_ns, took, expected, low, high)
