"""`inferometer bench`: does a kernel for one of the catalogue's operators build, is it right."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, command, output_options
from inferometer.commands.choosing import Number

if TYPE_CHECKING:
    from inferometer.bench.shapes import Asked
    from inferometer.operators.operator import Operator


_ARCHITECTURES = ("sm_90",)


@command(
    "bench",
    help="Check a kernel for one of the catalogue's operators: does it build, is it right.\n\n"
    "FILE of --candidate is a Python file with a function named as the operator, which takes its tensors in their "
    "order and its settings as keywords, or with a class Model as Atrex-Bench has. It runs in a process of its own, "
    "several times on every shape with inputs that nobody can know before, and its answers are compared with the "
    "reference by norm, by row and, where values are rounded to fp8, by units of the last place. Without a candidate "
    "the references are checked. Needs torch.\n\n"
    "--stage builds compiles the Triton kernels that it launches, for each --arch and without a GPU: registers, "
    "spills, shared memory, occupancy, matrix instructions, and what speaks against them.",
    example="inferometer bench rms_norm --candidate my_rms_norm.py",
)
@click.argument("names", metavar="OPERATOR...", nargs=-1)
@click.option("--candidate", metavar="FILE", help="The kernel.  [default: the operator's reference]")
@click.option("--stage", type=click.Choice(("builds", "correct")), default="correct", show_default=True,
              help="What to check.")  # fmt: skip
@click.option("--arch", "architectures", metavar="TARGET", multiple=True, help=(
    "With --stage builds: sm_80, sm_89, sm_90, sm_100 or gfx942; may be given again.  [default: sm_90]"))  # fmt: skip
@click.option("--shapes", metavar="WHICH", default="tiny", show_default=True, help=(
    "tiny, all, or indices of published shapes such as 0,3-5; see `inferometer operators NAME`."))  # fmt: skip
@click.option(
    "--cases", type=click.IntRange(1, 1000), default=3, show_default=True, help="Inputs drawn for each shape."
)
@click.option("--limit", type=Number(min=0.1, max=86_400), default=60.0, show_default=True, metavar="SECONDS",
              help="How long a call may take.")  # fmt: skip
@click.option("--on", metavar="DEVICE", default="cpu", show_default=True, help="Where to run: cpu, cuda, cuda:1.")
@click.option("--check", is_flag=True, help="Exit with 1 where a shape is wrong, for CI.")
@output_options(*FORMATS)
def run(
    names: tuple[str, ...],
    candidate: str | None,
    stage: str,
    architectures: tuple[str, ...],
    shapes: str,
    cases: int,
    limit: float,
    on: str,
    check: bool,
    out: Output,
) -> int:
    if architectures and stage != "builds":
        raise click.UsageError("--arch needs --stage builds.")
    _require_torch(on)
    file = None if candidate is None else _existing(candidate)
    asked = _asked(names, file, shapes)
    if stage == "builds":
        return _build(asked, file, architectures or _ARCHITECTURES, check=check, out=out)

    from inferometer.bench.correct import check_correct
    from inferometer.bench.isolation import Limits
    from inferometer.commands.progress import working

    with working() as say:
        found = check_correct(asked, file, cases=cases, device=on, limits=Limits(seconds=limit), said=say)
    out.show(found)
    return 1 if check and not found.is_right else 0


def _build(asked: "list[Asked]", file: Path | None, architectures: tuple[str, ...], *, check: bool, out: Output) -> int:
    if file is None or len(asked) != 1:
        raise click.UsageError("--stage builds needs one OPERATOR and a --candidate.")
    from inferometer.bench.builds.building import build_candidate
    from inferometer.commands.progress import working

    with working() as say:
        say(f"machine code for {', '.join(architectures)}")
        found = build_candidate(file, asked[0].operator, [args for _, args in asked[0].shapes], architectures)
    out.show(found)
    return 1 if check and not found.passed else 0


def _asked(names: tuple[str, ...], candidate: Path | None, shapes: str) -> "list[Asked]":
    from inferometer.bench.shapes import choose_shapes
    from inferometer.operators import operators, require_operator

    if candidate is not None and not names:
        known = operators()
        names = (candidate.stem,) if candidate.stem in known else ()
    if not names:
        raise click.UsageError("name an OPERATOR; `inferometer operators` lists them.")
    chosen: list[Operator] = [require_operator(name) for name in dict.fromkeys(names)]
    return [choose_shapes(operator, shapes) for operator in chosen]


def _existing(path: str) -> Path:
    from inferometer.errors import InputError

    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: no such file", hint="Give a Python file with a function named as the operator.")
    if file.suffix != ".py":
        raise InputError(f"{path}: want a Python file, whose name ends in .py", hint="Rename it.")
    return file


def _require_torch(device: str) -> None:
    """Refuse what can't run here, before anything is drawn."""
    from importlib.util import find_spec

    from inferometer.errors import InputError, Unavailable

    if sys.platform == "win32":
        raise Unavailable("candidates can't be kept apart on Windows yet", hint="Use WSL.")
    if find_spec("torch") is None:
        raise Unavailable("torch is not installed", hint="pip install 'inferometer[torch]'")
    import torch

    try:
        kind = torch.device(device)
    except RuntimeError as error:
        raise InputError(f'{device}: want cpu, cuda or cuda:1 to run on, found "{device}"') from error
    if kind.type == "cuda" and torch.cuda.device_count() <= (kind.index or 0):
        raise Unavailable(f"there is no GPU {device} here", hint="--on cpu checks on the CPU.")
