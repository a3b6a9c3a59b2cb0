"""Whether the operators of an arm answer as the first arm's do, call by call, on what the first arm makes of the model.

The model runs as it does by that arm, which may call other operators than the first (a sum and a norm at once), and
goes on with the first arm's answers. Both get inputs of their own with the same values and strides, which are looked at
afterwards: an operator must not change them. That takes memory for a copy of a call's inputs, its weights among them,
and for two answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.ab.measurement import ERRORS
from inferometer.engines.ab.completion import Work
from inferometer.engines.ab.differences import CallDifference, OperatorCallCase, compare, normalised, tensors_of, worst
from inferometer.engines.arms import TORCH_ONLY, Arm, Check, checking, run, using
from inferometer.engines.memory import is_out_of_memory
from inferometer.engines.paths import PathRecorder, current_key
from inferometer.errors import clean

_LONGEST = 200


@dataclass
class _Seen:
    """What the checked calls of one path by one arm have come to. `call`: the first wrong one, from 1."""

    calls: int = 0
    call: int | None = None
    max_error: float | None = None
    normalised_error: float | None = None
    tolerance: float | None = None
    failure: str | None = None

    def add(self, found: CallDifference, *, is_sample: bool) -> None:
        self.calls += 1
        self.max_error = worst((self.max_error, found.max_error))
        self.normalised_error = worst((self.normalised_error, found.normalised_error))
        self.tolerance = worst((self.tolerance, found.tolerance))
        if self.failure is None and found.failure is not None:
            self.failure, self.call = found.failure, None if is_sample else self.calls


class OperatorErrors:
    """Of one arm, by path in the order of first checks."""

    def __init__(self, arm: str) -> None:
        self._arm = arm
        self._seen: dict[str, _Seen] = {}

    def add(self, path: str, found: CallDifference, *, is_sample: bool = False) -> None:
        """One more call; one of a sample has no number among those of its path."""
        self._seen.setdefault(path, _Seen()).add(found, is_sample=is_sample)

    def frame(self) -> pl.DataFrame:
        """Rows of the table `ERRORS`."""
        rows = [
            (self._arm, path, one.calls, one.max_error, one.normalised_error, one.tolerance, one.call, one.failure)
            for path, one in self._seen.items()
        ]
        return pl.DataFrame(rows, schema=ERRORS, orient="row")


class OperatorCheck(Check):
    """Hands every call of an operator to `base`, whose answer is the answer, and to `other`.

    `remarks` says what `base` did that it must not. The other's mistakes, also errors that it raises, are in `errors`.
    What raises in `base`, and memory that runs out, ends the run. `begins` is called with each arm before each of its
    calls.
    """

    def __init__(
        self,
        base: Arm,
        other: Arm,
        begins: Callable[[Arm], None] = lambda arm: None,
        errors: OperatorErrors | None = None,
    ) -> None:
        self._base, self._other, self._begins = base, other, begins
        self.errors = OperatorErrors(other.name) if errors is None else errors
        self._damages: dict[str, None] = {}

    def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
        """The first arm's answer."""
        path = current_key() or operator
        self._begins(self._base)
        own_args, own_settings = twin(args), twin(settings)
        answer, _ = run(self._base, operator, own_args, own_settings)
        if damage := _damage((args, settings), (own_args, own_settings)):
            self._damages[f"{self._base.name} {damage}: {path}"] = None
        asked = OperatorCallCase(operator, args, settings, lambda: own_errors(operator, args, settings, answer))
        self.errors.add(path, self._look(asked, answer))
        return answer

    @property
    def remarks(self) -> list[str]:
        """A line each."""
        return list(self._damages)

    def _look(self, asked: OperatorCallCase, answer: Any) -> CallDifference:
        self._begins(self._other)
        args, settings = twin(asked.args), twin(asked.settings)
        try:
            found, _ = run(self._other, asked.operator, args, settings)
            difference = compare(asked, answer, found)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            text = clean(str(error).split("\n")[0])[:_LONGEST]
            return CallDifference(None, failure=f"raised {type(error).__name__}: {text}")
        damage = _damage((asked.args, asked.settings), (args, settings))
        if damage is None:
            return difference
        text = damage if difference.failure is None else f"{difference.failure}; {damage}"
        return CallDifference(difference.max_error, difference.normalised_error, difference.tolerance, text)


def check_operators(work: Work, arm: Arm, check: OperatorCheck, recorder: PathRecorder) -> None:
    """One completion as `arm` runs it, with every call of an operator checked."""
    with using(arm), checking(check), recorder.entered():
        work.run()


def twin(value: Any) -> Any:
    """The same with tensors of its own, whose strides are the same: a kernel may go wrong on odd ones only."""
    import torch

    if isinstance(value, torch.Tensor):
        return _twin_of(value)
    if isinstance(value, Mapping):
        return {key: twin(each) for key, each in value.items()}
    return tuple(twin(each) for each in value) if isinstance(value, tuple | list) else value


def _twin_of(tensor: Any) -> Any:
    """Dimensions that repeat one value (stride 0) do so in the twin."""
    import torch

    once = tensor
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            once = once.narrow(dim, 0, 1)
    made = torch.empty_strided(once.shape, once.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.copy_(once).expand(tensor.shape)


def _damage(before: tuple[Any, Any], after: tuple[Any, Any]) -> str | None:
    """Which of the inputs isn't what it was."""
    (args, settings), (used_args, used_settings) = before, after
    places = [(f"argument {n}", *pair) for n, pair in enumerate(zip(args, used_args, strict=True), start=1)]
    places += [(name, settings[name], used_settings[name]) for name in settings]
    changed = [name for name, old, new in places if not _is_same(old, new)]
    return f"changes its inputs: {', '.join(changed)}" if changed else None


def _is_same(old: Any, new: Any) -> bool:
    pairs = zip(tensors_of(old), tensors_of(new), strict=True)
    return all(bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in pairs)  # NaN


def own_errors(operator: str, args: Sequence[Any], settings: Mapping[str, Any], answer: Any) -> list[float | None]:
    """Of each tensor of the first arm's answer, against plain PyTorch on the inputs in float64; None: it can't."""
    answers = tensors_of(answer)
    try:
        exact = tensors_of(run(TORCH_ONLY, operator, _doubled(args), _doubled(settings))[0])
    except Exception as error:  # an operator without float64
        if is_out_of_memory(error):
            raise
        return [None] * len(answers)
    return [
        normalised(right.double(), own.double()) if own.is_floating_point() else None
        for own, right in zip(answers, exact, strict=True)
    ]


def _doubled(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return {key: _doubled(each) for key, each in value.items()}
    return tuple(_doubled(each) for each in value) if isinstance(value, tuple | list) else value
