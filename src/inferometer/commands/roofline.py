"""`inferometer roofline`: how far each op of a trace is from what the hardware allows."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.selection import top_option

if TYPE_CHECKING:
    from inferometer.hardware.device import Device


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
    from inferometer.analyses.roofline.table import NEEDED, roofline
    from inferometer.operators.framework.lengths import Lengths

    device = _device(hardware, hardware_file)
    trace, found = how.open(source, NEEDED, with_op_calls=True)
    out.show(roofline(found, trace.facts, device=device, lengths=Lengths(each=context, window=window), top=top))


def _device(name: str | None, file: str | None) -> "Device | None":
    """The device of a name or a file; None where neither is given.

    Raises:
        click.UsageError: Both are given.
        InputError: There is none of that name, or the file is no device.
    """
    from inferometer.hardware.device_file import read_device
    from inferometer.hardware.known import require_device

    if name is not None and file is not None:
        raise click.UsageError("--hardware and --hardware-file are mutually exclusive.")
    if file is not None:
        return read_device(file)
    return None if name is None else require_device(name)
