"""`inferometer groups`: kernels that one call launches together."""

import click
from msgspec.structs import replace

from inferometer.commands.base import Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import between_option, device_option, rank_option, stream_option, top_option


@command(
    "groups",
    group="Explain",
    help="Kernels that one library call launches together, and which call that is.",
    example="inferometer groups trace.json.gz --top 10",
)
@source_argument
@top_option("groups")
@click.option(
    "--min-support",
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask that neighbours were seen so often: by default 2 times in one op, 5 times where ops are unknown.",
)
@device_option()
@stream_option()
@rank_option()
@between_option("launches that begin in this window")
@click.option("--section", type=click.IntRange(min=0), metavar="N", help="Only this table of a file with several.")
@click.option(
    "--split", is_flag=True, help="From sums: share a follower's time out over its leaders by count (modelled)."
)
@click.option(
    "--learn-from",
    "teachers",
    metavar="FILE",
    multiple=True,
    help="Recognise groups by names that this trace shows with ops: an eager run, or the capture of a graph.",
)
@output_options("json", "markdown")
def run(
    source: TraceArgument,
    top: int | None,
    min_support: int | None,
    device: str | None,
    stream: int | None,
    rank: int | None,
    between: tuple[int, int] | None,
    section: int | None,
    split: bool,
    teachers: tuple[str, ...],
    out: Output,
) -> None:
    from inferometer.analyses.groups.groups import NEEDED, find_groups
    from inferometer.analyses.selection import Selection

    learned = [find_groups(replace(source, path=path, format=None).open(NEEDED)) for path in teachers]
    trace = source.open(None if between else NEEDED, rank=None if between else rank)
    selection = Selection(device, stream, rank, between)
    found = find_groups(
        trace, selection, top=top, min_support=min_support, section=section, split=split, learned=learned
    )
    out.show(found)
