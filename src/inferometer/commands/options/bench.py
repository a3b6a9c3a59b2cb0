"""What `bench` is asked: its options, what goes together, shapes and places of files; refusals before any work."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from inferometer.commands.options.devices import require_device_at

if TYPE_CHECKING:
    from inferometer.bench.correct import Plan
    from inferometer.bench.evaluation import Evaluation
    from inferometer.bench.race import Pace
    from inferometer.bench.results import Timer
    from inferometer.bench.shapes import ChosenShapes
    from inferometer.bench.timer_choice import TimerChoice
    from inferometer.commands.base import Output
    from inferometer.hardware.device import Device
    from inferometer.operators.operator import Operator


class BenchOptions(msgspec.Struct):
    """The options of `bench`, by their names there."""

    backend_names: tuple[str, ...]
    shapes: str | None
    workload: str | None
    suite: str | None
    cases: int
    strided: bool
    strict: bool
    sandbox: bool
    limit: float
    memory: int | None
    on: str
    timer: "Timer | None"
    seconds: float | None
    hardware_file: str | None
    output: str | None
    export: str | None
    export_to: str | None
    force: bool

    @property
    def shape_file(self) -> str | None:
        """The file of --workload, or of --shapes where that names one."""
        is_file = self.shapes is not None and Path(self.shapes).suffix in (".json", ".jsonl")
        return self.shapes if is_file else self.workload

    def refuse_mixed(self, stage: str, architectures: tuple[str, ...]) -> None:
        """Refuse options that don't go together.

        Raises:
            click.UsageError: Which.
        """
        if architectures and stage != "builds":
            raise click.UsageError("--arch needs --stage builds.")
        if stage != "fast" and (self.timer or self.seconds):
            raise click.UsageError("--timer and --seconds need --stage fast.")
        if stage == "builds" and (self.output or self.export or self.shape_file):
            raise click.UsageError("--output, --export and files of shapes aren't for --stage builds.")
        if stage == "builds" and (self.strict or self.sandbox):
            raise click.UsageError("--strict and --sandbox aren't for --stage builds.")
        if self.suite and (self.workload or self.backend_names or self.hardware_file or stage == "builds"):
            raise click.UsageError(
                "--suite can't be used with --workload, --backend, --hardware-file or --stage builds."
            )
        if self.workload and self.shapes:
            raise click.UsageError("--workload and --shapes are mutually exclusive.")
        if self.export_to and not self.export:
            raise click.UsageError("--export-to needs --export.")

    def backends(self, candidate: Path | None, stage: str) -> tuple[str, ...]:
        """Names of backends; none where a candidate is only checked."""
        return self.named_backends() or (() if candidate is not None and stage == "correct" else ("torch",))

    def named_backends(self) -> tuple[str, ...]:
        """What --backend names."""
        return tuple(part.strip() for word in self.backend_names for part in word.split(",") if part.strip())

    def plan(self) -> "Plan":
        """How candidates are checked, and within which limits."""
        from inferometer.bench.correct import Plan
        from inferometer.bench.session import ProcessLimits

        limits = ProcessLimits(seconds=self.limit, memory_bytes=self.memory)
        return Plan(self.cases, self.on, limits, strided=self.strided, strict=self.strict, sandbox=self.sandbox)

    def timing(self, stage: str, say: Callable[[str], None]) -> "tuple[Pace, TimerChoice] | tuple[None, None]":
        """How candidates are timed; None where `stage` only checks them.

        Raises:
            InputError: --timer is for another device.
            Unavailable: No timer works here.
        """
        if stage == "correct":
            return None, None
        from inferometer.bench.fast import device_times
        from inferometer.bench.race import Pace
        from inferometer.bench.timer_choice import choose_timer

        say("a choice of the timer")
        chosen = choose_timer(self.timer, self.on, device_times, self.plan().limits)
        return Pace(chosen.timer, self.seconds or (0.1 if self.on == "cpu" else 2.0)), chosen

    def shapes_of(self, names: tuple[str, ...], candidate: Path | None) -> "list[ChosenShapes]":
        """What to run.

        Raises:
            click.UsageError: No operator is named.
            InputError: One isn't known, or has no such shape.
        """
        from inferometer.bench.shapes import choose_shapes, fit_device
        from inferometer.operators import operators, require_operator

        if self.shape_file is not None:
            return [fit_device(each, self.on) for each in self._workload(self.shape_file, names)]
        if candidate is not None and not names:
            known = operators()
            names = (candidate.stem,) if candidate.stem in known else ()
        if not names:
            raise click.UsageError("name an OPERATOR, or all; `inferometer operators` lists them.")
        chosen = [require_operator(name) for name in dict.fromkeys(tuple(operators()) if names == ("all",) else names)]
        return [fit_device(choose_shapes(operator, self._which_shapes(operator)), self.on) for operator in chosen]

    def _which_shapes(self, operator: "Operator") -> str:
        if self.shapes is None and self.on != "cpu" and operator.catalogue().shapes:
            return "all"
        return self.shapes or "tiny"

    def _workload(self, file: str, names: tuple[str, ...]) -> "list[ChosenShapes]":
        from inferometer.bench.exchange import read_workloads
        from inferometer.errors import InputError
        from inferometer.operators import require_operator

        wanted = {require_operator(name).name for name in names if names != ("all",)}
        found = read_workloads(Path(file), on_left_out=lambda line: click.echo(f"left out: {line}", err=True))
        kept = [each for each in found if not wanted or each.operator.name in wanted]
        if not kept:
            has = ", ".join(sorted({each.operator.name for each in found})) or "none"
            raise InputError(f"{file}: no workload of {', '.join(names)}", hint=f"It has: {has}.")
        return kept

    @property
    def export_folder(self) -> Path:
        """The folder of --export-to."""
        return Path(self.export_to or "flashinfer-trace")

    def bounds(self) -> "Device | None":
        """The device of --hardware-file."""
        from inferometer.hardware.device_file import read_device

        return None if self.hardware_file is None else read_device(self.hardware_file)

    def check_surroundings(self) -> None:
        """Refuse an OUT that can't be written and a --sandbox that can't be made, before time is spent.

        Raises:
            InputError: OUT is there already, or is of another kind.
            Unavailable: Why there is no sandbox here.
        """
        from inferometer.bench.results import RUN_FILE
        from inferometer.bench.sandbox import require_sandbox
        from inferometer.new_files import check_place

        if self.output is not None:
            check_place(Path(self.output), force=self.force, kind=RUN_FILE)
        if self.sandbox:
            require_sandbox()

    def write(
        self, found: "Evaluation", candidate: Path | None, traces: Callable[[], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The files that were asked for; what was written, for programs. `traces` writes the export in another way."""
        from inferometer.bench.results import RUN_FILE, encode_run
        from inferometer.new_files import NewFile

        written: dict[str, Any] = {}
        if self.output is not None:
            with NewFile(Path(self.output), force=self.force, kind=RUN_FILE) as place:
                place.write_bytes(encode_run(found.run))
            written["output"] = self.output
        if self.export is not None and traces is not None:
            written |= traces()
        elif self.export is not None:
            from inferometer.bench.candidate_files import name_of
            from inferometer.bench.exchange import left_out, write_exchange
            from inferometer.side_files import read_side_file

            folder = self.export_folder
            sources = (
                {} if candidate is None else {name_of(candidate): read_side_file(candidate).decode("utf-8", "replace")}
            )
            files = write_exchange(found.run, folder, force=self.force, sources=sources)
            written["exported"] = f"{len(files)} files in {folder}"
            written["left_out"] = list(left_out(found.run, sources))
        return written


