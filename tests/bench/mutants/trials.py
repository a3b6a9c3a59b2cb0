"""Runs every kernel of this folder on the tiny shapes of its operator, and says what the check makes of it."""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.bench.mutants.generic import GENERIC
from tests.bench.mutants.shared import KINDS

from inferometer.bench.comparison import ROW, OutputCheck, compare_outputs, flips_allowed
from inferometer.operators import operators
from inferometer.operators.operator import Operator

SEEDS = (1, 2)
_STALE = 1000  # added to a seed: that of the call before


@dataclass
class Trial:
    """One kernel on all tiny shapes.

    Attributes:
        name: `kind: what`.
        refused: Shapes on which it was refused, with any seed.
        shapes: On which it could run.
        reasons: Why, each once.
        margin: The largest error, in tolerances; None where no error was measured (kind, NaN, exact outputs).
        output: The output that it belongs to.
    """

    name: str
    refused: set[int] = field(default_factory=set)
    shapes: set[int] = field(default_factory=set)
    reasons: dict[str, None] = field(default_factory=dict)
    margin: float | None = None
    output: str = ""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self.name.split(":")[0]

    def add(self, place: int, checks: Sequence[OutputCheck], margins: dict[str, float]) -> None:
        """The checks of one call."""
        self.shapes.add(place)
        for check in checks:
            if check.reason:
                self.refused.add(place)
                self.reasons[f"{check.output}: {check.reason}"] = None
        for output, margin in margins.items():
            if self.margin is None or margin > self.margin:
                self.margin, self.output = margin, output


@dataclass(frozen=True)
class Result:
    """All kernels of one operator."""

    operator: Operator
    wrong: tuple[Trial, ...]
    right: tuple[Trial, ...]
    inapplicable: dict[str, str]
    own: int  # of the wrong ones, how many are this operator's alone

    @property
    def survivors(self) -> list[str]:
        """Wrong kernels that no shape refused."""
        return [trial.name for trial in self.wrong if not trial.refused]

    @property
    def rejected(self) -> list[str]:
        """Right kernels that a shape refused, and why."""
        return [f"{trial.name}: {reason}" for trial in self.right for reason in trial.reasons]


@cache
def result_of(name: str) -> Result:
    """Run them all."""
    operator, module = operators()[name], importlib.import_module(f"tests.bench.mutants.{name}")
    wrong = {each: Trial(each) for each in module.WRONG}
    spoilt: dict[str, Trial] = {}
    right = {each: Trial(each) for each in module.RIGHT}
    for place, args in enumerate(operator.tiny):
        for seed in SEEDS:
            call = _Call(operator, dict(args), seed)
            for trial in wrong.values():
                trial.add(place, *call.judge(call.run(module.WRONG[trial.name])))
            for trial in right.values():
                trial.add(place, *call.judge(call.run(module.RIGHT[trial.name])))
            for each, found in call.spoilt():
                spoilt.setdefault(each, Trial(each)).add(place, *call.judge(found))
    trials = (*wrong.values(), *spoilt.values())
    assert {trial.kind for trial in trials} <= set(KINDS), sorted({trial.kind for trial in trials} - set(KINDS))
    return Result(operator, trials, tuple(right.values()), dict(module.INAPPLICABLE), len(wrong))


class _Call:
    """Tensors, settings and the right answer of a tiny shape with a seed."""

    def __init__(self, operator: Operator, args: dict[str, Any], seed: int) -> None:
        self.operator, self._args = operator, args
        self._tensors = operator.inputs(**args, seed=seed)
        self._wanted = operator.answer(self._tensors, args)
        self._stale = operator.answer(operator.inputs(**args, seed=seed + _STALE), args)

    def run(self, kernel: Any) -> Any:
        """What a kernel gives, of copies."""
        copies = (tensor.clone() for tensor in self._tensors.values())
        return kernel(*copies, **self.operator.settings_of(self._args))

    def judge(self, found: Any) -> tuple[list[OutputCheck], dict[str, float]]:
        """The checks, and by output the error in tolerances where one was measured."""
        checks = compare_outputs(self.operator, found, self._wanted, self._args)
        values = list(found) if isinstance(found, tuple | list) else [found]
        margins = {}
        for check in checks:
            if check.error is not None and check.row_error is not None and check.tolerance:
                margin = max(check.error / check.tolerance, check.row_error / check.tolerance / ROW)
                if check.output in self.operator.quantised:
                    place = list(self._wanted).index(check.output)
                    unlike = values[place].float() != self._wanted[check.output].float()
                    margin = int(unlike.sum()) / flips_allowed(unlike)
                margins[check.output] = margin
        return checks, margins

    def spoilt(self) -> "Iterator[tuple[str, Any]]":
        """Every generic fault of every output that has room for it."""
        right = list(self._wanted.values())
        for place, output in enumerate(self._wanted):
            for name, spoil in GENERIC.items():
                one = spoil(right[place].clone(), self._stale[output], list(self._tensors.values()))
                if one is not None:
                    yield f"{name} ({output})", [*right[:place], one, *right[place + 1 :]]
        yield "contract: an output too few", right[:-1]
        yield "contract: an output too many", [*right, right[0]]
