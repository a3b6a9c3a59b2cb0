"""`inferometer summary`: the first look at a trace."""

import click

from inferometer.commands.base import Output, Source, command, output_options, source_argument


@command(
    "summary", help="What a trace is and where its devices' time went.", example="inferometer summary trace.json.gz"
)
@source_argument
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Kernels to list.")
@output_options("json", "markdown")
def run(source: Source, top: int, out: Output) -> None:
    from inferometer.analyses.summary import summarize

    out.show(summarize(source.open(), top=top))
