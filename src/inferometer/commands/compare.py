"""`inferometer compare`: why one run is slower than another, or that it can't be known."""

from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import Output, TraceArgument, command, output_options
from inferometer.commands.options.selection import Number, hardware_option
from inferometer.commands.settings import is_setting
from inferometer.errors import clean

if TYPE_CHECKING:
    from inferometer.analyses.compare.check import Checked
    from inferometer.trace.trace import Trace

_PERCENT = 100


@command(
    "compare",
    group="Compare",
    help="Compare two runs: what changed, and the cause, or that it can't be known.\n\n"
    "With --check the exit code is 1 where the candidate's step is longer beyond noise, by more than --max-regression; "
    "where noise can't be known, by more than 10 %; where it calls more than before and is longer by more than 5 % on "
    "the mean; and where the times of the two can't be compared, also because a file is damaged. It is 0 where none is "
    "so. Where a step that is longer by more than 10 % and --max-regression isn't excluded either, a line on standard "
    "error says that nothing is proven; with --strict the exit code is then 1.\n\n"
    "In any case it is 2 after wrong usage, 3 where a file can't be read, 4 where an extra that it needs isn't "
    "installed, 70 after a bug of ours.\n\n"
    "Two results of a benchmark (llama-bench, trtexec, WebLLM) are compared test by test, by their repetitions.",
    example="inferometer compare normal/ slow/",
)
@click.argument("base", metavar="BASE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--base-set", metavar="DIR", help="Further normal runs, a file or folder each, for the noise level.")
@hardware_option("What both ran on, for capacities: 'A100 SXM 80GB'.")
@click.option("--format", "form", metavar="NAME", help="Read both as this format; see `inferometer formats`.")
@click.option("--check", is_flag=True, help="Exit 1 where the candidate is slower beyond noise, for CI.")
@click.option(
    "--max-regression",
    type=Number(min=0),
    metavar="PCT",
    help="With --check: accept so many percent more step time.",
)
@click.option("--strict", is_flag=True, help="With --check: exit 1, too, where nothing is proven.")
@click.option("--published", is_flag=True, help="The table and formulas that were published with LatencyPrism instead.")
@click.option(
    "--pairing",
    type=click.Choice(["strict", "cross"]),
    help="With --published: compare processes of one number, or all with all.",
)
@output_options("json", "csv", "tsv", "markdown")
def run(
    base: str,
    candidate: str,
    base_set: str | None,
    hardware: str | None,
    form: str | None,
    check: bool,
    max_regression: float | None,
    strict: bool,
    published: bool,
    pairing: str | None,
    out: Output,
) -> None:
    from inferometer.commands.options.allocation import share_out

    share_out()

    from inferometer.analyses.compare.check import check_steps, check_tests
    from inferometer.analyses.compare.comparison import NEEDED, compare
    from inferometer.analyses.compare.tests import NEEDED as TESTS_NEEDED
    from inferometer.analyses.compare.tests import are_repeated, compare_tests
    from inferometer.commands.options.other_runs import runs_of
    from inferometer.hardware.known import require_device

    if max_regression is not None and not check:
        raise click.UsageError("--max-regression goes with --check.")
    if strict and not check:
        raise click.UsageError("--strict goes with --check.")
    if pairing is not None and not published:
        raise click.UsageError("--pairing goes with --published.")
    if published:
        if check or base_set or (hardware and not is_setting("hardware")):
            raise click.UsageError("--published goes with --pairing and an output form alone.")
        _show_published(base, candidate, form, pairing, out)
        return
    device = require_device(hardware) if hardware else None
    traces = [_open(path, form, {**NEEDED, **TESTS_NEEDED}) for path in (base, candidate)]
    if are_repeated(*traces):
        if base_set or (hardware and not is_setting("hardware")):
            raise click.UsageError("--base-set and --hardware are about counters, which neither file has.")
        tests = compare_tests(*traces)
        out.show(tests)
        if check:
            _end(check_tests(tests, (max_regression or 0.0) / _PERCENT), strict=strict)
        return
    more = [_open(path, form, NEEDED) for path in runs_of(base_set)] if base_set else []
    found = compare(*traces, more=more, device=device)
    out.show(found)
    if check:
        _end(check_steps(found, (max_regression or 0.0) / _PERCENT), strict=strict)


def _end(checked: "Checked", *, strict: bool) -> None:
    """With the exit code that the check asks for; what it leaves open is said in any case."""
    if checked.open:
        click.echo(f"not proven: {clean(checked.open)}", err=True)
    if checked.failed or (strict and checked.open):
        click.get_current_context().exit(1)


def _show_published(base: str, candidate: str, form: str | None, pairing: Any, out: Output) -> None:
    """Markdown for the terminal too: that is the form it was published in."""
    from inferometer.analyses.latencyprism.comparison import NEEDED, published
    from inferometer.reports.published import render_published

    found = published(*(_open(path, form, NEEDED) for path in (base, candidate)), pairing=pairing)
    if out.form in ("json", "csv", "tsv"):
        out.show(found)
    else:
        out.write(render_published(found))


def _open(path: str, form: str | None, tables: Any) -> "Trace":
    return TraceArgument(path, form).open(tables)
