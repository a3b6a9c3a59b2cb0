"""Runs every kernel of this folder on the tiny shapes of its operator, and says what the check makes of it.

Usual inputs come first, from two seeds; then the hard cases that the operator declares, for kernels that got the usual
ones right. Right kernels run on both, and in the other types of 16 and 32 bits where their inputs have one.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from tests.bench.mutants.generic import GENERIC, GENERIC_HARD
from tests.bench.mutants.inputs import HARD, READ, Misread
from tests.bench.mutants.shared import KINDS, Kernel
from torch import Tensor

from inferometer.bench.comparison import ROW, OutputCheck, compare_outputs, flips_allowed
from inferometer.operators import operators
from inferometer.operators.hard_cases import HardCase
from inferometer.operators.operator import Operator

SEEDS = (1, 2)
_STALE = 1000  # added to a seed: that of the call before
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_RAISED = "it raised"


@dataclass
class Trial:
    """One kernel on all tiny shapes.

    Attributes:
        name: `kind: what`.
        group: Whose fault it is: the operator's `own`, `spoilt` outputs, an `input` read wrong.
        refused: Shapes on which it was refused, with any seed.
        shapes: On which it could run.
        reasons: Why, each once.
        hard: Hard cases on which it was refused, by name.
        margin: The largest error, in tolerances; None where no error was measured (kind, NaN, exact outputs).
        output: The output that it belongs to.
    """

    name: str
    group: str = "own"
    refused: set[int] = field(default_factory=set)
    shapes: set[int] = field(default_factory=set)
    reasons: dict[str, None] = field(default_factory=dict)
    hard: dict[str, None] = field(default_factory=dict)
    margin: float | None = None
    output: str = ""
    by_usual: bool = False

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self.name.split(":")[0]

    def add(self, place: int, verdict: "Verdict", case: str | None = None) -> None:
        """What came of one call, of the hard case of this name or of usual inputs."""
        self.shapes.add(place)
        for reason in verdict.reasons:
            self.refused.add(place)
            self.reasons[reason if case is None else f"{case}: {reason}"] = None
            self.by_usual |= case is None
            if case is not None:
                self.hard[case] = None
        for output, margin in verdict.margins.items():
            if self.margin is None or margin > self.margin:
                self.margin, self.output = margin, output


@dataclass(frozen=True)
class Verdict:
    """Why a call is refused, and by output the error in tolerances where one was measured."""

    reasons: Sequence[str] = ()
    margins: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """All kernels of one operator."""

    operator: Operator
    wrong: tuple[Trial, ...]
    right: tuple[Trial, ...]
    inapplicable: dict[str, str]

    @property
    def own(self) -> list[Trial]:
        """Wrong kernels that are this operator's alone."""
        return [trial for trial in self.wrong if trial.group == "own"]

    @property
    def survivors(self) -> list[str]:
        """Wrong kernels that no shape refused."""
        return [trial.name for trial in self.wrong if not trial.refused]

    @property
    def only_hard(self) -> list[Trial]:
        """Wrong kernels that usual inputs don't refuse, and a hard case does."""
        return [trial for trial in self.wrong if trial.refused and not trial.by_usual]

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
    usual = [_Call(operator, place, seed) for place in range(len(operator.tiny)) for seed in SEEDS]
    for call in usual:
        for trials, kernels in ((wrong, module.WRONG), (right, module.RIGHT)):
            for trial in trials.values():
                trial.add(call.place, call.try_out(kernels[trial.name]))
        for each, found in call.spoilt():
            spoilt.setdefault(each, Trial(each, "spoilt")).add(call.place, call.judge(found))
    hard = list(_hard_calls(operator))
    for call in hard:
        for trial in [each for each in wrong.values() if not each.by_usual]:
            trial.add(call.place, call.try_out(module.WRONG[trial.name]), call.case_name)
        for trial in right.values():
            trial.add(call.place, call.try_out(module.RIGHT[trial.name]), call.case_name)
        for each, found in call.spoilt_hard():
            spoilt.setdefault(each, Trial(each, "spoilt")).add(call.place, call.judge(found), call.case_name)
    misread = list(_misread(operator, dict(getattr(module, "HARMLESS", {})), usual[:: len(SEEDS)], hard))
    every = (*wrong.values(), *spoilt.values(), *misread)
    assert {trial.kind for trial in every} <= set(KINDS), sorted({trial.kind for trial in every} - set(KINDS))
    others = _in_other_dtypes(operator, module.RIGHT, getattr(module, "ONLY_IN", {}))
    return Result(operator, every, (*right.values(), *others), dict(module.INAPPLICABLE))


def _hard_calls(operator: Operator, dtype: str | None = None) -> "Iterator[_Call]":
    for place in range(len(operator.tiny)):
        yield from (_Call(operator, place, SEEDS[0], case, dtype) for case in operator.hard.cases)


def _misread(
    operator: Operator, harmless: Mapping[str, str], usual: "Sequence[_Call]", hard: "Sequence[_Call]"
) -> Iterator[Trial]:
    """The reference with one input read wrong, until a call refuses it; `HARD` ones are right with usual inputs."""
    for input_name in dict.fromkeys(name for call in usual for name in call.tensors):
        for pattern, misread in {**READ, **HARD}.items():
            trial = Trial(pattern.format(input_name), "input")
            for call in () if trial.name in harmless else (*usual, *hard):
                found = call.misread(input_name, misread)
                if found is not None:
                    trial.add(call.place, found, call.case_name)
                if trial.refused:
                    break
            if trial.shapes:
                yield trial


