"""`inferometer steps`: the steps of an engine, by phase and by context, and what clients waited for next to them."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import (
    FORMATS,
    Output,
    TraceArgument,
    command,
    output_options,
    raw_option,
    source_argument,
)
from inferometer.commands.options.selection import top_option

if TYPE_CHECKING:
    from inferometer.analyses.steps.table import StepTable
    from inferometer.trace.trace import Trace

_PHASES = ("prefill", "decode", "mixed", "unknown")


@command(
    "steps",
    group="Look",
    help="Steps of an engine: time by phase, growth with context, and which were disturbed.",
    example="inferometer steps engine.log --phase decode",
)
@source_argument
@click.option("--phase", type=click.Choice(_PHASES), help="Only steps of this phase.")
@click.option(
    "--run", "number", type=int, metavar="N", help="Of a file with several runs, this one.  [default: the first]"
)
@click.option("--keep-disturbed", is_flag=True, help="Use disturbed steps for medians and growth, too.")
@click.option(
    "--serving",
    metavar="FILE",
    help="Set what clients waited for next to the steps: JSON of vLLM's or SGLang's serving benchmark.",
)
@click.option("--serving-run", type=int, metavar="N", help="Of a --serving FILE with several runs, this one, from 0.")
@top_option("Steps and classes", default=20)
@raw_option(handed_on=False)
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    phase: str | None,
    number: int | None,
    keep_disturbed: bool,
    serving: str | None,
    serving_run: int | None,
    top: int,
    out: Output,
) -> None:
    from inferometer.analyses.steps.table import NEEDED, step_table

    if phase is not None and serving is not None:
        raise click.UsageError("--phase and --serving are mutually exclusive: what clients wait for takes all phases.")
    trace = source.open(NEEDED)
    found = step_table(trace, run=number, phase=phase, keep_disturbed=keep_disturbed, top=top)
    if phase is None:
        found = _beside(found, trace, source, serving, serving_run)
    out.show(found)


def _beside(
    found: "StepTable", trace: "Trace", source: TraceArgument, serving: str | None, serving_run: int | None
) -> "StepTable":
    """With what a benchmark measured, or what an engine's log says of its own latency, where one of them does."""
    from inferometer.analyses.steps.serving.latency import serving_of
    from inferometer.formats.serving_results import read_serving

    if serving is not None:
        return found.with_serving(read_serving(serving, serving_run, limits=source.limits()))
    logged = serving_of(trace, found.run)
    return found if logged is None else found.with_serving(logged)
