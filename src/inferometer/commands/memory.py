"""`inferometer memory`: the peak of an allocator of device memory, what held it, and what lies idle."""

from typing import TYPE_CHECKING, cast

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import top_option

if TYPE_CHECKING:
    from inferometer.analyses.memory.holders import By


@command(
    "memory",
    group="Explain",
    help="Device memory that PyTorch's allocator held: its peak, what for, and what of it lies idle.\n\n"
    "FILE is a snapshot: torch.cuda.memory._record_memory_history(max_entries=100000), then "
    "torch.cuda.memory._dump_snapshot('snapshot.pickle'), or the same as JSON. No code in a pickle is ever run. Or it "
    "is a PyTorch profile with memory records: torch.profiler.profile(profile_memory=True). What NCCL and others "
    "allocate by themselves is in neither.",
    example="inferometer memory snapshot.pickle\n  inferometer memory trace.json.gz --by op\n"
    "  inferometer memory snapshot.pickle --by stack --top 5 --json",
)
@source_argument
@click.option(
    "--by",
    type=click.Choice(("frame", "file", "stack", "op", "module")),
    help="What holds memory: the innermost Python frame outside PyTorch, the file of that, the whole stack, or, in a "
    "profile, the chain of ops or the module.  [default: frame; op in a profile without frames]",
)
@top_option("holders of each device", default=20)
@output_options(*FORMATS)
def run(source: TraceArgument, by: str | None, top: int, out: Output) -> None:
    from inferometer.analyses.memory.use import NEEDED, memory_use

    out.show(memory_use(source.open(NEEDED), by=cast("By | None", by), top=top))
