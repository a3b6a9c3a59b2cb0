"""Which of a step's candidates runs on an adapter, and why; what a tuner may try for it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from inferometer.backends.wgsl.source import read_kernel
from inferometer.backends.wgsl.weight_formats import F16, WeightFormat
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.plan.kernel_path import KernelChoice, KernelPath, PathStep, PhaseSteps, holds
from inferometer.engines.webgpu.plan.weight_shapes import matrix_shape
from inferometer.engines.webgpu.program import Phase
from inferometer.engines.webgpu.run.executor import Adapter
from inferometer.errors import FormatError, InputError

TUNED_OPS = frozenset(
    {"linear", "matmul", "gate_up", "norm_linear", "norm_gate_up", "attention", "expert_gate_up", "expert_down"}
)
"""Operators whose kernels a tuner chooses, by N, K and rows; a product that adds to its output counts as one without.
Attention only of one row: N are its numbers of queries, K those of keys. N and K of experts are those of one."""


@dataclass(frozen=True)
class TuneKey:
    """What a tuner measures once for an adapter: an operator at a shape. `rows`: of the pass, 1 in decode."""

    op: str
    n: int
    k: int
    rows: int


@dataclass(frozen=True)
class Candidate:
    """A kernel of a path with constants. What finishes it (`linear_sum`) has the same constants."""

    kernel: str
    constants: Mapping[str, float]


Tuned = Callable[[TuneKey, Sequence[Candidate]], tuple[Candidate, str] | None]
"""What a tuner measured to be the best of these, and a reason for people; None: it didn't."""


@dataclass(frozen=True)
class Chosen:
    """A step's kernel: the path's entry, its constants on this adapter, and why it was taken."""

    choice: KernelChoice
    constants: Mapping[str, float]
    reason: str

    def constant(self, kernel: str, name: str) -> int:
        """What a constant is: ours, or the kernel's own default; 1 where the kernel has none of this name."""
        return int(self.constants.get(name, read_kernel(kernel).defaults.get(name, 1)))


@dataclass(frozen=True)
class Situation:
    """What conditions of candidates are asked about: model, adapter, the step's matrix and rows, formats of weights."""

    spec: ModelSpec
    adapter: Adapter
    key: TuneKey
    greedy: bool = False
    weights: frozenset[WeightFormat] = frozenset({F16})

    @property
    def is_half(self) -> bool:
        """Whether all that is read of weights is float16."""
        return self.weights <= {F16}


def situation_of(
    step: PathStep,
    spec: ModelSpec,
    adapter: Adapter,
    rows: int,
    *,
    greedy: bool = False,
    weights: frozenset[WeightFormat] = frozenset({F16}),
) -> Situation:
    """Of a step: its matrices are one; without any, N and K are 0. `weights`: the formats of all in every layer."""
    n, k = _shape_of(step, spec)
    op = "linear" if step.op == "linear_add" else step.op
    return Situation(spec, adapter, TuneKey(op, n, k, rows), greedy, weights)


