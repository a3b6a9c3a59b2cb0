"""Results out, as a flashinfer-bench dataset: definitions, workloads, solutions and traces in its folders.

    definitions/OP_TYPE/DEFINITION.json
    workloads/OP_TYPE/DEFINITION.jsonl            with blob/workloads/OP_TYPE/DEFINITION/UUID.safetensors
    solutions/AUTHOR/OP_TYPE/DEFINITION/NAME.json
    traces/AUTHOR/OP_TYPE/DEFINITION.jsonl

The author is the candidate. Integer inputs (offsets, lengths, tables of pages, experts) are in blobs, other inputs are
`random`: flashinfer-bench draws them standard normal, not as inferometer does. A workload's arguments stand in its
field `inferometer` too, so that `read_workloads` gives them back as they were.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import msgspec

from inferometer.bench.exchange.axes import axes_of, bind, values_of
from inferometer.bench.exchange.blobs import encode_blob
from inferometer.bench.exchange.dataset_files import pretty, write_dataset
from inferometer.bench.exchange.definitions import define, solve
from inferometer.bench.exchange.evaluations import evaluate_result
from inferometer.bench.exchange.schema import Definition, Drawn, Random, Safetensors, Trace, Workload
from inferometer.bench.results import Run, ShapeResult
from inferometer.errors import InputError
from inferometer.operators import require_operator

_NAMESPACE = uuid.UUID("0c9f3d5e-2f43-5c0e-9e35-6b1c7f3e8a52")


@dataclass
class _Plan:
    """What is to be written, by path in the dataset; `left_out`: what isn't, with the reason."""

    files: dict[str, bytes] = field(default_factory=dict)
    lines: dict[str, dict[str, bytes]] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def add_line(self, path: str, key: str, trace: Trace) -> None:
        """The first line of a key stays."""
        self.lines.setdefault(path, {}).setdefault(key, msgspec.json.encode(trace))

    def whole(self) -> dict[str, bytes]:
        lines = {path: b"\n".join(each.values()) + b"\n" for path, each in self.lines.items()}
        return {**self.files, **lines}


def write_exchange(run: Run, folder: Path, *, force: bool, sources: Mapping[str, str] | None = None) -> list[Path]:
    """The files of a run's dataset, in order; `sources`: texts of candidates that are files, by name.

    What the format can't hold isn't written: `left_out` lists it. A file that is there and says the same stays.

    Raises:
        InputError: Nothing of the run can be written; or a file is there, says something else, and `force` is False.
    """
    plan = _plan(run, sources or {})
    return write_dataset(plan.whole(), folder, force=force, left_out=plan.left_out)


def left_out(run: Run, sources: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What of a run `write_exchange` doesn't write, one line each, with the reason."""
    return tuple(_plan(run, sources or {}).left_out)


def _plan(run: Run, sources: Mapping[str, str]) -> _Plan:
    plan, authors = _Plan(), _authors(run)
    for result in run.results:
        try:
            definition = _add_shape(plan, result)
        except InputError as error:
            plan.left_out[f"{result.operator}, {result.shape}: {error.message}"] = None
            continue
        _add_trace(plan, run, result, definition, authors[result.candidate])
        text = sources.get(result.candidate)
        if text is not None:
            _add_solution(plan, result, definition, authors[result.candidate], text)
    return plan


def _add_shape(plan: _Plan, result: ShapeResult) -> Definition:
    """The definition and the workload of a result."""
    operator = require_operator(result.operator)
    definition = define(operator, result.args)
    workload = make_workload(result.operator, result.shape, result.args, definition)
    place = f"{definition.op_type}/{definition.name}"
    plan.files[f"definitions/{place}.json"] = pretty(definition)
    if any(isinstance(each, Safetensors) for each in workload.inputs.values()):
        plan.files[_blob(definition, workload.uuid)] = encode_blob(values_of(operator, result.args))
    plan.add_line(f"workloads/{place}.jsonl", workload.uuid, Trace(definition=definition.name, workload=workload))
    return definition


def make_workload(operator: str, shape: str, args: Mapping[str, object], definition: Definition) -> Workload:
    """A shape as a workload; the same shape has the same uuid in every run."""
    known, name = require_operator(operator), uuid_of(operator, args)
    bound, integers = bind(known, args), axes_of(known).values
    path = _blob(definition, name)
    return Workload(
        axes={axis: size for axis, size in bound.sizes.items() if axis in bound.var and size is not None},
        inputs={
            each: Safetensors(path=path, tensor_key=each) if each in integers else Random() for each in bound.inputs
        },
        uuid=name,
        inferometer=Drawn(operator=operator, args=dict(args), shape=shape),
    )


def uuid_of(operator: str, args: Mapping[str, object]) -> str:
    """The id of a shape: the same for the same arguments."""
    return str(uuid.uuid5(_NAMESPACE, msgspec.json.encode([operator, dict(args)], order="deterministic").decode()))


def _add_trace(plan: _Plan, run: Run, result: ShapeResult, definition: Definition, author: str) -> None:
    evaluation = evaluate_result(run, result, require_operator(result.operator), definition)
    if evaluation is None:
        plan.left_out[f"{result.operator}, {result.shape}, {result.candidate}: it is right, but wasn't timed"] = None
        return
    workload = make_workload(result.operator, result.shape, result.args, definition)
    path = f"traces/{author}/{definition.op_type}/{definition.name}.jsonl"
    trace = Trace(
        definition=definition.name, workload=workload, solution=f"{author}_{definition.name}", evaluation=evaluation
    )
    plan.add_line(path, f"{workload.uuid} {result.shape}", trace)


def _add_solution(plan: _Plan, result: ShapeResult, definition: Definition, author: str, text: str) -> None:
    try:
        solution = solve(definition, require_operator(result.operator), result.candidate, author, text)
    except InputError as error:
        plan.left_out[error.message] = None
        return
    path = f"solutions/{author}/{definition.op_type}/{definition.name}/{solution.name}.json"
    plan.files[path] = pretty(solution)


def _authors(run: Run) -> dict[str, str]:
    """A folder's name for each candidate: its own, or as much of it as is safe, with a hash where others look alike."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(result.candidate for result in run.results):
        safe = re.sub(r"[^A-Za-z0-9_-]+", "_", name.removesuffix(".py"))[:60].strip("_") or "contender"
        taken = {each.casefold() for each in found.values()}
        found[name] = f"{safe}_{sha256(name.encode()).hexdigest()[:8]}" if safe.casefold() in taken else safe
    return found


def _blob(definition: Definition, name: str) -> str:
    return f"blob/workloads/{definition.op_type}/{definition.name}/{name}.safetensors"
