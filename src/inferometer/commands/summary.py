"""`inferometer summary`: the first look at a trace."""

from inferometer.commands.base import (
    Output,
    TraceArgument,
    asked_thresholds,
    command,
    output_options,
    raw_option,
    source_argument,
)
from inferometer.commands.options.modelled import Modelled, model_options
from inferometer.commands.options.selection import rank_option, top_option


@command(
    "summary",
    group="Look",
    help="What a trace is, where its devices' time went, and what to look at first.",
    example="inferometer summary trace.json.gz",
)
@source_argument
@top_option("Kernels", default=10)
@rank_option()
@raw_option()
@model_options(sizes=False)
@output_options("json", "markdown")
def run(source: TraceArgument, top: int, rank: int | None, raw: bool, modelled: Modelled, out: Output) -> None:
    model, ran_on = modelled.model(), modelled.ran_on()

    from inferometer.findings.first_look import first_look

    trace = source.open(rank=rank, early=True)
    modelled.refuse_unused(trace)
    found = first_look(
        trace,
        top=top,
        raw=raw,
        model=model,
        device=ran_on,
        bandwidths=modelled.bandwidths(),
        thresholds=asked_thresholds(),
    )
    out.show(found)
