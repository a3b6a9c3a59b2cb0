"""What can be wrong with a kernel path, whatever the model: unknown kernels and words, inputs that nothing writes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from inferometer.backends.wgsl.source import kernel_names, read_kernel
from inferometer.engines.webgpu.model_spec import Family
from inferometer.engines.webgpu.plan.kernel_path import (
    CONDITIONS,
    FORMS,
    GREEDY,
    LAYER_CONDITIONS,
    PHASES,
    PLACES,
    KernelChoice,
    KernelPath,
    PathStep,
    PhaseSteps,
)
from inferometer.errors import FormatError, UnknownName

_ACTIVATION = re.compile(r"[a-z][a-z_]*")
_TAKEN = frozenset(
    {"state", "tokens", "sampling", "seen", "unused", "embed", "lm_head", "attention_parts", "linear_parts"}
)


def check_path(path: KernelPath, place: str) -> None:
    """Raise `FormatError` at the first fault; `place` begins its message."""
    if not path.families:
        raise FormatError(f"{place}: families: expected one or more of {', '.join(get_args(Family))}, found none")
    for name, choices in path.kernels.items():
        _check_choices(choices, f"{place}: kernels.{name}")
    check_steps(path, place, {})


def check_steps(path: KernelPath, place: str, names: Mapping[str, str]) -> None:
    """Raise `FormatError` at the first fault of the steps; `names`: of phases in the file, where they are others."""
    rows: dict[str, list[str]] = {}
    for phase in PHASES:
        steps, name = path.phases[phase], names.get(phase, phase)
        if phase == "head" and steps.layer:
            raise FormatError(
                f"{place}: head.layer: expected none, found {len(steps.layer)}: it stands behind all layers"
            )
        seen = dict.fromkeys([*rows["prefill"], *rows["decode"]] if phase == "head" else ())
        for at, step in _placed(steps):
            _check_step(path, step, f"{place}: {name}.{at}")
            if not at.startswith("layer"):
                _check_condition(step.when, set(CONDITIONS), f"{place}: {name}.{at}.when")
            _check_flow(steps, step, seen, f"{place}: {name}.{at}")
            seen.update(dict.fromkeys(step.outputs))
        rows[phase] = list(seen)
    if "logits" not in rows["head"]:
        raise FormatError(f'{place}: head: expected a step that writes "logits", found {", ".join(rows["head"])}')


def _placed(steps: PhaseSteps) -> Iterator[tuple[str, PathStep]]:
    for where in PLACES:
        for index, step in enumerate(getattr(steps, where)):
            yield f"{where}[{index}]", step


def _check_choices(choices: Sequence[KernelChoice], place: str) -> None:
    if not choices:
        raise FormatError(f"{place}: expected one or more kernels, found none")
    for index, choice in enumerate(choices):
        at = f"{place}[{index}]"
        for name in choice.kernels:
            if name not in kernel_names():
                error = UnknownName("kernel", name, kernel_names())
                raise FormatError(f"{at}: {error.message}", hint=error.hint)
        known = {constant for name in choice.kernels for constant in read_kernel(name).constants}
        for constant in (*choice.constants, *choice.tune):
            if constant not in known:
                raise FormatError(
                    f'{at}: unknown constant "{constant}" of {choice.kernel}',
                    hint=f"It has {', '.join(sorted(known))}",
                )
        _check_condition(choice.when, {*CONDITIONS, GREEDY}, f"{at}.when")


def _check_condition(condition: str | None, known: set[str], place: str) -> None:
    if condition is not None and condition.removeprefix("not ") not in known:
        raise FormatError(
            f'{place}: unknown condition "{condition}"', hint=f"Known, also with not: {', '.join(sorted(known))}"
        )


def _check_step(path: KernelPath, step: PathStep, place: str) -> None:
    form = FORMS.get(step.op)
    if form is None:
        error = UnknownName("op", step.op, FORMS)
        raise FormatError(f"{place}: {error.message}", hint=error.hint)
    if isinstance(step.kernels, str) and step.kernels not in path.kernels:
        error = UnknownName("list of kernels", step.kernels, path.kernels)
        raise FormatError(f"{place}.kernels: {error.message}", hint=error.hint)
    if not isinstance(step.kernels, str):
        _check_choices(step.kernels, f"{place}.kernels")
    for name, wanted, found in (("inputs", form.inputs, step.inputs), ("outputs", form.outputs, step.outputs)):
        if len(found) != wanted:
            raise FormatError(f"{place}.{name}: {step.op} wants {wanted}, found {len(found)}")
    least = 2 if step.op == "norm_linear" else 1
    if (form.weights is None and len(step.weights) < least) or form.weights not in (None, len(step.weights)):
        want = f"{'two' if least == 2 else 'one'} or more" if form.weights is None else form.weights
        raise FormatError(f"{place}.weights: {step.op} wants {want}, found {len(step.weights)}")
    if len(step.extra) not in (0, form.extra, len(step.matrices)) or (step.extra and not form.extra):
        raise FormatError(f"{place}.extra: {step.op} wants none or {form.extra}, found {len(step.extra)}")
    _check_condition(step.when, {*CONDITIONS, *LAYER_CONDITIONS}, f"{place}.when")
    _check_condition(step.extra_when, set(CONDITIONS), f"{place}.extra_when")
    for choice in path.candidates(step):
        if read_kernel(choice.kernel).op not in (form.kernel_ops or {step.op}):
            raise FormatError(
                f"{place}.kernels: {choice.kernel} is a kernel of {read_kernel(choice.kernel).op}, expected {step.op}"
            )
        if step.op == "linear_add" and "ADD" not in read_kernel(choice.kernels[-1]).constants:
            raise FormatError(f"{place}.kernels: {choice.kernels[-1]}: expected a kernel with the constant ADD")


def _check_flow(steps: PhaseSteps, step: PathStep, seen: Mapping[str, None], place: str) -> None:
    """Every input was written before; no output is what a kernel reads, but for what a norm adds to."""
    later = {name for _, each in steps.places() for name in each.outputs}
    for name in step.inputs:
        if name not in seen:
            found = "it is written only behind here" if name in later else "nothing writes it"
            raise FormatError(f'{place}.inputs: expected what an earlier step gives, found "{name}": {found}')
    for name in step.outputs:
        if not _ACTIVATION.fullmatch(name) or name in _TAKEN:
            raise FormatError(
                f'{place}.outputs: expected small letters and underscores, found "{name}"',
                hint=f"Taken by others: {', '.join(sorted(_TAKEN))}",
            )
    kept = FORMS[step.op].in_place
    if step.inputs[:kept] != step.outputs[:kept]:
        raise FormatError(f"{place}: {step.op} adds to its first input: expected it first in outputs too")
    if both := set(step.inputs).intersection(step.outputs[kept:]):
        raise FormatError(f"{place}: {min(both)} is both read and written: expected another output")
