"""From a model, an adapter and a kernel path to a program: which kernels run, on what memory, in which order.

The path says the steps; `selecting` takes a kernel for each, `layout` gives places, `dispatching` makes the launches.
Every choice is told with its reason, and what the path asked for is kept beside it, for `plan_diff`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.webgpu.dispatching import DISPATCHES
from inferometer.engines.webgpu.executor import Adapter, LoadedModel, PlannedStep, Selection
from inferometer.engines.webgpu.kernel_path import PHASES, PLACES, KernelPath, Place, Step, find_path, holds
from inferometer.engines.webgpu.layout import Layout
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.program import Dispatch, Phase, Program, Purpose
from inferometer.engines.webgpu.selecting import Chosen, Tuned, check_constants, choose, meant, rows_of, situation_of
from inferometer.engines.webgpu.step_context import Pipelines, StepContext
from inferometer.errors import InputError

_HEAD_DIM_MULTIPLE, _MOST_HEAD_DIM = 8, 256


@dataclass(frozen=True)
class PurposeMemory:
    """Memory of the device for one purpose. `overhead_bytes`: allocated, but needed by nobody: rounding."""

    purpose: Purpose
    needed_bytes: int
    allocated_bytes: int

    @property
    def overhead_bytes(self) -> int:
        """What rounding costs."""
        return self.allocated_bytes - self.needed_bytes


@dataclass
class _Planning:
    """What grows while steps are gone through."""

    path: KernelPath
    layout: Layout
    adapter: Adapter
    tuned: Tuned | None
    greedy: bool
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

    Raises:
        InputError: The model's sizes are none that kernels take, or don't fit the adapter's limits.
        FormatError: The path's steps don't fit each other or the model.
    """
    spec = checkpoint.spec
    path = find_path(spec.family) if path is None else path
    _check_sizes(spec, path, capacity, most_rows)
    most_rows = min(most_rows, capacity)
    layout = Layout(checkpoint, adapter, capacity=capacity, most_rows=most_rows)
    planning = _Planning(path, layout, adapter, tuned, greedy)
    phases = {phase: tuple(_plan_phase(planning, phase)) for phase in PHASES}
    pipelines = tuple(planning.pipelines.made)
    program = Program(
        name=spec.name,
        kernel_path=path.name,
        capacity=capacity,
        most_rows=most_rows,
        vocabulary=spec.vocab,
        buffers=layout.buffers(),
        pipelines=pipelines,
        phases=phases,
        requires=tuple(sorted({each for one in pipelines for each in read_kernel(one.kernel).requires})),
    )
    return LoadedModel(
        program=program,
        contents=layout.contents,
        selections=tuple(planning.selections),
        planned=tuple(planning.planned),
        notes=tuple(checkpoint.notes),
        parameters=checkpoint.parameters,
    )


def memory_by_purpose(program: Program) -> tuple[PurposeMemory, ...]:
    """Where a program's memory goes, the largest first."""
    needed: dict[Purpose, int] = {}
    allocated: dict[Purpose, int] = {}
    for buffer in program.buffers:
        needed[buffer.purpose] = needed.get(buffer.purpose, 0) + buffer.needed_bytes
        allocated[buffer.purpose] = allocated.get(buffer.purpose, 0) + buffer.size_bytes
    ordered = sorted(allocated, key=lambda purpose: -allocated[purpose])
    return tuple(PurposeMemory(purpose, needed[purpose], allocated[purpose]) for purpose in ordered)


def _check_sizes(spec: ModelSpec, path: KernelPath, capacity: int, most_rows: int) -> None:
    if spec.family not in path.families:
        raise InputError(
            f"{spec.name}: want a kernel path for {spec.family}, found {path.name} for {', '.join(path.families)}"
        )
    if capacity < 1 or most_rows < 1:
        raise InputError(f"{spec.name}: want one position and one row at least, found {capacity} and {most_rows}")
    if spec.head_dim % _HEAD_DIM_MULTIPLE or spec.head_dim > _MOST_HEAD_DIM:
        raise InputError(
            f"{spec.name}: want heads of a multiple of {_HEAD_DIM_MULTIPLE} numbers, {_MOST_HEAD_DIM} at most, "
            f"found {spec.head_dim}"
        )


def _plan_phase(planning: _Planning, phase: Phase) -> Iterator[Dispatch]:
    steps = planning.path.phases[phase]
    for place in PLACES:
        chosen = [
            (step, _choose(planning, phase, place, step))
            for step in getattr(steps, place)
            if holds(step.when, planning.spec)
        ]
        layers = range(planning.spec.layers) if place == "layer" else (None,)
        for layer in layers:
            for step, choice in chosen:
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


def _choose(planning: _Planning, phase: Phase, place: Place, step: Step) -> Chosen:
    """The kernel of a step, noted with its reason and beside what the path wanted."""
    where = f"{planning.spec.name}: {phase}.{place}: {step.label}"
    rows = rows_of(phase, planning.layout.most_rows)
    choices = planning.path.candidates(step)
    situation = situation_of(step, planning.spec, planning.adapter, rows, greedy=planning.greedy)
    chosen = choose(choices, situation, planning.tuned, where)
    check_constants(chosen, where)
    count = planning.spec.layers if place == "layer" else 1
    first = meant(choices, situation)[0]
    for kernel in first.kernels:
        op = step.op if kernel == first.kernel else read_kernel(kernel).op
        planning.planned.append(PlannedStep(phase, op, step.role, kernel, count))
    for kernel in chosen.choice.kernels:
        op = step.op if kernel == chosen.choice.kernel else read_kernel(kernel).op
        known = read_kernel(kernel).constants
        constants = {name: value for name, value in chosen.constants.items() if name in known}
        planning.selections.append(Selection(phase, op, step.role, kernel, constants, chosen.reason))
    return chosen
