"""`inferometer bench`: does a kernel for one of the catalogue's operators build, is it right, is it fast."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import FORMATS, Output, command, output_options
from inferometer.commands.options.backends import CatalogueBackends
from inferometer.commands.options.bench import (
    BenchOptions,
    existing,
    require_device_apart,
    show_evaluation,
)
from inferometer.commands.options.memory import parse_memory
from inferometer.commands.options.selection import Number, hardware_file_option

if TYPE_CHECKING:
    from inferometer.bench.evaluation import Evaluation
    from inferometer.bench.shapes import ChosenShapes

_ARCHITECTURES = ("sm_90",)
_TIMERS = ("cupti", "graph", "events", "host")


@command(
    "bench",
    group="Bench",
    help="Check a kernel for the catalogue's operators: does it build, is it right, is it fast.\n\n"
    "FILE of --candidate is a Python file with a function named as the operator, which takes its tensors in their "
    "order and its settings as keywords, or with a class Model or ModelNew as Atrex-Bench and KernelBench have; or the "
    "folder of a package that has these. It runs in a process of its own, "
    "several times on every shape with inputs that nobody can know before, and its answers are compared with the "
    "reference by norm, by row and, where values are rounded to fp8, by units of the last place. Backends are kernels "
    "that are there already: torch, compile, and vendors' libraries where they are installed. OPERATOR may be all. "
    "Needs torch.\n\n"
    "--stage fast then times what is right, in turns with the first backend: caches cold and warm, inputs drawn anew "
    "for every call, until the median is known to 1 % or --seconds are over. -o keeps the results for "
    "`inferometer leaderboard`. On a CPU that shows that the kernels run, not how fast they are.\n\n"
    "--stage builds compiles the Triton kernels that it launches (or those of one backend, such as triton), for each "
    "--arch and without a GPU: registers, "
    "spills, shared memory, occupancy, matrix instructions, and what speaks against them.",
    example="inferometer bench rms_norm --candidate my_rms_norm.py --stage fast",
)
@click.argument("names", metavar="OPERATOR...", nargs=-1)
@click.option("--candidate", metavar="FILE", help="The kernel.")
@click.option("--backend", "backend_names", metavar="NAMES", multiple=True, cls=CatalogueBackends, help=(
    "Backends, the base first: {backends}, or all that can run here.  [default: torch, unless a candidate is only "
    "checked]"))  # fmt: skip
@click.option("--stage", type=click.Choice(("builds", "correct", "fast")), default="correct", show_default=True,
              help="What to check.")  # fmt: skip
@click.option("--arch", "architectures", metavar="TARGET", multiple=True, help=(
    "With --stage builds: sm_80, sm_89, sm_90, sm_100, sm_120, gfx942 or gfx950; may be given again.  "
    "[default: sm_90]"))  # fmt: skip
@click.option("--shapes", metavar="WHICH", help=(
    "tiny, all, indices of published shapes such as 0,3-5 (see `inferometer operators NAME`), or a file that "
    "`roofline --to-bench` wrote.  "
    "[default: tiny on a CPU, all on a GPU]"))  # fmt: skip
@click.option("--workload", metavar="FILE", help="Shapes from workloads of flashinfer-bench, in place of --shapes.")
@click.option("--suite", metavar="PATH", help=(
    "Problems of other benchmarks in place of operators: a data set or a definition of flashinfer-bench, a file or "
    "a folder of KernelBench. OPERATOR is then a pattern of their names; --candidate a file or folder of solutions, "
    "--shapes indices of workloads."))  # fmt: skip
@click.option("--cases", type=click.IntRange(1, 1000), default=3, show_default=True, help="Inputs drawn a shape.")
@click.option("--strided", is_flag=True, help="Rows that lie apart in memory must be right too.")
@click.option("--strict", is_flag=True, help=(
    "Refuse a candidate that does what no kernel needs, such as starting processes."))  # fmt: skip
@click.option("--sandbox", is_flag=True, help="Run the candidate in bubblewrap, which must be installed.")
@click.option("--limit", type=Number(min=0.1, max=86_400), default=60.0, show_default=True, metavar="SECONDS",
              help="How long a call may take.")  # fmt: skip
@click.option("--memory", metavar="SIZE", callback=parse_memory("torch alone"), help=(
    "How much memory a candidate may hold, such as 8GiB.  [default: 80 % of a host's, all of a GPU's]"))  # fmt: skip
@click.option("--on", metavar="DEVICE", default="cpu", show_default=True, help="Where to run: cpu, cuda, cuda:1.")
@click.option("--timer", type=click.Choice(_TIMERS), help=(
    "With --stage fast.  [default: host on a CPU; the first that works of cupti, graph, events]"))  # fmt: skip
@click.option("--seconds", type=Number(min=0.01, max=3_600), metavar="N", help=(
    "With --stage fast: at most, for a shape in one state of the caches.  [default: 0.1; 2 on a GPU]"))  # fmt: skip
@hardware_file_option("The device whose bounds times are held against.  [default: by name]")
@click.option("-o", "--output", metavar="OUT", help="Keep the results in this JSON file.")
@click.option(
    "--export", "export", type=click.Choice(("flashinfer-bench",)), help="Write the results in its form, too."
)
@click.option("--export-to", metavar="DIR", help="Where to.  [default: flashinfer-trace]")
@click.option("--force", is_flag=True, help="Replace OUT and files in DIR.")
@click.option("--check", is_flag=True, help="Exit with 1 where a shape is wrong, for CI.")
@output_options(*FORMATS)
def run(
    names: tuple[str, ...], candidate: str | None, stage: str, architectures: tuple[str, ...], check: bool, out: Output,
    **options: Any,
) -> int:  # fmt: skip
    asking = BenchOptions(**options)
    asking.refuse_mixed(stage, architectures)
    asking.on = require_device_apart(asking.on)
    if asking.suite is not None:
        from inferometer.commands.options.suite import run_problems

        return run_problems(names, candidate, stage, asking, check=check, out=out)
    file = None if candidate is None else existing(candidate)
    asked = asking.shapes_of(names, file)
    if stage == "builds":
        return _build(asked, file, asking.named_backends(), architectures or _ARCHITECTURES, check=check, out=out)
    asking.check_surroundings()
    found = _evaluate(asked, file, stage, asking)
    show_evaluation(found, asking.write(found, file), out)
    return 1 if check and not found.is_right else 0


def _evaluate(asked: "list[ChosenShapes]", file: Path | None, stage: str, asking: BenchOptions) -> "Evaluation":
    from inferometer.bench.candidates import choose_candidates
    from inferometer.bench.run import evaluate
    from inferometer.commands.options.progress import working

    candidates = choose_candidates(asking.backends(file, stage), file, asking.on)
    bounds = asking.bounds()
    with working() as say:
        pace, timer = asking.timing(stage, say)
        return evaluate(asked, candidates, asking.plan(), pace=pace, timer=timer, bounds=bounds, on_progress=say)


def _build(
    asked: "list[ChosenShapes]", file: Path | None, names: tuple[str, ...], architectures: tuple[str, ...], *,
    check: bool, out: Output,
) -> int:  # fmt: skip
    if len(asked) != 1 or (file is not None) + len(names) != 1:
        raise click.UsageError("--stage builds needs one OPERATOR, and a --candidate or one --backend.")
    from inferometer.bench.builds.building import build_backend, build_candidate
    from inferometer.commands.options.progress import working

    operator, args_list = asked[0].operator, [args for _, args in asked[0].shapes]
    with working() as say:
        say(f"machine code for {', '.join(architectures)}")
        if file is None:
            found = build_backend(names[0], operator, args_list, architectures)
        else:
            found = build_candidate(file, operator, args_list, architectures)
    out.show(found)
    return 1 if check and not found.passed else 0
