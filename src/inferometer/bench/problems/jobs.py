"""How inputs of an operator are drawn, told to a process that knows the catalogue's by name and others by a file.

The file is ours. Of a problem of KernelBench, whose inputs are drawn by its own code, that code runs in the process
that times: what is compared there was drawn in the reference's.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from inferometer.bench.exchange.schema import Definition, Workload
from inferometer.bench.problems.drawing import Inputs
from inferometer.bench.problems.judging import concentrate

Draws = Callable[..., dict[str, Any]]


class DefinitionJob(msgspec.Struct, tag=True, frozen=True):
    """A definition with its workloads; `wheres` are their places for errors."""

    definition: Definition
    workloads: Sequence[Workload]
    wheres: Sequence[str]
    root: str


class ProblemJob(msgspec.Struct, tag=True, frozen=True):
    """A problem of KernelBench: its file."""

    file: str


def inputs_for(operator: str, job: str | None) -> Draws:
    """`inputs` of an operator, by its name or by a file."""
    if job is None:
        from inferometer.operators import require_operator

        return require_operator(operator).inputs
    found = msgspec.json.decode(Path(job).read_bytes(), type=DefinitionJob | ProblemJob)
    return draws_of(found) if isinstance(found, DefinitionJob) else _draws_of_problem(Path(found.file))


def draws_of(job: DefinitionJob) -> Draws:
    """Inputs of a definition by the workload's uuid; `many` of one distribution."""
    known = {
        workload.uuid: Inputs(job.definition, workload, Path(job.root), where)
        for workload, where in zip(job.workloads, job.wheres, strict=True)
    }

    def inputs(*, uuid: str, seed: int, device: str = "cpu", many: bool = False, **_: object) -> dict[str, Any]:
        tensors = known[uuid].draw(seed, device)
        return concentrate(tensors, seed) if many else tensors

    return inputs


def _draws_of_problem(file: Path) -> Draws:
    import torch

    namespace: dict[str, Any] = {"__name__": "problem"}
    exec(compile(file.read_bytes(), str(file), "exec"), namespace)  # the problem's own code, where candidates run

    def inputs(*, seed: int, device: str = "cpu", **_: object) -> dict[str, Any]:
        torch.manual_seed(seed)
        return named_inputs([torch.as_tensor(each) for each in namespace["get_inputs"]()], device)

    return inputs


def named_inputs(tensors: Sequence[Any], device: str) -> dict[str, Any]:
    """Inputs of a problem, which have no names."""
    return {f"input{place}": tensor.to(device) for place, tensor in enumerate(tensors)}


def encode_job(job: DefinitionJob | ProblemJob) -> bytes:
    """As a file has it."""
    return msgspec.json.encode(job)


def label_of(axes: Mapping[str, int]) -> str:
    """Sizes in words."""
    return ", ".join(f"{axis}={size}" for axis, size in axes.items())
