"""`inferometer spans`: device time by named range."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import match_option, rank_option, top_option

if TYPE_CHECKING:
    from inferometer.analyses.tables.spans import SpanSortKey

_SORT_KEYS = ("busy", "summed", "projected", "launches", "instances", "host", "mean", "name")


@command(
    "spans",
    group="Explain",
    help="Device time by named range: NVTX, record_function, ProfilerStep.",
    example="inferometer spans trace.json.gz --fold",
)
@source_argument
@click.option(
    "--sort",
    type=click.Choice(_SORT_KEYS),
    default="busy",
    show_default=True,
    help="Largest first; names from A to Z. host and mean are times on the host.",
)
@top_option("ranges")
@match_option("ranges")
@rank_option()
@click.option("--fold", is_flag=True, help="Join names that differ in numbers only: step 1 and step 2 are step N.")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    sort: "SpanSortKey",
    top: int | None,
    match: str | None,
    rank: int | None,
    fold: bool,
    out: Output,
) -> None:
    from inferometer.analyses.tables.spans import NEEDED, span_table

    trace = source.open(NEEDED, rank=rank)
    out.show(span_table(trace, rank=rank, sort=sort, top=top, match=match, fold=fold))
