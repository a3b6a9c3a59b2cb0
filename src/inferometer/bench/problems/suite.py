"""What a path holds: definitions of a flashinfer-trace data set, or problems of KernelBench, with their candidates.

A path is a definition's or a problem's file, a folder of them, or a data set with `definitions/`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from inferometer.bench.correct import Plan
from inferometer.bench.exchange.schema import Definition
from inferometer.bench.exchange.workloads import read_lines, workload_of
from inferometer.bench.problems import kernelbench
from inferometer.bench.problems.definition_files import read_definition
from inferometer.bench.problems.definition_operator import Given, make_operator, usual_workloads
from inferometer.bench.problems.packages import Packaged
from inferometer.bench.problems.reference import Reference
from inferometer.bench.problems.solutions import ReadSolution, pack_file, pack_reference, pack_solution, read_solution
from inferometer.bench.shapes import ChosenShapes, choose_indices
from inferometer.errors import InputError, clean

_HINT = "Give a data set of flashinfer-bench, a definition, a problem of KernelBench, or a folder of these."
_GENERATED = re.compile(r"level_(?P<level>\d+)_problem_(?P<number>\d+)_sample_\d+_kernel")
_SHARE = 2  # of the memory, for the tensors of a call: the answer and a copy need room too


@dataclass(frozen=True)
class Found:
    """A problem by its file; `root` is the data set's folder. `broken`: why it can't be read; None: it could be."""

    path: Path
    name: str
    root: Path
    definition: Definition | None = None
    broken: InputError | None = None


@dataclass(frozen=True)
class Problem:
    """A problem that can be run.

    Attributes:
        asked: Its operator and shapes.
        candidates: Who tries.
        base: Its reference, as a candidate that others are compared with.
        reference: Its process, a context manager.
        definition: Of flashinfer-bench.
        given: Its workloads.
        solutions: Of candidates that are solutions, by the candidate's name.
    """

    asked: ChosenShapes
    candidates: tuple[Packaged, ...]
    base: Packaged
    reference: Reference
    definition: Definition | None = None
    given: tuple[Given, ...] = ()
    solutions: dict[str, ReadSolution] = field(default_factory=dict)


def find_problems(path: Path, patterns: Sequence[str] = ()) -> list[Found]:
    """The problems below a path whose names match a pattern, in the order of their names.

    Raises:
        InputError: There are none, or none that can be read: the reason of the first.
    """
    if not path.exists():
        raise InputError(f"{clean(str(path))}: no such file or folder", hint=_HINT)
    every = list(_every(path))
    if not every:
        raise InputError(f"{clean(str(path))}: expected definitions or problems, found none", hint=_HINT)
    found = [each for each in every if not patterns or any(fnmatchcase(each.name, one) for one in patterns)]
    if not found:
        has = ", ".join(each.name for each in every[:20])
        raise InputError(f"{clean(str(path))}: no problem is called {', '.join(patterns)}", hint=f"It has {has}.")
    if found[0].broken is not None and all(each.broken is not None for each in found):
        raise found[0].broken
    return found


def _every(path: Path) -> Iterator[Found]:
    if path.is_file():
        files = [path]
    else:
        folder = path / "definitions" if (path / "definitions").is_dir() else path
        files = sorted((*folder.rglob("*.json"), *folder.glob("*.py")), key=_in_order)
    for file in files:
        if file.suffix == ".json":
            yield _find_definition(file)
        elif kernelbench.is_problem(file) or path.is_file():
            yield Found(file, kernelbench.name_of(file), file.parent)


def _find_definition(file: Path) -> Found:
    """Of a definition that can't be read the name is that of its file, as in the public data set."""
    try:
        definition = read_definition(file)
    except InputError as error:
        return Found(file, file.stem, root_of(file), broken=error)
    return Found(file, definition.name, root_of(file), definition)


def _in_order(file: Path) -> tuple[str, int, str]:
    """By folder, number and name: `2_x` comes before `10_x`."""
    number = re.match(r"\d+", file.stem)
    return str(file.parent), int(number[0][:9]) if number else 0, file.name


def root_of(definition: Path) -> Path:
    """The folder of the data set that a definition's file is in; its own where it is in none."""
    above = [each for each in definition.resolve().parents if each.name == "definitions"]
    return above[0].parent if above else definition.resolve().parent


