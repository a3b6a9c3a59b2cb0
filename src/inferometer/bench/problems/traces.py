"""Verdicts on definitions of flashinfer-bench as its data set has them: definitions, workloads, solutions, traces.

Definitions and solutions are written as they were read. Of a sampling operator a candidate that draws too often or too
rarely is wrong on every workload.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from inferometer.bench.exchange.dataset_files import pretty, write_dataset
from inferometer.bench.exchange.evaluations import evaluate_result
from inferometer.bench.exchange.schema import Build, Definition, Solution, SolutionFile, Trace, Workload
from inferometer.bench.problems.packages import Packaged
from inferometer.bench.problems.running import Outcome
from inferometer.bench.results import ShapeResult

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass
class Written:
    """Files by path below a folder; and what isn't written, with the reason."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def traces_of(outcomes: Sequence[Outcome]) -> Written:
    """The files of problems that are definitions."""
    found = Written()
    for outcome in outcomes:
        definition = outcome.problem.definition
        if definition is None:
            found.left_out.append(f"{outcome.problem.asked.operator.name}: it is no definition of flashinfer-bench")
            continue
        place = f"{definition.op_type}/{definition.name}"
        found.files[f"definitions/{place}.json"] = pretty(definition)
        workloads = {each.workload.uuid: each.workload for each in outcome.problem.given}
        lines = [_line(Trace(definition=definition.name, workload=each)) for each in workloads.values()]
        found.files[f"workloads/{place}.jsonl"] = b"".join(lines)
        for candidate in outcome.problem.candidates:
            _add(found, outcome, definition, candidate, workloads)
    return found


def write_traces(outcomes: Sequence[Outcome], folder: Path, *, force: bool) -> Written:
    """Written below `folder`; a file that is there and says the same stays.

    Raises:
        InputError: Nothing can be written, or a file is in the way, as `write_dataset` has it.
    """
    found = traces_of(outcomes)
    write_dataset(found.files, folder, force=force, left_out=found.left_out)
    return found


def _add(
    found: Written, outcome: Outcome, definition: Definition, candidate: Packaged, workloads: dict[str, Workload]
) -> None:
    author, name, text = _solution_of(outcome, definition, candidate)
    place = f"{_safe(author)}/{definition.op_type}/{definition.name}"
    lines = []
    for result in _results_of(outcome, candidate.name):
        evaluation = evaluate_result(outcome.run, result, outcome.problem.asked.operator, definition)
        if evaluation is None:
            found.left_out.append(f"{definition.name}, {result.shape}, {candidate.name}: it is right, but wasn't timed")
            continue
        workload = workloads[result.args["uuid"]]
        lines.append(_line(Trace(definition=definition.name, workload=workload, solution=name, evaluation=evaluation)))
    if lines:
        path = f"traces/{place}.jsonl"
        found.files[path] = found.files.get(path, b"") + b"".join(lines)
        found.files[f"solutions/{place}/{_safe(name)}.json"] = text


def _results_of(outcome: Outcome, candidate: str) -> Iterator[ShapeResult]:
    """Of the workloads; a draw that is wrong in the long run is wrong everywhere."""
    own = [result for result in outcome.run.results if result.candidate == candidate]
    many = next((result.failure for result in own if result.args.get("many") and result.failure), None)
    for result in own:
        if result.args.get("many"):
            continue
        if many is not None and result.is_right:
            yield msgspec.structs.replace(result, failure=many)
        else:
            yield result


def _solution_of(outcome: Outcome, definition: Definition, candidate: Packaged) -> tuple[str, str, bytes]:
    """Author, name and text."""
    known = outcome.problem.solutions.get(candidate.name)
    if known is not None:
        return known.solution.author, known.solution.name, known.text
    author = _safe(candidate.name.removesuffix(".py"))
    made = Solution(
        name=f"{author}_{definition.name}",
        definition=definition.name,
        author=author,
        spec=Build(
            language="triton" if candidate.own_kernels else "python",
            target_hardware=("cuda",),
            entry_point=f"{next(iter(candidate.own))}::run",
            dependencies=("torch",),
            destination_passing_style=False,
        ),
        sources=tuple(SolutionFile(path=path, content=text) for path, text in candidate.own.items()),
    )
    return author, made.name, pretty(made)


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:100].strip("._") or "candidate"


def _line(trace: Trace) -> bytes:
    return msgspec.json.encode(trace) + b"\n"
