"""`bench --suite`: problems of other benchmarks, with their candidates, as options ask for them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import Output
from inferometer.commands.options.bench import BenchOptions

if TYPE_CHECKING:
    from inferometer.bench.problems.running import SuiteOutcome
    from inferometer.bench.race import Pace
    from inferometer.bench.timer_choice import TimerChoice

_TRACES = "flashinfer-trace"


def run_problems(
    names: tuple[str, ...], candidate: str | None, stage: str, asking: BenchOptions, *, check: bool, out: Output
) -> int:
    """Run them, write what was asked for, and show all."""
    from inferometer.bench.problems.suite import find_problems

    asking.check_places()
    place = None if candidate is None else _existing(candidate)
    found = find_problems(Path(str(asking.suite)), names or _named_by(place))
    with TemporaryDirectory(prefix="inferometer-suite-", ignore_cleanup_errors=True) as folder:
        outcome = _run(found, Path(folder), place, stage, asking)
        written = asking.write(outcome.evaluation, None, traces=lambda: _write_traces(outcome, asking))
    if out.form == "json":
        out.write_json({**outcome.evaluation.as_json(), **written})
    else:
        out.show(outcome.evaluation)
        for line in written.pop("left_out", ()):
            click.echo(f"left out of the export: {line}", err=True)
        for what in written.values():
            click.echo(f"written: {what}", err=True)
    return 1 if check and not (outcome.evaluation.is_right and not outcome.evaluation.refused) else 0


def _named_by(candidate: Path | None) -> tuple[str, ...]:
    """The definition that a solution is for: of a data set, that alone is run."""
    if candidate is None or candidate.suffix != ".json":
        return ()
    from inferometer.bench.problems.solutions import read_solution

    return (read_solution(candidate).solution.definition,)


def _run(found: Any, folder: Path, candidate: Path | None, stage: str, asking: BenchOptions) -> "SuiteOutcome":
    from inferometer.bench.correct import Plan
    from inferometer.bench.isolation import ProcessLimits
    from inferometer.bench.problems.running import run_suite
    from inferometer.bench.problems.suite import Preparation
    from inferometer.commands.options.progress import working

    limits = ProcessLimits(seconds=asking.limit, memory_bytes=asking.memory)
    plan = Plan(asking.cases, asking.on, limits, asking.strided)
    preparation = Preparation(
        folder, asking.on, limits, asking.shapes, candidate,
        lambda reason: click.echo(f"left out: {reason}", err=True),
    )  # fmt: skip
    with working() as say:
        pace, timer = _pace(stage, asking, limits)
        return run_suite(found, preparation, plan, pace=pace, timer=timer, on_progress=say)


def _pace(stage: str, asking: BenchOptions, limits: Any) -> "tuple[Pace | None, TimerChoice | None]":
    if stage == "correct":
        return None, None
    from inferometer.bench.fast import device_times
    from inferometer.bench.race import Pace
    from inferometer.bench.timer_choice import choose_timer

    timer = choose_timer(asking.timer, asking.on, device_times, limits)
    return Pace(timer.timer, asking.seconds_each()), timer


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

    folder = Path(asking.export_to or _TRACES)
    written = write_traces(outcome.outcomes, folder, force=asking.force)
    return {"exported": f"{len(written.files)} files in {folder}", "left_out": written.left_out}
