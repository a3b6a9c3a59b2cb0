"""The files of a flashinfer-bench dataset, as its version 0.1.2 reads them.

Source: https://bench.flashinfer.ai/docs and the models of the package flashinfer-bench 0.1.2. Those ignore fields that
they don't know (tried), so what the format can't hold stands in a field `inferometer` of ours; it is lost where that
tool writes a file again. Not here: its settings of builds for C++ and CUDA.
"""

from typing import Any, Literal

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a file; fields that aren't here are passed over."""


class Const(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="const"):
    """An axis of one size in all workloads."""

    value: int
    description: str | None = None


class Var(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="var"):
    """An axis whose size a workload gives."""

    description: str | None = None


class TensorSpec(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tensor by its axes; `shape` None: a plain number. `optional`: a workload may lack it, and it is None."""

    shape: tuple[str, ...] | None
    dtype: str
    description: str | None = None
    optional: bool = False


class DefinedBy(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Ours: the operator of a definition, the arguments that all its workloads share, and those that an axis is."""

    operator: str
    constants: dict[str, Any]
    axes: dict[str, str]


class Definition(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What is computed: `reference` is Python with a function `run` of the inputs in their order."""

    name: str
    op_type: str
    axes: dict[str, Const | Var]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    reference: str
    tags: tuple[str, ...] = ()
    description: str | None = None
    constraints: tuple[str, ...] = ()
    inferometer: DefinedBy | None = None


class Random(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="random"):
    """Drawn by whoever runs it: flashinfer-bench draws standard normal values."""


class Scalar(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="scalar"):
    """A plain number."""

    value: bool | int | float


class Safetensors(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="safetensors"):
    """A tensor in a file; `path` is relative to the dataset's folder."""

    path: str
    tensor_key: str


class Drawn(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Ours: the arguments of the call, what the shape is called, and its weight in a fleet that it stands for."""

    operator: str
    args: dict[str, Any]
    shape: str
    weight: float | None = None


class Workload(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """One shape: the sizes of var axes, and where inputs are from."""

    axes: dict[str, int]
    inputs: dict[str, Random | Scalar | Safetensors]
    uuid: str
    inferometer: Drawn | None = None


class Correctness(_Part, frozen=True, kw_only=True):
    """Errors; "NaN" where one wasn't measured, as that package writes it."""

    max_relative_error: float | Literal["NaN"]
    max_absolute_error: float | Literal["NaN"]
    extra: dict[str, Any] | None = None


class Performance(_Part, frozen=True, kw_only=True):
    """Times; 0 for a reference that wasn't timed, as that package has it."""

    latency_ms: float
    reference_latency_ms: float
    speedup_factor: float


class Environment(_Part, frozen=True, kw_only=True):
    """Where it ran."""

    hardware: str
    libs: dict[str, str]


Status = Literal[
    "PASSED",
    "INCORRECT_SHAPE",
    "INCORRECT_NUMERICAL",
    "INCORRECT_DTYPE",
    "RUNTIME_ERROR",
    "COMPILE_ERROR",
    "TIMEOUT",
]


class Evaluation(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """PASSED needs both correctness and performance, INCORRECT_NUMERICAL correctness only, the others neither."""

    status: Status
    environment: Environment
    timestamp: str
    log: str = ""
    correctness: Correctness | None = None
    performance: Performance | None = None


class Trace(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `workloads/` (no solution and no evaluation) or of `traces/`."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | None = None


class SolutionFile(_Part, frozen=True, kw_only=True):
    """A file of a solution."""

    path: str
    content: str


class Build(_Part, frozen=True, kw_only=True):
    """How a solution is called: `entry_point` is `FILE::FUNCTION`."""

    language: Literal["python", "triton"]
    target_hardware: tuple[str, ...]
    entry_point: str
    dependencies: tuple[str, ...]
    destination_passing_style: bool


class Solution(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Code for a definition."""

    name: str
    definition: str
    author: str
    spec: Build
    sources: tuple[SolutionFile, ...]
    description: str | None = None
