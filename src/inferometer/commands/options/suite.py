"""`bench --suite`: problems of other benchmarks, with their candidates, as options ask for them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import Output
from inferometer.commands.options.bench import BenchOptions, show_evaluation

if TYPE_CHECKING:
    from inferometer.bench.problems.running import SuiteOutcome
    from inferometer.bench.problems.suite import Found


def run_problems(
    names: tuple[str, ...], candidate: str | None, stage: str, asking: BenchOptions, *, check: bool, out: Output
) -> int:
    """Run them, write what was asked for, and show all."""
    from inferometer.bench.problems.suite import find_problems

    asking.check_surroundings()
    place = None if candidate is None else _existing(candidate)
    found = find_problems(Path(str(asking.suite)), names or _named_by(place))
    with TemporaryDirectory(prefix="inferometer-suite-", ignore_cleanup_errors=True) as folder:
        outcome = _run(found, Path(folder), place, stage, asking)
        written = asking.write(outcome.evaluation, None, traces=lambda: _write_traces(outcome, asking))
    show_evaluation(outcome.evaluation, written, out)
    return 1 if check and not (outcome.evaluation.is_right and not outcome.evaluation.refused) else 0


def _named_by(candidate: Path | None) -> tuple[str, ...]:
    """The definition that a solution is for: of a data set, that alone is run."""
    if candidate is None or candidate.suffix != ".json":
        return ()
    from inferometer.bench.problems.solutions import read_solution

    return (read_solution(candidate).solution.definition,)


def _run(
    found: "list[Found]", folder: Path, candidate: Path | None, stage: str, asking: BenchOptions
) -> "SuiteOutcome":
    from inferometer.bench.problems.running import run_suite
    from inferometer.bench.problems.suite import Preparation
    from inferometer.commands.options.progress import working

    preparation = Preparation(
        folder, asking.plan(), asking.shapes, candidate, lambda reason: click.echo(f"left out: {reason}", err=True)
    )
    with working() as say:
        pace, timer = asking.timing(stage, say)
        return run_suite(found, preparation, pace=pace, timer=timer, on_progress=say)


def _existing(path: str) -> Path:
    from inferometer.errors import InputError, clean

    found = Path(path)
    if not found.is_file() and not found.is_dir():
        what = "expected a file or folder, found something else" if found.exists() else "no such file or folder"
        raise InputError(f"{clean(path)}: {what}", hint="Give a solution, a Python file, or a folder of them.")
    if found.is_file() and found.suffix not in (".py", ".json"):
        raise InputError(f"{clean(path)}: expected a .py file or a .json solution", hint="Rename it.")
    return found


def _write_traces(outcome: "SuiteOutcome", asking: BenchOptions) -> dict[str, Any]:
    from inferometer.bench.problems.traces import write_traces

    written = write_traces(outcome.outcomes, asking.export_folder, force=asking.force)
    return {"exported": f"{len(written.files)} files in {asking.export_folder}", "left_out": written.left_out}