def show_evaluation(found: "Evaluation", written: dict[str, Any], out: "Output") -> None:
    """A run's results, and the files that `BenchOptions.write` made of them."""
    if out.form == "json":
        out.show(found, written)
        return
    out.show(found)
    for line in written.pop("left_out", ()):
        click.echo(f"left out of the export: {line}", err=True)
    for what in written.values():
        click.echo(f"written: {what}", err=True)


def existing(path: str) -> Path:
    """A candidate's file; of a folder that is a package its `__init__.py`.

    Raises:
        InputError: It isn't there, or no Python file.
    """
    from inferometer.bench.candidate_files import PACKAGE
    from inferometer.errors import InputError

    file = Path(path)
    if file.is_dir() and (file / PACKAGE).is_file():
        return file / PACKAGE
    if not file.is_file():
        what = "expected a file, found something else" if file.exists() else "no such file"
        raise InputError(f"{path}: {what}", hint="Give a Python file with a function named as the operator.")
    if file.suffix != ".py":
        raise InputError(f"{path}: expected a Python file, whose name ends in .py", hint="Rename it.")
    return file


def require_device_apart(device: str) -> str:
    """As `require_device_at`, where a candidate's process can be kept apart from ours.

    Raises:
        Unavailable: It can't be here, or there is no such device, or no torch.
        InputError: It is no device.
    """
    if sys.platform == "win32":
        from inferometer.errors import Unavailable

        raise Unavailable("candidates can't be kept apart on Windows yet", hint="Use WSL.")
    return require_device_at(device)
