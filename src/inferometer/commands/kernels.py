"""`inferometer kernels`: the table of kernel time."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.modelled import Modelled, model_options
from inferometer.commands.options.selection import (
    between_option,
    device_option,
    match_option,
    rank_option,
    sort_option,
    stream_option,
    top_option,
)

if TYPE_CHECKING:
    from inferometer.analyses.labels import By
    from inferometer.analyses.rows import SortKey

_BY = ("name", "short", "family", "library", "dtype", "tile", "layer", "role")
_COLUMNS = {  # what the table is made of; a reader that gains by it reads no others
    "launches": ("kind", "kernel", "dur_ns"),
    "totals": (
        *("section", "kernel", "count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"),
        *("resolution_ns", "rank", "step", "layer", "role"),
    ),
}


@command(
    "kernels", help="Time by kernel, as Nsight Systems prints it.", example="inferometer kernels trace.json.gz --top 20"
)
@source_argument
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="name",
    show_default=True,
    help="What makes a row: the name, or what it tells. Kernels whose name doesn't tell it are one row.",
)
@sort_option("instances")
@top_option("kernels")
@match_option("kernels")
@device_option()
@stream_option()
@rank_option()
@between_option("launches that begin in this window")
@click.option("--raw", is_flag=True, help="Names as in the file; otherwise C++ names are demangled.")
@click.option("--memory", is_flag=True, help="Memory copies and sets as rows of their own.")
@click.option("--section", type=click.IntRange(min=0), metavar="N", help="Only this table of a file with several.")
@model_options(sizes=True, renamed=False)
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    by: "By",
    sort: "SortKey",
    top: int | None,
    match: str | None,
    device: str | None,
    stream: int | None,
    rank: int | None,
    between: tuple[int, int] | None,
    raw: bool,
    memory: bool,
    section: int | None,
    modelled: Modelled,
    out: Output,
) -> None:
    if modelled.config is not None:
        if device is not None:
            raise click.UsageError("--device chooses a device of the trace; what it ran on is --hardware.")
        if by not in ("name", "layer") or raw or memory or any((sort != "total", match, stream, between)):
            raise click.UsageError("With --model-config, of the choices only --by layer, --top and --section fit.")
        by_layer = by == "layer"
        bounds = modelled.bounds(source, modelled.config, rank=rank, run=section, by_layer=by_layer, top=top)
        out.show(bounds)
        return
    modelled.refuse_alone()
    if modelled.hardware is not None:
        raise click.UsageError("--hardware needs --model-config; --device chooses a device of the trace.")
    chosen = {"device": device, "stream": stream, "rank": rank}
    selected = [column for column, value in chosen.items() if value is not None]
    needed = None if between else _COLUMNS | {"launches": (*_COLUMNS["launches"], *selected)}
    trace = source.open(needed, rank=None if between else rank)  # a window counts from the start of all ranks

    from inferometer.analyses.selection import Selection
    from inferometer.analyses.tables.kernels import kernel_table

    selection = Selection(device, stream, rank, between)
    table = kernel_table(
        trace, selection, sort=sort, top=top, match=match, raw=raw, copies=memory, section=section, by=by
    )
    out.show(table)
    if table.others and out.form in ("csv", "tsv"):
        others = ", ".join(str(other.section) for other in table.others)
        click.echo(f"Only section {table.section} is printed; --section gives the others: {others}.", err=True)
