"""Kernel paths: which steps a pass has in a model family, and which kernels each may run.

`path_files` reads them from TOML. Roles are those of `architectures`, so that a kernel is recognised by what it does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from inferometer.engines.webgpu.model_spec import Family, ModelSpec
from inferometer.engines.webgpu.program import Phase

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
        then: A second kernel that finishes what it leaves in parts: `linear_sum` after `linear_split`.
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
        weights: Names of the checkpoint; several matrices of a `linear` are stacked into one.
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
