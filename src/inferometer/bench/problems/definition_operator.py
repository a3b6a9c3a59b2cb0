"""An operator made of a definition of flashinfer-bench and its workloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.bench.exchange.schema import Definition, Random, Safetensors, Scalar, Workload
from inferometer.bench.problems.definition_files import bytes_of, sizes_of
from inferometer.bench.problems.drawing import Inputs
from inferometer.bench.problems.foreign_operator import ForeignOperator, no_cost, no_reference, only_written
from inferometer.bench.problems.jobs import DefinitionJob, draws_of, encode_job, label_of
from inferometer.bench.problems.judging import MANY_DRAWS, is_sampled, judge_of, shares_of, tolerances_of
from inferometer.bench.problems.reference import Reference
from inferometer.errors import FormatError, InputError, clean

if TYPE_CHECKING:
    from torch import Tensor

SETTINGS = ("given", "scalars")
Sources = dict[str, Random | Scalar | Safetensors]


@dataclass(frozen=True)
class Given:
    """A workload and where it was found."""

    where: str
    workload: Workload


def usual_workloads(where: str, definition: Definition) -> list[Given]:
    """Where a definition has no file of workloads: three sizes for its only free axis.

    Raises:
        InputError: It has several, or inputs that no size alone gives.
    """
    free = [axis for axis, size in definition.axes.items() if not hasattr(size, "value")]
    numbers = [name for name, spec in definition.inputs.items() if spec.shape is None and not spec.optional]
    if len(free) > 1 or numbers:
        wants = ", ".join([*(f"the size of {axis}" for axis in free), *numbers])
        raise InputError(
            f"{where}: {definition.name} has no workloads, and doesn't say {wants}",
            hint=f"Put workloads/{definition.op_type}/{definition.name}.jsonl beside definitions/.",
        )
    inputs: Sources = {name: Random() for name, spec in definition.inputs.items() if not spec.optional}
    sizes = (1, 17, 128) if free else (0,)
    return [
        Given(where, Workload(axes=dict.fromkeys(free, size), inputs=inputs, uuid=f"usual-{size}")) for size in sizes
    ]


def many_draws(definition: Definition, given: Sequence[Given]) -> Given | None:
    """Of a sampling operator: a workload whose rows are many draws of one distribution."""
    if not is_sampled(definition) or not given:
        return None
    spec = definition.inputs["probs"].shape or ()
    batch = spec[0] if len(spec) == 2 else None
    if batch is None or hasattr(definition.axes[batch], "value") or len(given[0].workload.axes) != 1:
        return None
    inputs: Sources = {name: Random() for name in definition.inputs}
    return Given(given[0].where, Workload(axes={batch: MANY_DRAWS}, inputs=inputs, uuid="many-draws"))


def make_operator(
    definition: Definition, given: Sequence[Given], root: Path, job: Path, reference: Reference, most_bytes: int | None
) -> tuple[ForeignOperator, tuple[tuple[str, Mapping[str, Any]], ...]]:
    """The operator, and labels and arguments of its shapes.

    Args:
        definition: Checked.
        given: Its workloads.
        root: The data set's folder: files of inputs are below it.
        job: Where a file for other processes is written.
        reference: Its reference.
        most_bytes: That a call's tensors may take.

    Raises:
        InputError: A workload can't be run: its place, the field, and what to do.
    """
    many = many_draws(definition, given)
    every = [*given, *([] if many is None else [many])]
    shapes = [_shape(place, each, definition, root, most_bytes, many=each is many) for place, each in enumerate(every)]
    _refuse_twins(every)
    task = DefinitionJob(definition, [each.workload for each in every], [each.where for each in every], str(root))
    job.write_bytes(encode_job(task))
    sampled = is_sampled(definition)

    def ask(tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> "dict[str, Tensor]":
        if sampled:
            return {next(iter(definition.outputs)): shares_of(tensors)}
        return check_answer(definition, reference.ask(operator, tensors, args), args)

    operator = ForeignOperator(
        name=definition.name,
        summary=clean(definition.description or definition.name),
        dims={},
        inputs=draws_of(task),
        reference=no_reference,
        outputs=tuple(definition.outputs),
        cost=no_cost,
        work=only_written(lambda args: bytes_of(definition.outputs, args["sizes"])),
        tiny=(),
        settings=SETTINGS,
        tolerance=tolerances_of(definition),
        judge=judge_of(definition),
        job=job,
        ask=ask,
    )
    return operator, tuple(shapes)


def _shape(
    place: int, given: Given, definition: Definition, root: Path, most_bytes: int | None, *, many: bool
) -> tuple[str, dict[str, Any]]:
    inputs = Inputs(definition, given.workload, root, given.where)
    sizes = sizes_of(given.where, definition, given.workload)
    total = bytes_of(definition.inputs, sizes) + bytes_of(definition.outputs, sizes)
    if most_bytes is not None and total > most_bytes:
        raise InputError(
            f"{given.where}: axes: its tensors take {total:,} bytes, expected at most {most_bytes:,}",
            hint="Run it on a device with more memory, or with --memory; --shapes leaves workloads out.",
        )
    inputs.check()
    uuid = given.workload.uuid
    args = {"uuid": uuid, "sizes": sizes, "given": list(inputs.tensor_names), "scalars": dict(inputs.scalars)}
    words = label_of(given.workload.axes)
    if many:
        return f"many draws of one distribution: {words}", {**args, "many": True}
    return f"workload {place} ({clean(uuid)[:8]}): {words}", args


def _refuse_twins(given: Sequence[Given]) -> None:
    seen: dict[str, str] = {}
    for each in given:
        uuid = each.workload.uuid
        if not uuid:
            raise FormatError(f"{each.where}: uuid: expected a text, found none")
        if uuid in seen:
            raise FormatError(f'{each.where}: uuid: "{clean(uuid):.60}" is also that of {seen[uuid]}')
        seen[uuid] = each.where


def check_answer(definition: Definition, outputs: "Sequence[Tensor]", args: Mapping[str, Any]) -> "dict[str, Tensor]":
    """The reference's outputs by name.

    Raises:
        InputError: They aren't what the definition says.
    """
    where = f"{definition.name}: its reference"
    if len(outputs) != len(definition.outputs):
        expected = ", ".join(definition.outputs)
        raise InputError(f"{where}: expected outputs {expected}, found {len(outputs)}")
    found = dict(zip(definition.outputs, outputs, strict=True))
    for name, spec in definition.outputs.items():
        shape = [args["sizes"][axis] for axis in spec.shape or ()]
        dtype = str(found[name].dtype).removeprefix("torch.")
        if dtype != spec.dtype or list(found[name].shape) != shape:
            has = f"{dtype} {list(found[name].shape)}"
            raise InputError(f"{where}: {name}: expected {spec.dtype} {shape} as the definition says, found {has}")
    return found
