"""`inferometer memory`: the peak of an allocator of device memory, what held it, and what lies idle."""

from typing import TYPE_CHECKING, cast

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import top_option

if TYPE_CHECKING:
    from inferometer.analyses.memory.use import By


@command(
    "memory",
    group="Explain",
    help="Device memory that PyTorch's allocator held: its peak, what for, and what of it lies idle.\n\n"
    "FILE is a snapshot: torch.cuda.memory._record_memory_history(max_entries=100000), then "
    "torch.cuda.memory._dump_snapshot('snapshot.pickle'), or the same as JSON. No code in a pickle is ever run. What "
    "NCCL and others allocate by themselves isn't in it.",
    example="inferometer memory snapshot.pickle\n  inferometer memory snapshot.pickle --by stack --top 5 --json",
)
@source_argument
@click.option(
    "--by",
    type=click.Choice(("frame", "file", "stack")),
    default="frame",
    show_default=True,
    help="What holds memory: the innermost Python frame outside PyTorch, the file of that, or the whole stack.",
)
@top_option("holders of each device", default=20)
@output_options(*FORMATS)
def run(source: TraceArgument, by: str, top: int, out: Output) -> None:
    from inferometer.analyses.memory.use import NEEDED, memory_use

    out.show(memory_use(source.open(NEEDED), by=cast("By", by), top=top))
