"""`inferometer ops`: what the ops of a trace must do, by what they were called with."""

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.joined import execution_trace_option, with_arguments
from inferometer.commands.options.rooflines import device_for_bounds
from inferometer.commands.options.selection import match_option, top_option


@command(
    "ops",
    group="Explain",
    help="Ops by what they were called with: calls, FLOPs, bytes and the least time, without measured times.\n\n"
    "FILE is an execution trace (torch.profiler.ExecutionTraceObserver), which has no times, or any profile with ops. "
    "Work is modelled from the arguments, as `roofline` does, and counts once: at the outermost call whose work is "
    "known.",
    example="inferometer ops et.json --hardware 'H200 SXM'\n"
    "  inferometer ops trace.json.gz --execution-trace et.json --match 'aten::.*mm'",
)
@source_argument
@click.option("--hardware", metavar="NAME", help="What it runs on, for bounds.  [default: as the file says]")
@click.option("--hardware-file", metavar="FILE", help="The same, as a file; see `hardware --measure`.")
@execution_trace_option
@top_option("ops", default=30)
@match_option("ops")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    hardware: str | None,
    hardware_file: str | None,
    execution_trace: str | None,
    top: int | None,
    match: str | None,
    out: Output,
) -> None:
    from inferometer.analyses.roofline.op_work import NEEDED, op_work

    device = device_for_bounds(hardware, hardware_file)
    trace = with_arguments(source, execution_trace).open(NEEDED)
    out.show(op_work(trace, device=device, top=top, match=match))
