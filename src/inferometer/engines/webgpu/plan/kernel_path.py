"""Kernel paths: which steps a pass has in a model family, and which kernels each may run. Read from TOML.

    name = "llama"
    families = ["llama"]
    source = "why these"
    [kernels]                      lists of candidates, the one wanted first; steps name them
    linear = [{ kernel = "linear_workgroup", constants = { COLUMNS = 4 } }, { kernel = "linear_thread" }]
    [decode]                       the same for prefill and head
    before = [...]                 once, in front of the layers
    layer = [{ op = "linear", role = "o_proj", weights = ["o"], inputs = ["attended"], outputs = ["projected"],
               kernels = "linear" }, ...]
    after = [...]
    [decode_fused]                 another form of decode, for a tuner to choose where a whole step is faster with it

`base = "llama"` takes phases and lists from a bundled path; what stands in the file replaces those of its name.
Weights in `layer` are of that layer; `next_norm` is the norm in front of the next layer, behind the last the final one:
there its step has the role `final_norm`. Roles are those of `architectures`, so that a kernel is recognised by what it
does.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import msgspec

from inferometer.backends.wgsl.source import kernel_names, read_kernel
from inferometer.engines.webgpu.model_spec import Family, ModelSpec
from inferometer.engines.webgpu.program import Phase
from inferometer.errors import FormatError, UnknownName
from inferometer.side_files import read_side_file

Profile = Literal["base", "f16", "subgroups"]
AdapterKind = Literal["CPU", "IntegratedGPU", "DiscreteGPU", "VirtualGPU", "unknown"]
Place = Literal["before", "layer", "after"]
PLACES: tuple[Place, ...] = get_args(Place)
PHASES: tuple[Phase, ...] = ("prefill", "decode", "head")
NEXT_NORM = "next_norm"

CONDITIONS: Mapping[str, Callable[[ModelSpec], bool]] = {
    "sandwich": lambda spec: spec.sandwich,
    "head_norms": lambda spec: spec.head_norms,
    "qkv_bias": lambda spec: spec.qkv_bias,
    "o_bias": lambda spec: spec.o_bias,
    "ffn_bias": lambda spec: spec.ffn_bias,
    "tied": lambda spec: spec.tied,
    "logit_softcap": lambda spec: spec.logit_softcap is not None,
}
"""What `when` may say of a model; `not` in front turns it round. Candidates may say `greedy` too: of the program."""
LAYER_CONDITIONS: Mapping[str, Callable[[ModelSpec, int], bool]] = {
    "sparse": lambda spec, layer: spec.experts is not None and layer in spec.experts.layers,
}
"""What `when` of a step in `layer` may say too: of a layer."""
GREEDY = "greedy"

_ACTIVATION = re.compile(r"[a-z][a-z_]*")
_TAKEN = frozenset(
    {"state", "tokens", "sampling", "seen", "unused", "embed", "lm_head", "attention_parts", "linear_parts"}
)


@dataclass(frozen=True)
class StepForm:
    """What a step of an operator has: how many activations and weights, and whose kernels may do it.

    `in_place`: outputs that are inputs too. `weights` None: one or more.
    """

    inputs: int
    outputs: int
    weights: int | None
    extra: int = 0
    in_place: int = 0
    kernel_ops: frozenset[str] = frozenset()


FORMS: Mapping[str, StepForm] = {
    "gather": StepForm(0, 1, 1),
    "rms_norm": StepForm(1, 1, 1),
    "add_rms_norm": StepForm(2, 2, 1, in_place=1),
    "norm_add_norm": StepForm(2, 2, 2, in_place=1),
    "linear": StepForm(1, 1, None, extra=3, kernel_ops=frozenset({"linear", "linear_split"})),
    "linear_add": StepForm(2, 1, None, extra=3, in_place=1, kernel_ops=frozenset({"linear", "linear_split"})),
    "norm_linear": StepForm(1, 1, None, extra=3),
    "matmul": StepForm(1, 1, None, extra=3),
    "gate_up": StepForm(1, 1, 2, kernel_ops=frozenset({"gate_up", "matmul_gate_up"})),
    "norm_gate_up": StepForm(1, 1, 3),
    "gated_activation": StepForm(1, 1, 0),
    "moe_route": StepForm(1, 1, 0),
    "expert_gate_up": StepForm(2, 1, 2),
    "expert_down": StepForm(2, 1, 1),
    "shared_expert_add": StepForm(3, 1, 0, in_place=1),
    "rope": StepForm(1, 1, 0, extra=2),
    "attention": StepForm(1, 1, 0),
    "soft_cap": StepForm(1, 1, 0, in_place=1),
    "argmax": StepForm(1, 1, 0),
    "sample": StepForm(2, 0, 0),
}


FUSED_OPS = frozenset({"linear_add", "norm_linear", "norm_gate_up"})
"""A product with what stands behind or in front of it: adds to its first input; a norm, whose weight comes first."""


class KernelChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kernel that a step may run.

    Attributes:
        kernel: The stem of its file.
        then: A second kernel that finishes what it leaves in parts: `linear_sum` behind `linear_split`.
        constants: For both; what the planner knows of the shapes is added.
        tune: Values that a tuner tries for a constant.
        profile: What it is for, next to `base`; reported with the selection.
        adapters: Kinds of adapter that it is for (`Adapter.kind`); empty: all.
        requires: Features of the adapter beyond those that its file names.
        when: A condition on the model, or `greedy`.
        least_n, most_n, least_k, most_k, least_rows, most_rows: Of the step's matrix [N, K] and rows of the pass.
    """

    kernel: str
    then: str | None = None
    constants: dict[str, float] = {}
    tune: dict[str, tuple[float, ...]] = {}
    profile: Profile = "base"
    adapters: tuple[AdapterKind, ...] = ()
    requires: tuple[str, ...] = ()
    when: str | None = None
    least_n: int | None = None
    most_n: int | None = None
    least_k: int | None = None
    most_k: int | None = None
    least_rows: int | None = None
    most_rows: int | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        """What it launches, in order."""
        return (self.kernel,) if self.then is None else (self.kernel, self.then)


class PathStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One operator of a pass.

    Attributes:
        op: One of `FORMS`.
        role: As in labels.
        weights: Names of the checkpoint; several matrices of a `linear` are one, their rows behind each other.
        extra: Weights that it has where `extra_when` holds: biases, norms of heads.
        inputs, outputs: Activations by names of the path's own. What the norms add to is in both.
        when: A condition on the model without which the step isn't there.
        kernels: Candidates, or the name of a list of them.
    """

    op: str
    role: str | None = None
    weights: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    extra_when: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    when: str | None = None
    kernels: str | tuple[KernelChoice, ...]

    @property
    def matrices(self) -> tuple[str, ...]:
        """`weights` without the norm's, where a norm stands in front of a product."""
        return self.weights[1:] if self.op in ("norm_linear", "norm_gate_up") else self.weights

    @property
    def label(self) -> str:
        """`op` or `op:role`."""
        return self.op if self.role is None else f"{self.op}:{self.role}"


class PhaseSteps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Steps of a phase: in front of the layers, of each layer, behind them."""

    before: tuple[PathStep, ...] = ()
    layer: tuple[PathStep, ...] = ()
    after: tuple[PathStep, ...] = ()

    def places(self) -> Iterator[tuple[Place, PathStep]]:
        """All steps with where they stand, in order."""
        for place in PLACES:
            for step in getattr(self, place):
                yield place, step


class _PathFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    families: tuple[Family, ...]
    source: str = ""
    base: str | None = None
    kernels: dict[str, tuple[KernelChoice, ...]] = {}
    prefill: PhaseSteps | None = None
    decode: PhaseSteps | None = None
    head: PhaseSteps | None = None
    decode_fused: PhaseSteps | None = None


@dataclass(frozen=True)
class KernelPath:
    """A plan: `candidates(step)` are the kernels of a step, the one wanted first.

    `fused`: decode in another form, which only a tuner chooses; None: it has none.
    """

    name: str
    families: tuple[Family, ...]
    source: str
    kernels: Mapping[str, tuple[KernelChoice, ...]]
    phases: Mapping[Phase, PhaseSteps]
    fused: PhaseSteps | None = None

    def candidates(self, step: PathStep) -> tuple[KernelChoice, ...]:
        """What a step may run."""
        return self.kernels[step.kernels] if isinstance(step.kernels, str) else step.kernels


def holds(condition: str | None, spec: ModelSpec, *, greedy: bool = False, layer: int | None = None) -> bool:
    """Whether a model (and, of `greedy`, the program) is as a condition says. None always holds.

    Of a condition on layers: whether this one is; layer None: whether any is.
    """
    if condition is None:
        return True
    word = condition.removeprefix("not ")
    if word in LAYER_CONDITIONS:
        layers = range(spec.layers) if layer is None else (layer,)
        return any(LAYER_CONDITIONS[word](spec, each) != condition.startswith("not ") for each in layers)
    value = greedy if word == GREEDY else CONDITIONS[word](spec)
    return value != condition.startswith("not ")


def path_names() -> tuple[str, ...]:
    """The bundled paths."""
    folder = files("inferometer.engines.webgpu.plan") / "kernel_paths"
    return tuple(sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml")))


def find_path(family: str) -> KernelPath:
    """The bundled path of a model family.

    Raises:
        UnknownName: There is none.
    """
    paths = {each: path for path in map(_bundled, path_names()) for each in path.families}
    if family not in paths:
        raise UnknownName("model family with a kernel path", family, paths)
    return paths[family]


def read_path(file: Path) -> KernelPath:
    """A user's own path.

    Raises:
        InputError: It can't be read.
        FormatError: It isn't such a file; the message names the place.
    """
    try:
        text = read_side_file(file, pipe=True).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{file}: expected TOML in UTF-8, found byte {error.object[error.start]:#04x}") from error
    return parse_path(text, str(file))


@cache
def _bundled(name: str) -> KernelPath:
    text = (files("inferometer.engines.webgpu.plan") / "kernel_paths" / f"{name}.toml").read_text("utf-8")
    return parse_path(text, f"{name}.toml")


def parse_path(text: str, place: str) -> KernelPath:
    """A path of its text; `place` begins the messages of errors."""
    file = _parse_file(text, place)
    base = None if file.base is None else _find_base(file.base, place)
    own: dict[Phase, PhaseSteps | None] = {"prefill": file.prefill, "decode": file.decode, "head": file.head}
    phases: dict[Phase, PhaseSteps] = {}
    for phase in PHASES:
        steps = own[phase] if own[phase] is not None or base is None else base.phases[phase]
        if steps is None or not list(steps.places()):
            raise FormatError(
                f"{place}: {phase}: expected steps, found none", hint='Write them, or name a path as "base".'
            )
        phases[phase] = steps
    kernels = {**({} if base is None else base.kernels), **file.kernels}
    fused = file.decode_fused
    if fused is None and base is not None and file.decode is None:
        fused = base.fused
    path = KernelPath(file.name, file.families, file.source, kernels, phases, fused)
    _check(path, place)
    if fused is not None:
        _check_steps(replace(path, phases={**phases, "decode": fused}), place, {"decode": "decode_fused"})
    return path


def _parse_file(text: str, place: str) -> _PathFile:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{place}: expected TOML, found: {error}") from error
    if not parsed:
        raise FormatError(f"{place}: expected a kernel path, found nothing")
    try:
        return msgspec.convert(parsed, _PathFile, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        inside = where.rstrip("`").lstrip(".")
        raise FormatError(f"{place}: {f'{inside}: ' if inside else ''}{what[0].lower()}{what[1:]}") from error


def _find_base(name: str, place: str) -> KernelPath:
    """Only bundled paths are bases, so that files can't be each other's."""
    if name not in path_names():
        raise FormatError(f'{place}: base: unknown kernel path "{name}"', hint=f"Known: {', '.join(path_names())}")
    return _bundled(name)


def _check(path: KernelPath, place: str) -> None:
    """Everything that can be wrong without a model."""
    if not path.families:
        raise FormatError(f"{place}: families: expected one or more of {', '.join(get_args(Family))}, found none")
    for name, choices in path.kernels.items():
        _check_choices(choices, f"{place}: kernels.{name}")
    _check_steps(path, place, {})


def _check_steps(path: KernelPath, place: str, names: Mapping[str, str]) -> None:
    """`names`: of phases in the file, where they are others."""
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
