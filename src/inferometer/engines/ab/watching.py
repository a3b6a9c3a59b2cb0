"""Looks at every answer of an arm while it is timed, with the clock stopped.

Each is marked (`marks`). On a CPU one in `EVERY`, drawn anew in each repetition, is also compared with the base's
answer to the same inputs, as `checking` does with all of them in a completion of its own. The base's own answers are,
too: so both arms leave the same behind in caches, and a base that answers otherwise when asked again is noticed. A GPU
isn't waited for within a pass: there answers are marked only.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.engines.ab.checking import OperatorErrors, own_errors, twin
from inferometer.engines.ab.completion import on_gpu
from inferometer.engines.ab.differences import OperatorCallCase, compare
from inferometer.engines.ab.marks import mark_of
from inferometer.engines.arms import Arm, run
from inferometer.engines.paths import current_key

EVERY = 16


class AnswerWatch:
    """What `PathRecorder.watch` is for an arm. `errors` gets what the sample comes to."""

    def __init__(self, base: Arm, errors: OperatorErrors, device: str, seed: int) -> None:
        self._base, self._errors, self._seed = base, errors, seed
        self._samples = not on_gpu(device)
        self.begin(0)

    def begin(self, repetition: int) -> None:
        """Draw anew: the same for all arms."""
        self._draw = random.Random(f"{self._seed}, {repetition}")

    def __call__(self, operator: str, args: Sequence[Any], settings: Mapping[str, Any], answer: Any) -> Any:
        """What `mark_of` makes of the answer."""
        if self._samples and self._draw.random() < 1 / EVERY:
            wanted, _ = run(self._base, operator, twin(tuple(args)), twin(settings))
            asked = OperatorCallCase(operator, args, settings, lambda: own_errors(operator, args, settings, wanted))
            self._errors.add(current_key() or operator, compare(asked, wanted, answer), is_sample=True)
        return mark_of(answer)
