"""From a model, an adapter and a kernel path to a program: which kernels run, on what memory, in which order.

The path says the steps; `selection` takes a kernel for each, `layout` gives places, `dispatches` makes the launches.
Every choice is reported with its reason, and what the path asked for is kept next to it, for `difference`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CacheFormat
from inferometer.backends.wgsl.source import read_kernel
from inferometer.backends.wgsl.weight_formats import WeightFormat
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.plan.dispatches import DISPATCHES
from inferometer.engines.webgpu.plan.kernel_path import (
    NEXT_NORM,
    PHASES,
    PLACES,
    KernelChoice,
    KernelPath,
    PathStep,
    Place,
    holds,
)
from inferometer.engines.webgpu.plan.layout import Layout
from inferometer.engines.webgpu.plan.path_files import find_path
from inferometer.engines.webgpu.plan.selection import (
    FUSED,
    SEPARATE,
    Chosen,
    Situation,
    Tuned,
    check_constants,
    choose,
    fits_shape,
    form_key,
    meant,
    rows_of,
    situation_of,
)
from inferometer.engines.webgpu.plan.step_context import Pipelines, StepContext, weight_name
from inferometer.engines.webgpu.plan.weight_shapes import weight_shape
from inferometer.engines.webgpu.program import Dispatch, Phase, Program
from inferometer.engines.webgpu.run.executor import Adapter, LoadedModel, PlannedStep, Selection
from inferometer.errors import InputError

FINAL_NORM = "final_norm"
"""The role of what has the norm after the last layer, whatever the steps of other layers are called."""
_HEAD_DIM_MULTIPLE, _MOST_HEAD_DIM = 8, 256


@dataclass
class _Planning:
    """What grows while steps are gone through."""

    path: KernelPath
    layout: Layout
    adapter: Adapter
    tuned: Tuned | None
    greedy: bool
    fused: str | None
    pipelines: Pipelines = field(default_factory=Pipelines)
    selections: list[Selection] = field(default_factory=list)
    planned: list[PlannedStep] = field(default_factory=list)
    widths: dict[str, int] = field(default_factory=dict)
    heights: dict[str, int] = field(default_factory=dict)

    @property
    def spec(self) -> ModelSpec:
        return self.layout.spec


def plan_model(
    checkpoint: Checkpoint,
    adapter: Adapter,
    *,
    capacity: int,
    most_rows: int = 64,
    path: KernelPath | None = None,
    tuned: Tuned | None = None,
    greedy: bool = False,
    weights: WeightFormat | None = None,
    cache: CacheFormat = CACHE_F16,
) -> LoadedModel:
    """A program for a model on an adapter.

    Args:
        checkpoint: The model; its weights are read when the program is loaded.
        adapter: Its features and limits decide kernels and cuts.
        capacity: Positions of the KV cache: prompt and answer together.
        most_rows: Rows of a prefill pass at most; longer prompts go in pieces.
        path: None: the bundled one of the model's family.
        tuned: What was measured on this adapter.
        greedy: The program never has to draw: a kernel that can't may sample.
        weights: How matrices lie on the device; None: each in its own format. What was tuned was measured with float16,
            and is for products of float16.
        cache: How keys and values do; what was tuned is for float16 ones.

    Raises:
        InputError: The model's sizes are none that kernels take, or don't fit the adapter's limits.
        FormatError: The path's steps don't fit each other or the model.
    """
    spec = checkpoint.spec
    path = find_path(spec.family) if path is None else path
    _check_sizes(spec, path, capacity, most_rows)
    most_rows = min(most_rows, capacity)
    layout = Layout(checkpoint, adapter, capacity=capacity, most_rows=most_rows, weights=weights, cache=cache)
    planning = _Planning(path, layout, adapter, tuned, greedy, _why_fused(path, layout, tuned))
    phases = {phase: tuple(_plan_phase(planning, phase)) for phase in PHASES}
    program = Program(
        name=spec.name,
        kernel_path=path.name,
        capacity=capacity,
        most_rows=most_rows,
        vocabulary=spec.vocab,
        buffers=layout.buffers(),
        pipelines=tuple(planning.pipelines.made),
        phases=phases,
        requires=planning.pipelines.requires,
    )
    return LoadedModel(
        program=program,
        contents=layout.contents,
        selections=tuple(planning.selections),
        planned=tuple(planning.planned),
        notes=tuple(checkpoint.notes),
        parameters=checkpoint.parameters,
        matrix_bytes={weights.name: size for weights, size in layout.matrix_bytes.items()},
    )


def _check_sizes(spec: ModelSpec, path: KernelPath, capacity: int, most_rows: int) -> None:
    if spec.family not in path.families:
        raise InputError(
            f"{spec.name}: expected a kernel path for {spec.family}, found {path.name} for {', '.join(path.families)}"
        )
    if capacity < 1 or most_rows < 1:
        raise InputError(f"{spec.name}: expected one position and one row at least, found {capacity} and {most_rows}")
    if spec.head_dim % _HEAD_DIM_MULTIPLE or spec.head_dim > _MOST_HEAD_DIM:
        raise InputError(
            f"{spec.name}: expected heads of a multiple of {_HEAD_DIM_MULTIPLE} numbers, {_MOST_HEAD_DIM} at most, "
            f"found {spec.head_dim}"
        )


def _why_fused(path: KernelPath, layout: Layout, tuned: Tuned | None) -> str | None:
    """The tuner's reason to decode in the path's fused form; None where it is to be the other."""
    if path.fused is None or tuned is None or not layout.is_half:
        return None
    answer = tuned(form_key(layout.spec), (SEPARATE, FUSED))
    return None if answer is None or answer[0] != FUSED else f"fused form of decode, tuned: {answer[1]}"


def _plan_phase(planning: _Planning, phase: Phase) -> Iterator[Dispatch]:
    steps = planning.path.phases[phase]
    for place, step in steps.places():
        if holds(step.when, planning.spec):
            _note_planned(planning, phase, place, step)
    if phase == "decode" and planning.fused is not None and planning.path.fused is not None:
        steps = planning.path.fused
    for place in PLACES:
        chosen = [
            (step, _choose(planning, phase, place, step))
            for step in getattr(steps, place)
            if holds(step.when, planning.spec)
        ]
        layers = range(planning.spec.layers) if place == "layer" else (None,)
        for layer in layers:
            for meant_step, choice in chosen:
                if layer is not None and not holds(meant_step.when, planning.spec, layer=layer):
                    continue
                step = _named(meant_step, is_last=layer == planning.spec.layers - 1)
                where = f"{planning.path.name}: {phase}.{place}: {step.label}"
                context = StepContext(
                    phase=phase,
                    step=step,
                    chosen=choice,
                    layer=layer,
                    layout=planning.layout,
                    pipelines=planning.pipelines,
                    widths=planning.widths,
                    heights=planning.heights,
                    place=where,
                )
                yield from DISPATCHES[step.op](context)


def _choose(planning: _Planning, phase: Phase, place: Place, step: PathStep) -> Chosen:
    """The kernel of a step, noted with its reason."""
    where = f"{planning.spec.name}: {phase}.{place}: {step.label}"
    choices, situation = _asked(planning, phase, place, step)
    chosen = choose(choices, situation, planning.tuned, where)
    check_constants(chosen, where)
    roles = _roles(step, planning.spec, place)
    reason = chosen.reason
    if phase == "decode" and planning.fused is not None and (place, step) not in planning.path.phases[phase].places():
        reason = f"{planning.fused}; {reason}"
    for kernel in chosen.choice.kernels:
        op = step.op if kernel == chosen.choice.kernel else read_kernel(kernel).op
        known = read_kernel(kernel).constants
        constants = {name: value for name, value in chosen.constants.items() if name in known}
        planning.selections += [Selection(phase, op, role, kernel, constants, reason) for role in roles]
    return chosen


def _asked(planning: _Planning, phase: Phase, place: Place, step: PathStep) -> tuple[Sequence[KernelChoice], Situation]:
    rows = rows_of(phase, planning.layout.most_rows)
    situation = situation_of(
        step,
        planning.spec,
        planning.adapter,
        rows,
        greedy=planning.greedy,
        weights=_formats(planning.layout, place, step),
    )
    return planning.path.candidates(step), situation


def _formats(layout: Layout, place: Place, step: PathStep) -> frozenset[WeightFormat]:
    """Of the step's matrices, in every layer that it stands in."""
    if step.op in ("expert_gate_up", "expert_down"):
        return frozenset({layout.expert_weights})
    found: set[WeightFormat] = set()
    layers = [layer for layer in range(layout.spec.layers) if holds(step.when, layout.spec, layer=layer)]
    for layer in layers if place == "layer" else (None,):
        names = [weight_name(layout.spec, name, layer) for name in step.matrices]
        matrices = [name for name in names if len(weight_shape(layout.spec, name)) > 1]
        found.update(layout.formats(matrices, alike=step.op.endswith("gate_up")))
    return frozenset(found)


def _note_planned(planning: _Planning, phase: Phase, place: Place, step: PathStep) -> None:
    """What the path wants, in the form that it has without a tuner."""
    asked, situation = _asked(planning, phase, place, step)
    choices = [each for each in meant(asked, situation) if fits_shape(each, situation)]
    roles = _roles(step, planning.spec, place)
    for kernel in choices[0].kernels if choices else ():
        op = step.op if kernel == choices[0].kernel else read_kernel(kernel).op
        planning.planned += [PlannedStep(phase, op, role, kernel, count) for role, count in roles.items()]


def _named(step: PathStep, *, is_last: bool) -> PathStep:
    """The step with the role that it has in the last layer, where the next norm is the final one."""
    return msgspec.structs.replace(step, role=FINAL_NORM) if is_last and NEXT_NORM in step.weights else step


def _roles(step: PathStep, spec: ModelSpec, place: Place) -> Mapping[str | None, int]:
    """The roles of a step, and how often it has each in one pass."""
    if place != "layer":
        return {step.role: 1}
    own = [layer for layer in range(spec.layers) if holds(step.when, spec, layer=layer)]
    return Counter(_named(step, is_last=layer == spec.layers - 1).role for layer in own)
