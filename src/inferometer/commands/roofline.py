"""`inferometer roofline`: how far each op of a trace is from what the hardware allows."""

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.rooflines import device_for_bounds, model_trace
from inferometer.commands.options.selection import top_option


@command(
    "roofline",
    help="How far each op is from what the hardware allows: work, bound, and how much of it is reached.\n\n"
    "Times are measured. FLOPs, bytes and bounds are modelled, from the shapes and types that the profiler recorded "
    "with each op. What can't be known stays a row with the reason. Attention in serving takes lengths from the names "
    "that the engine gives its steps, or from --context.",
    example="inferometer roofline trace.json.gz --hardware 'H200 SXM'\n"
    "  inferometer roofline decode.json.gz --capture capture.json.gz --window 128",
)
@source_argument
@click.option("--hardware", metavar="NAME", help="What it ran on, for bounds.  [default: as the file says]")
@click.option("--hardware-file", metavar="FILE", help="The same, as a file; see `hardware --measure`.")
@click.option(
    "--context",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Tokens that each sequence of a decode step has, where the names of steps don't tell.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Tokens that a sliding window holds: in all layers, or in those with the quicker of two attention kernels.",
)
@top_option("ops")
@attributing_options
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    hardware: str | None,
    hardware_file: str | None,
    context: int | None,
    window: int | None,
    top: int | None,
    how: Attributing,
    out: Output,
) -> None:
    from inferometer.operators.framework.lengths import Lengths

    device, lengths = device_for_bounds(hardware, hardware_file), Lengths(each=context, window=window)
    out.show(model_trace(source, how, device=device, lengths=lengths, top=top))
