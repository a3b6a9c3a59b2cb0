"""`inferometer kernels`: the table of kernel time."""

from typing import TYPE_CHECKING, cast

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
from inferometer.commands.options.attribution import Attributing, capture_option
from inferometer.commands.options.counted import counters_option, open_counters
from inferometer.commands.options.modelled import Modelled, model_options
from inferometer.commands.options.rooflines import model_trace
from inferometer.commands.options.selection import (
    between_option,
    device_option,
    match_option,
    rank_option,
    sort_option,
    stream_option,
    top_option,
)
from inferometer.commands.settings import is_setting

if TYPE_CHECKING:
    from inferometer.analyses.labels import By
    from inferometer.analyses.rows import SortKey

_BY = ("name", "short", "family", "library", "dtype", "tile", "layer", "role", "op-args")
_COLUMNS = {  # what the table is made of; a reader that gains by it reads no others
    "launches": ("kind", "kernel", "dur_ns"),
    "totals": (
        *("section", "kernel", "count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"),
        *("resolution_ns", "rank", "step", "layer", "role"),
    ),
}

_TIED = ("rank", "device", "start_ns", "grid", "block")  # what ties launches to counted ones


@command(
    "kernels",
    group="Look",
    help="Time by kernel, as Nsight Systems prints it.",
    example="inferometer kernels trace.json.gz --top 20",
)
@source_argument
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="name",
    show_default=True,
    help="What makes a row: the name, or what it tells; kernels whose name doesn't tell it are one row. op-args: the "
    "op that launched it with its shapes, types and strides.",
)
@sort_option("instances")
@top_option("kernels")
@match_option("kernels", of_kernels=", whole or as it is decoded,")
@device_option()
@stream_option()
@rank_option()
@between_option("launches that begin in this window")
@raw_option()
@click.option("--memory", is_flag=True, help="Memory copies and sets as rows of their own.")
@click.option("--roofline", is_flag=True, help="With the bound of each kernel's ops, and how much of it is reached.")
@capture_option()
@counters_option
@click.option("--section", type=click.IntRange(min=0), metavar="N", help="Only this table of a file with several.")
@model_options(sizes=True, renamed=False)
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    by: str,
    sort: "SortKey",
    top: int | None,
    match: str | None,
    device: str | None,
    stream: int | None,
    rank: int | None,
    between: tuple[int, int] | None,
    raw: bool,
    memory: bool,
    roofline: bool,
    captures: tuple[str, ...],
    counters: str | None,
    section: int | None,
    modelled: Modelled,
    out: Output,
) -> None:
    if counters is not None and (by != "name" or roofline or memory or section is not None):
        raise click.UsageError("--counters and --by, --roofline, --memory or --section are mutually exclusive.")
    if roofline or by == "op-args":
        if roofline and by != "name":
            raise click.UsageError("--roofline and --by are mutually exclusive.")
        if raw or memory or section is not None or sort != "total" or modelled.config is not None:
            raise click.UsageError(
                "With --roofline or --by op-args, of the choices only --top, --match, --capture, --hardware and the "
                "selection of launches fit."
            )
        how = Attributing(captures, (), (), device, stream, rank, between)
        _show_modelled(source, how, modelled, out, top=top, match=match, by_kernel=roofline)
        return
    if captures:
        raise click.UsageError("--capture needs --roofline or --by op-args.")
    if modelled.config is not None:
        if device is not None:
            raise click.UsageError("--device chooses a device of the trace; what it ran on is --hardware.")
        if by not in ("name", "layer") or raw or memory or any((sort != "total", match, stream, between, counters)):
            raise click.UsageError("With --model-config, of the choices only --by layer, --top and --section fit.")
        by_layer = by == "layer"
        bounds = modelled.bounds(source, modelled.config, rank=rank, run=section, by_layer=by_layer, top=top)
        out.show(bounds)
        return
    modelled.refuse_alone()
    if modelled.hardware is not None and not is_setting("hardware"):
        raise click.UsageError("--hardware needs --model-config or --roofline; --device chooses a device of the trace.")
    chosen = {"device": device, "stream": stream, "rank": rank}
    selected = [column for column, value in chosen.items() if value is not None]
    more = () if counters is None else _TIED
    needed = None if between else _COLUMNS | {"launches": (*_COLUMNS["launches"], *selected, *more)}
    counted = None if counters is None else open_counters(source, counters)
    trace = source.open(needed, rank=None if between else rank)  # a window counts from the start of all ranks

    from inferometer.analyses.selection import Selection
    from inferometer.analyses.tables.kernels import kernel_table

    selection = Selection(device, stream, rank, between)
    table = kernel_table(
        trace,
        selection,
        sort=sort,
        top=top,
        match=match,
        raw=raw,
        copies=memory,
        section=section,
        by=cast("By", by),
        counters=counted,
    )
    out.show(table)
    if table.others and out.form in ("csv", "tsv"):
        others = ", ".join(str(other.section) for other in table.others)
        click.echo(f"Only section {table.section} is printed; --section gives the others: {others}.", err=True)


def _show_modelled(
    source: TraceArgument,
    how: Attributing,
    modelled: Modelled,
    out: Output,
    *,
    top: int | None,
    match: str | None,
    by_kernel: bool,
) -> None:
    """The kernels with bounds, or the ops with their arguments."""
    found = model_trace(source, how, device=modelled.ran_on())
    if by_kernel:
        from inferometer.analyses.roofline.kernel_bounds import kernel_bounds

        out.show(kernel_bounds(found, top=top, match=match))
    else:
        from inferometer.analyses.roofline.op_arguments import op_arguments

        out.show(op_arguments(found, top=top, match=match))