def _in_other_dtypes(
    operator: Operator, kernels: Mapping[str, Kernel], only_in: Mapping[str, Sequence[str]]
) -> Iterator[Trial]:
    """Right kernels in the types that the shape of a trial hasn't, judged by the tolerance of those."""
    for dtype in _DTYPES:
        usual = [_Call(operator, place, SEEDS[0], None, dtype) for place in range(len(operator.tiny))]
        calls = [call for call in (*usual, *_hard_calls(operator, dtype)) if call.is_converted]
        for name in kernels if calls else ():
            if dtype in only_in.get(name, _DTYPES):
                trial = Trial(f"{name}, {dtype}")
                for call in calls:
                    trial.add(call.place, call.try_out(kernels[name]), call.case_name)
                yield trial


class _Call:
    """Tensors, settings and the right answer of a tiny shape with a seed: usual ones, or those of a hard case.

    With `dtype`, tensors of the other types of 16 bits are of that one.
    """

    def __init__(
        self, operator: Operator, place: int, seed: int, case: HardCase | None = None, dtype: str | None = None
    ) -> None:
        self.operator, self.place, self.case, self._seed = operator, place, case, seed
        self._shape = dict(operator.tiny[place])
        self.is_converted, self._dtype = False, _DTYPES.get(dtype or "")
        inputs = operator.inputs if dtype is None else self._converted
        self._inputs: Callable[..., dict[str, Tensor]] = inputs
        if case is None:
            self.tensors, self._args = inputs(**self._shape, seed=seed), self._shape
        else:
            few = operator.hard.few(self._shape)
            self.tensors, self._args = operator.hard.draw(case, inputs, few, seed=seed)
        self._tolerance_args = self._shape if dtype is None else None
        self._wanted = operator.answer(self.tensors, self._args)
        self.__stale: dict[str, Tensor] | None = None

    @property
    def case_name(self) -> str | None:
        """None with usual inputs."""
        return None if self.case is None else self.case.name

    def try_out(self, kernel: Kernel) -> Verdict:
        """What is made of a kernel, of copies."""
        copies = (tensor.clone() for tensor in self.tensors.values())
        return self._verdict(lambda: kernel(*copies, **self.operator.settings_of(self._args)))

    def misread(self, name: str, misread: Misread) -> Verdict | None:
        """Of the reference with this input read wrong; None where it has no room for that, or reads the same."""
        if name not in self.tensors or not self.tensors[name].numel():
            return None
        own = self.tensors[name]
        wrong = misread(own.clone(), self._stale_inputs()[name])
        if wrong is None or (wrong.shape == own.shape and _is_same(wrong, own)):
            return None
        return self._verdict(lambda: list(self.operator.answer({**self.tensors, name: wrong}, self._args).values()))

    def judge(self, found: Any) -> Verdict:
        """The checks of an answer."""
        left_open = None if self.case is None else self.case.left_open
        checks = compare_outputs(self.operator, found, self._wanted, self._tolerance_args, self.tensors, left_open)
        reasons = [f"{check.output}: {check.reason}" for check in checks if check.reason]
        return Verdict(reasons, dict(self._margins(checks, found)))

    def _verdict(self, run: Callable[[], Any]) -> Verdict:
        try:
            found = run()
        except (ArithmeticError, IndexError, RuntimeError, ValueError) as error:
            if self.case is None:
                raise
            return Verdict([] if self.case.may_raise else [f"{_RAISED} {type(error).__name__}"])
        return self.judge(found)

    def _margins(self, checks: Sequence[OutputCheck], found: Any) -> Iterator[tuple[str, float]]:
        values = list(found) if isinstance(found, tuple | list) else [found]
        for check in checks:
            if check.error is not None and check.row_error is not None and check.tolerance:
                margin = max(check.error / check.tolerance, check.row_error / check.tolerance / ROW)
                if check.output in self.operator.quantised:
                    place = list(self._wanted).index(check.output)
                    unlike = values[place].float() != self._wanted[check.output].float()
                    margin = int(unlike.sum()) / flips_allowed(unlike) if unlike.numel() else 0.0
                yield check.output, margin

    def spoilt(self) -> "Iterator[tuple[str, Any]]":
        """Every generic fault of every output that has room for it."""
        right = list(self._wanted.values())
        stale = self.operator.answer(self._stale_inputs(), self._args)
        for place, output in enumerate(self._wanted):
            for name, spoil in GENERIC.items():
                one = spoil(right[place].clone(), stale[output], list(self.tensors.values()))
                if one is not None:
                    yield f"{name} ({output})", [*right[:place], one, *right[place + 1 :]]
        yield "contract: an output too few", right[:-1]
        yield "contract: an output too many", [*right, right[0]]

    def spoilt_hard(self) -> "Iterator[tuple[str, Any]]":
        """The same of hard inputs."""
        assert self.case is not None
        right = list(self._wanted.values())
        for place, output in enumerate(self._wanted):
            for name, spoil in GENERIC_HARD.items():
                one = spoil(right[place].clone(), self.case)
                if one is not None:
                    yield f"{name} ({output})", [*right[:place], one, *right[place + 1 :]]

    def _stale_inputs(self) -> dict[str, Tensor]:
        if self.__stale is None:
            self.__stale = self._inputs(**self._args, seed=self._seed + _STALE)
        return self.__stale

    def _converted(self, **args: Any) -> dict[str, Tensor]:
        drawn = self.operator.inputs(**args)
        found = {
            name: tensor.to(self._dtype) if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
            for name, tensor in drawn.items()
        }
        self.is_converted |= any(found[name].dtype != drawn[name].dtype for name in drawn)
        return found


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Both zeros are one number, and all NaN."""
    return torch.equal(*(x.float().nan_to_num(12_345.0, posinf=23_456.0, neginf=-23_456.0) for x in (one, other)))
