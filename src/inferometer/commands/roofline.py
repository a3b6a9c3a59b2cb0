"""`inferometer roofline`: how far each op of a trace is from what the hardware allows."""

from pathlib import Path
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
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.counted import counters_option
from inferometer.commands.options.joined import execution_trace_option, with_arguments
from inferometer.commands.options.rooflines import device_for_bounds, model_trace
from inferometer.commands.options.selection import top_option
from inferometer.errors import clean

if TYPE_CHECKING:
    from inferometer.analyses.roofline.table import Roofline

_MOST_NAMES = 8


@command(
    "roofline",
    group="Explain",
    help="How far each op is from what the hardware allows: work, bound, and how much of it is reached.\n\n"
    "Times are measured. FLOPs, bytes and bounds are modelled, from the shapes and types that the profiler recorded "
    "with each op. What can't be known stays a row with the reason. Attention in serving takes lengths from the names "
    "that the engine gives its steps, or from --context.\n\n"
    "--to-bench writes the shapes of ops that operators of the catalogue are, for `bench --shapes OUT`; ops that none "
    "is are named on stderr.\n\n"
    "--counters sets what Nsight Compute counted of the same kernels next to what is modelled: bytes of DRAM, "
    "FLOPs, L2 hits, occupancy, clock, stalls. They join by the kernels' names, grids, blocks and order. Its times "
    "aren't used.",
    example="inferometer roofline trace.json.gz --hardware 'H200 SXM'\n"
    "  inferometer roofline decode.json.gz --capture capture.json.gz --window 128\n"
    "  inferometer roofline trace.json.gz --counters ncu.csv\n"
    "  inferometer roofline trace.json.gz --to-bench shapes.jsonl",
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
@counters_option
@execution_trace_option
@click.option(
    "--output-code",
    metavar="PATH",
    help="What Inductor wrote, a file or a folder, for compiled kernels: parsed, never run.",
)
@click.option("--to-bench", metavar="OUT", help="Write shapes for `bench` to this .jsonl file.")
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@top_option("ops")
@raw_option(handed_on=False)
@attributing_options
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    hardware: str | None,
    hardware_file: str | None,
    context: int | None,
    window: int | None,
    counters: str | None,
    execution_trace: str | None,
    output_code: str | None,
    to_bench: str | None,
    force: bool,
    top: int | None,
    how: Attributing,
    out: Output,
) -> None:
    if to_bench is not None:
        from inferometer.bench.exchange.traced_shapes import SHAPE_FILE
        from inferometer.new_files import check_place

        if Path(to_bench).suffix != ".jsonl":
            raise click.UsageError("--to-bench needs a name that ends in .jsonl.")
        check_place(Path(to_bench), force=force, kind=SHAPE_FILE)

    from inferometer.operators.framework.lengths import Lengths

    device, lengths = device_for_bounds(hardware, hardware_file), Lengths(each=context, window=window)
    found = model_trace(
        with_arguments(source, execution_trace),
        how,
        device=device,
        lengths=lengths,
        counters=counters,
        output_code=output_code,
        top=top,
    )
    if to_bench is not None:
        _write_shapes(found, to_bench, force=force)
    out.show(found)


def _write_shapes(found: "Roofline", target: str, *, force: bool) -> None:
    """The shapes that the catalogue has operators for; what has none is named."""
    from inferometer.bench.exchange.traced_shapes import SHAPE_FILE, encode_shapes, traced_shapes, without_operator
    from inferometer.new_files import NewFile
    from inferometer.units import format_duration

    shapes = traced_shapes(found)
    with NewFile(Path(target), force=force, kind=SHAPE_FILE) as place:
        place.write_bytes(encode_shapes(shapes))
    names = ", ".join(dict.fromkeys(shape.operator for shape in shapes))
    click.echo(f"written: {clean(target)}: {len(shapes):,} shapes of {names}", err=True)
    others = [f"{op} ({format_duration(ns)})" for op, ns in without_operator(found).items()]
    if others:
        more = f", and {len(others) - _MOST_NAMES:,} more" if len(others) > _MOST_NAMES else ""
        click.echo(f"no operator: {clean(', '.join(others[:_MOST_NAMES]))}{more}", err=True)
