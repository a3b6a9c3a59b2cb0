"""`inferometer summary`: the first look at a trace."""

import click

from inferometer.commands.base import Output, Source, command, output_options, source_argument
from inferometer.commands.options.modelled import Modelled, hardware, model_options
from inferometer.commands.options.selection import rank_option, top_option


@command(
    "summary",
    help="What a trace is, where its devices' time went, and what to look at first.",
    example="inferometer summary trace.json.gz",
)
@source_argument
@top_option("Kernels", default=10)
@rank_option()
@model_options(sizes=False)
@click.option("--device", metavar="DEVICE", help="What an engine's log was made on, for bounds: 'Apple M3'.")
@output_options("json", "markdown")
def run(source: Source, top: int, rank: int | None, modelled: Modelled, device: str | None, out: Output) -> None:
    model, ran_on = modelled.model(), hardware(device)

    from inferometer.findings.first_look import first_look

    trace = source.open(rank=rank)
    out.show(first_look(trace, top=top, model=model, device=ran_on, bandwidths=modelled.bandwidths()))
