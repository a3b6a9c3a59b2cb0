"""`inferometer steps`: the steps of an engine, by phase and by context."""

import click

from inferometer.commands.base import FORMATS, Output, Source, command, output_options, source_argument
from inferometer.commands.choosing import top_option

_PHASES = ("prefill", "decode", "mixed", "unknown")


@command(
    "steps",
    help="Steps of an engine: time by phase, growth with context, and which were disturbed.",
    example="inferometer steps engine.log --phase decode",
)
@source_argument
@click.option("--phase", type=click.Choice(_PHASES), help="Only steps of this phase.")
@click.option(
    "--run", "number", type=int, metavar="N", help="Of a file with several runs, this one.  [default: the first]"
)
@click.option("--keep-disturbed", is_flag=True, help="Use disturbed steps for medians and growth, too.")
@top_option("Steps and classes", default=20)
@output_options(*FORMATS)
def run(source: Source, phase: str | None, number: int | None, keep_disturbed: bool, top: int, out: Output) -> None:
    from inferometer.analyses.step_sources import NEEDED
    from inferometer.analyses.steps import step_table

    found = step_table(source.open(NEEDED), run=number, phase=phase, keep_disturbed=keep_disturbed, top=top)
    out.show(found.as_table() if out.form in ("csv", "tsv") else found)