def _shape_of(step: PathStep, spec: ModelSpec) -> tuple[int, int]:
    if step.op == "attention":
        return spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    if step.op in ("expert_gate_up", "expert_down"):
        size = 0 if spec.experts is None else spec.experts.size
        return (size, spec.hidden) if step.op == "expert_gate_up" else (spec.hidden, size)
    if step.op not in TUNED_OPS and step.op not in ("gather", "linear_add"):
        return 0, 0
    n, k = matrix_shape(spec, step.matrices)
    return (n // 2 if step.op.endswith("gate_up") else n), k


def is_tuned(key: TuneKey) -> bool:
    """Whether a tuner chooses."""
    return key.op in TUNED_OPS and (key.op != "attention" or key.rows == 1)


SEPARATE, FUSED = (Candidate(name, {}) for name in ("separate", "fused"))
"""Forms of a whole decode step, for `Tuned`, under the key `form_key`."""


def form_key(spec: ModelSpec) -> TuneKey:
    """N are the columns of all products of a layer that take the hidden state, K its size."""
    return TuneKey("decode", *matrix_shape(spec, ["q", "k", "v", "gate", "up"]), 1)


def meant(choices: Sequence[KernelChoice], situation: Situation) -> tuple[KernelChoice, ...]:
    """Those that the path has for such a model, program and kind of adapter, whatever the adapter's features."""
    return tuple(
        each
        for each in choices
        if holds(each.when, situation.spec, greedy=situation.greedy)
        and (not each.adapters or situation.adapter.kind in each.adapters)
    )


def choose(choices: Sequence[KernelChoice], situation: Situation, tuned: Tuned | None, place: str) -> Chosen:
    """The tuner's, or the first that fits.

    Raises:
        InputError: None fits; says why each.
    """
    refused: list[str] = []
    fitting: list[KernelChoice] = []
    for choice in meant(choices, situation):
        why = _refusal(choice, situation)
        if why is None:
            fitting.append(choice)
        elif not fitting:
            refused.append(f"{choice.kernel} refused: {why}")
    if not fitting:
        raise InputError(f"{place}: expected a kernel that fits, found {'; '.join(refused) or 'none for such a model'}")
    answer = None
    if tuned is not None and is_tuned(situation.key) and situation.is_half:
        answer = tuned(situation.key, tuple(_candidates(fitting, situation.adapter)))
    if answer is not None:
        return _chosen_by_tuner(fitting, *answer, place)
    first = fitting[0]
    reasons = [_reason(first, is_first=not refused), *refused]
    return Chosen(first, _clamped(first, first.constants, situation.adapter), "; ".join(reasons))


def _chosen_by_tuner(fitting: Sequence[KernelChoice], best: Candidate, reason: str, place: str) -> Chosen:
    for choice in fitting:
        if choice.kernel == best.kernel:
            return Chosen(choice, best.constants, f"tuned: {reason.removeprefix('tuned: ')}")
    raise InputError(f"{place}: the tuner's {best.kernel} is none of {', '.join(each.kernel for each in fitting)}")


def _reason(choice: KernelChoice, *, is_first: bool) -> str:
    needs = sorted(_required(choice))
    if choice.adapters and is_first:
        return f"first of the path for adapters of kind {' or '.join(choice.adapters)}"
    if needs:
        return f"{choice.profile}: the adapter has {' and '.join(needs)}"
    return "first of the path" if is_first else "first of the path that fits"


def _required(choice: KernelChoice) -> frozenset[str]:
    return frozenset(choice.requires).union(*(read_kernel(name).requires for name in choice.kernels))


def _refusal(choice: KernelChoice, situation: Situation) -> str | None:
    """Why a candidate can't run here; None where it can."""
    adapter, key = situation.adapter, situation.key
    if lacking := _required(choice).difference(adapter.features):
        return f"the adapter lacks {' and '.join(sorted(lacking))}"
    bindings = max(len(read_kernel(name).bindings) for name in choice.kernels)
    if bindings > adapter.most_storage_buffers:
        return f"{bindings} bindings, the adapter has {adapter.most_storage_buffers}"
    if not situation.is_half and "WEIGHTS" not in read_kernel(choice.kernel).constants:
        return f"it reads float16, the weights are {' and '.join(sorted(each.name for each in situation.weights))}"
    return _shape_refusal(choice, key)


def fits_shape(choice: KernelChoice, situation: Situation) -> bool:
    """Whether the path has a candidate for such a matrix and so many rows."""
    return _shape_refusal(choice, situation.key) is None


def _shape_refusal(choice: KernelChoice, key: TuneKey) -> str | None:
    for name, value in (("n", key.n), ("k", key.k), ("rows", key.rows)):
        least, most = getattr(choice, f"least_{name}"), getattr(choice, f"most_{name}")
        label = name if name == "rows" else name.upper()
        if least is not None and value < least:
            return f"{label} {value}, the path wants {least} at least"
        if most is not None and value > most:
            return f"{label} {value}, the path wants {most} at most"
    return None


def _clamped(choice: KernelChoice, constants: Mapping[str, float], adapter: Adapter) -> dict[str, float]:
    """Constants with no more threads than the adapter allows."""
    kept = dict(constants)
    threads = kept.get("THREADS", read_kernel(choice.kernel).defaults.get("THREADS", 0))
    if threads > adapter.most_workgroup_threads:
        while threads > adapter.most_workgroup_threads:
            threads //= 2
        kept["THREADS"] = threads
    return kept


def _candidates(choices: Sequence[KernelChoice], adapter: Adapter) -> Iterator[Candidate]:
    """Each kernel with its own constants first, then with every combination of what the path lets a tuner try."""
    for choice in choices:
        tried = [_clamped(choice, choice.constants, adapter)]
        for values in product(*choice.tune.values()):
            constants = {**choice.constants, **dict(zip(choice.tune, values, strict=True))}
            tried.append(_clamped(choice, constants, adapter))
        seen: list[dict[str, float]] = []
        for constants in tried:
            if constants not in seen:
                seen.append(constants)
                yield Candidate(choice.kernel, constants)


def rows_of(phase: Phase, most_rows: int) -> int:
    """Rows of a phase's passes at most."""
    return most_rows if phase == "prefill" else 1


def tunable(
    path: KernelPath, spec: ModelSpec, adapter: Adapter, *, most_rows: int = 64
) -> list[tuple[TuneKey, tuple[Candidate, ...]]]:
    """What is worth measuring: each operator and shape of a model once, with all candidates that can run here."""
    found: dict[TuneKey, dict[str, Candidate]] = {}
    forms = [*path.phases.items()] if path.fused is None else [*path.phases.items(), ("decode", path.fused)]
    for phase, steps in forms:
        for step in present_steps(steps, spec):
            situation = situation_of(step, spec, adapter, rows_of(phase, most_rows))
            if not is_tuned(situation.key):
                continue
            choices = meant(path.candidates(step), situation)
            fitting = [each for each in choices if _refusal(each, situation) is None]
            kept = found.setdefault(situation.key, {})
            for candidate in _candidates(fitting, adapter):
                kept.setdefault(repr((candidate.kernel, sorted(candidate.constants.items()))), candidate)
    return [(key, tuple(kept.values())) for key, kept in found.items() if len(kept) > 1]


def present_steps(steps: PhaseSteps, spec: ModelSpec) -> list[PathStep]:
    """Steps that the model has."""
    return [step for _, step in steps.places() if holds(step.when, spec)]


def check_constants(chosen: Chosen, place: str) -> None:
    """Constants of candidates are powers of two where they are threads, columns or tiles."""
    for name, value in chosen.constants.items():
        number = int(value)
        if name in ("THREADS", "COLUMNS", "TILE_M", "TILE_N") and (number < 1 or number & (number - 1)):
            raise FormatError(f"{place}: {name}: expected a power of two, found {value:g}")
