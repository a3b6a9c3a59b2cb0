"""`inferometer calls`: host calls, launch delay, the device's queue, waits."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import between_option, match_option, rank_option, sort_option, top_option

if TYPE_CHECKING:
    from inferometer.analyses.rows import SortKey


@command(
    "calls",
    group="Explain",
    help="Driver and runtime calls, launch delay, the device's queue, and waits of the host.",
    example="inferometer calls trace.json.gz --top 20",
)
@source_argument
@sort_option("calls")
@top_option("APIs")
@match_option("APIs")
@rank_option()
@between_option("calls that begin in this window")
@click.option("--raw", is_flag=True, help="Names as in the file; otherwise versions (_v7000) are taken off.")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    sort: "SortKey",
    top: int | None,
    match: str | None,
    rank: int | None,
    between: tuple[int, int] | None,
    raw: bool,
    out: Output,
) -> None:
    from inferometer.analyses.tables.calls import NEEDED, call_table
    from inferometer.analyses.tables.host_selection import HostSelection

    trace = source.open(None if between else NEEDED, rank=None if between else rank)
    out.show(call_table(trace, HostSelection(rank, between), sort=sort, top=top, match=match, raw=raw))