@dataclass(frozen=True)
class Preparation:
    """How problems are prepared.

    Attributes:
        folder: Where files are written for the processes.
        plan: How candidates are checked, and within which limits; of references the sandbox holds, too.
        shapes: Indices of workloads, such as `0,3-5`; None: all.
        candidate: A file or folder of candidates; None: the data set's solutions.
        on_left_out: Called with the reason of a candidate that can't be run.
    """

    folder: Path
    plan: Plan
    shapes: str | None = None
    candidate: Path | None = None
    on_left_out: Callable[[str], None] = lambda reason: None

    def prepare(self, found: Found, number: int) -> Problem:
        """A problem with its candidates.

        Raises:
            InputError: It can't be read or run, or the candidate that was named.
        """
        if found.broken is not None:
            raise found.broken
        folder = self.folder / str(number)
        folder.mkdir(parents=True)
        if found.definition is None:
            return self._problem(found, folder)
        return self._definition(found, found.definition, folder)

    def _definition(self, found: Found, definition: Definition, folder: Path) -> Problem:
        file = pack_reference(definition, folder / "reference")
        reference = Reference(definition.name, file, self.plan)
        given = self._workloads(found, definition)
        memory = self.plan.limits.memory_on(self.plan.device)
        most = None if memory is None else memory // _SHARE
        operator, shapes = make_operator(definition, given, found.root, folder / "job.json", reference, most)
        packed, solutions = self._solutions(found, definition, folder)
        base = Packaged("reference", file, {"reference.py": definition.reference})
        return Problem(ChosenShapes(operator, shapes), packed, base, reference, definition, tuple(given), solutions)

    def _workloads(self, found: Found, definition: Definition) -> list[Given]:
        place = found.root / "workloads" / definition.op_type / f"{definition.name}.jsonl"
        if not place.is_file():
            places = sorted((found.root / "workloads").glob(f"*/{definition.name}.jsonl"))
            place = next(iter(places), place)
        if not place.is_file():
            given = usual_workloads(str(found.path), definition)
        else:
            given = [
                Given(where, workload_of(where, line))
                for where, line in read_lines(place)
                if line.definition in (None, definition.name)
            ]
        if not given:
            raise InputError(f"{place}: expected a workload at least, found none")
        if self.shapes is None:
            return given
        return [given[index] for index in choose_indices(self.shapes, len(given), definition.name)]

    def _solutions(
        self, found: Found, definition: Definition, folder: Path
    ) -> tuple[tuple[Packaged, ...], dict[str, ReadSolution]]:
        packed: list[Packaged] = []
        solutions: dict[str, ReadSolution] = {}
        for place, file in enumerate(self._files_of(found, definition)):
            try:
                if file.suffix == ".py":
                    packed.append(pack_file(file, definition, folder / f"candidate{place}"))
                    continue
                read = read_solution(file)
                solution = read.solution
                if solution.definition != definition.name:
                    if self.candidate == file:
                        other = clean(solution.definition)
                        raise InputError(f'{file}: definition: expected "{definition.name}", found "{other:.80}"')
                    continue
                packed.append(pack_solution(solution, definition, folder / f"candidate{place}"))
                solutions[packed[-1].name] = read
            except InputError as error:
                if self.candidate == file:
                    raise
                self.on_left_out(error.message)
        return tuple(packed), solutions

    def _files_of(self, found: Found, definition: Definition) -> list[Path]:
        if self.candidate is None:
            return sorted((found.root / "solutions").glob(f"*/*/{definition.name}/*.json"))
        if self.candidate.is_file():
            return [self.candidate]
        own = self.candidate / f"{definition.name}.py"
        return [*sorted(self.candidate.rglob("*.json")), *([own] if own.is_file() else [])]

    def _problem(self, found: Found, folder: Path) -> Problem:
        text = kernelbench.read_problem(found.path)
        file = kernelbench.pack_problem(text, found.path, found.name, folder / "reference")
        reference = Reference(found.name, file, self.plan)
        packed = tuple(
            kernelbench.pack_model(each, found.path, found.name, folder / f"candidate{place}")
            for place, each in enumerate(self._models_of(found))
        )
        try:
            operator, shapes = kernelbench.make_operator(
                found.path, found.name, folder / "job.json", reference, self.plan.device
            )
        except BaseException:
            reference.close()
            raise
        base = Packaged("reference", file, {found.path.name: text})
        return Problem(ChosenShapes(operator, shapes), packed, base, reference)

    def _models_of(self, found: Found) -> list[Path]:
        if self.candidate is None:
            return []
        if self.candidate.is_file():
            return [self.candidate]
        return [file for file in sorted(self.candidate.glob("*.py")) if is_model_of(file, found.path)]


def is_model_of(file: Path, problem: Path) -> bool:
    """Whether a file is for a problem by its name: the same, one of the same number, or one that KernelBench wrote."""
    if file.stem == problem.stem:
        return True
    number = re.match(r"(\d+)_", problem.stem)
    generated = _GENERATED.fullmatch(file.stem)
    if number is None:
        return False
    if generated is not None:
        level = re.search(r"(\d+)$", problem.parent.name)
        return generated["number"] == number[1] and (level is None or generated["level"] == level[1])
    own = re.match(r"(\d+)_", file.stem)
    return own is not None and own[1] == number[1]
