"""A candidate on the hard inputs that its operator declares, after the usual ones, in the same process.

They are drawn for a few tokens of the shape (`HardCases.few`), and only once for shapes that come to the same. Who
fails there may be made for as many tokens as the shape has; so what failed is repeated with all, and that counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from inferometer.bench.failures import CandidateFailed
from inferometer.bench.isolation import CandidateProcess
from inferometer.bench.one_call import check_call, first_wrong
from inferometer.bench.results import REFUSED
from inferometer.bench.session import Session
from inferometer.operators.hard_cases import HardCase

MOST_BYTES = 1 << 30
"""Of inputs: where weights alone are more, hard cases aren't run."""

Args = Mapping[str, Any]


@dataclass(frozen=True)
class HardVerdict:
    """What a candidate made of one hard case: `right`, or how it failed; `refused` where it raised and may."""

    name: str
    seed: int
    right: bool = True
    words: str = "right"


@dataclass
class HardChecks:
    """Hard cases of one candidate; `seeds` draws one for each."""

    session: Session
    seeds: Callable[[], int]
    _known: dict[str, tuple[HardVerdict, ...]] = field(default_factory=dict)

    def check(self, process: CandidateProcess, shape: Args) -> tuple[HardVerdict, ...]:
        """Of every case in turn; none where the inputs are too large."""
        hard = self.session.operator.hard
        few = hard.few(shape)
        key = repr(sorted(few.items(), key=lambda item: item[0]))
        if key not in self._known:
            self._known[key] = tuple(self._judge_all(process, few, shape, hard.cases))
        found = self._known[key]
        if dict(few) == dict(shape) or all(each.right for each in found):
            return found
        failed = [case for case in hard.cases if any(each.name == case.name and not each.right for each in found)]
        with nullcontext(process) if process.is_alive else CandidateProcess(self.session) as alive:
            again = {each.name: each for each in self._judge_all(alive, shape, shape, failed)}
        return tuple(again.get(each.name, each) for each in found)

    def _judge_all(
        self, process: CandidateProcess, args: Args, shape: Args, cases: Sequence[HardCase]
    ) -> Iterator[HardVerdict]:
        if self.session.operator.cost(**args).read_bytes <= MOST_BYTES:
            yield from (self._judge(process, case, args, shape) for case in cases if process.is_alive)

    def _judge(self, process: CandidateProcess, case: HardCase, args: Args, shape: Args) -> HardVerdict:
        operator, seed = self.session.operator, self.seeds()
        tensors, given = operator.hard.draw(case, operator.inputs, args, seed=seed, device=self.session.device)
        verdict = HardVerdict(case.name, seed)
        try:
            checks = check_call(process, operator, tensors, given, shape=shape, left_open=case.left_open)
        except CandidateFailed as failed:
            words = str(failed)
            if process.is_alive and (case.may_raise or words.startswith(REFUSED)):
                return replace(verdict, words=f"{REFUSED}{words.removeprefix(REFUSED)}")
            return replace(verdict, right=False, words=words)
        wrong = first_wrong(checks)
        return verdict if wrong is None else replace(verdict, right=False, words=wrong)
