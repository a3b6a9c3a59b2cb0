"""`inferometer counters`: what a profiler counted of each launch that it ran alone."""

from inferometer.commands.base import (
    FORMATS,
    Output,
    TraceArgument,
    command,
    output_options,
    raw_option,
    source_argument,
)
from inferometer.commands.options.selection import match_option, top_option


@command(
    "counters",
    group="Explain",
    help="What a profiler counted of each launch: memory, pipes, occupancy, and what warps waited for.\n\n"
    "FILE is what `ncu --csv` printed (any page, locale and unit), or a .ncu-rep where ncu is on PATH. ncu runs each "
    "kernel alone, as a rule with clocks locked and caches flushed: its times are never those of a run. `kernels` and "
    "`roofline` take the same file as --counters, and set it next to a trace of the same program. Of files that "
    "rocprofv3 --pmc wrote, its counters by kernel, as it names them.",
    example="inferometer counters ncu.csv\n  inferometer counters report.ncu-rep --match attn --csv",
)
@source_argument
@top_option("launches")
@match_option("launches", of_kernels=" of the kernel, whole or as it is decoded,")
@raw_option(handed_on=False)
@output_options(*FORMATS)
def run(source: TraceArgument, top: int | None, match: str | None, out: Output) -> None:
    from inferometer.analyses.counters.launches import NEEDED, launch_counters

    out.show(launch_counters(source.open(NEEDED), top=top, match=match))
