"""`inferometer kernels`: the table of kernel time."""

from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

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
    from inferometer.analyses.result import Result
    from inferometer.analyses.rows import SortKey
    from inferometer.analyses.tables.kernels import KernelTable

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
def run(source: TraceArgument, out: Output, **options: Any) -> None:
    asked = _Asked(**options)
    _refuse_mixed(asked)
    if asked.by_ops:
        out.show(_by_ops(source, asked))
    elif asked.modelled.config is not None:
        by_layer = asked.by == "layer"
        config, run = asked.modelled.config, asked.section
        out.show(asked.modelled.bounds(source, config, rank=asked.rank, run=run, by_layer=by_layer, top=asked.top))
    else:
        table = _table(source, asked)
        out.show(table)
        if table.others and out.form in ("csv", "tsv"):
            others = ", ".join(str(other.section) for other in table.others)
            click.echo(f"Only section {table.section} is printed; --section gives the others: {others}.", err=True)


class _Asked(msgspec.Struct, frozen=True):
    """The options, by the names that the command hands on."""

    by: str
    sort: "SortKey"
    top: int | None
    match: str | None
    device: str | None
    stream: int | None
    rank: int | None
    between: tuple[int, int] | None
    raw: bool
    memory: bool
    roofline: bool
    captures: tuple[str, ...]
    counters: str | None
    section: int | None
    modelled: Modelled

    @property
    def by_ops(self) -> bool:
        """Whether launches are tied to the ops that launched them, for bounds or arguments."""
        return self.roofline or self.by == "op-args"


def _refuse_mixed(asked: _Asked) -> None:
    """Refuse options that don't go together."""
    by, section, sort = asked.by, asked.section, asked.sort
    if asked.counters is not None and (by != "name" or asked.roofline or asked.memory or section is not None):
        raise click.UsageError("--counters and --by, --roofline, --memory or --section are mutually exclusive.")
    if asked.by_ops:
        if asked.roofline and by != "name":
            raise click.UsageError("--roofline and --by are mutually exclusive.")
        if asked.raw or asked.memory or section is not None or sort != "total" or asked.modelled.config is not None:
            raise click.UsageError(
                "With --roofline or --by op-args, of the choices only --top, --match, --capture, --hardware and the "
                "selection of launches fit."
            )
        return
    if asked.captures:
        raise click.UsageError("--capture needs --roofline or --by op-args.")
    if asked.modelled.config is not None:
        if asked.device is not None:
            raise click.UsageError("--device chooses a device of the trace; what it ran on is --hardware.")
        others = (asked.match, asked.stream, asked.between, asked.counters)
        is_mixed = asked.raw or asked.memory or sort != "total" or any(each is not None for each in others)
        if by not in ("name", "layer") or is_mixed:
            raise click.UsageError("With --model-config, of the choices only --by layer, --top and --section fit.")
        return
    asked.modelled.refuse_alone()
    if asked.modelled.hardware is not None and not is_setting("hardware"):
        raise click.UsageError("--hardware needs --model-config or --roofline; --device chooses a device of the trace.")


def _by_ops(source: TraceArgument, asked: _Asked) -> "Result":
    """The kernels with the bounds of their ops, or the ops with their arguments."""
    how = Attributing(asked.captures, (), (), asked.device, asked.stream, asked.rank, asked.between)
    found = model_trace(source, how, device=asked.modelled.ran_on())
    if asked.roofline:
        from inferometer.analyses.roofline.kernel_bounds import kernel_bounds

        return kernel_bounds(found, top=asked.top, match=asked.match)
    from inferometer.analyses.roofline.op_arguments import op_arguments

    return op_arguments(found, top=asked.top, match=asked.match)


def _table(source: TraceArgument, asked: _Asked) -> "KernelTable":
    chosen = {"device": asked.device, "stream": asked.stream, "rank": asked.rank}
    selected = [column for column, value in chosen.items() if value is not None]
    tied = () if asked.counters is None else _TIED
    needed = None if asked.between else _COLUMNS | {"launches": (*_COLUMNS["launches"], *selected, *tied)}
    counters = None if asked.counters is None else open_counters(source, asked.counters)
    rank = None if asked.between else asked.rank  # a window counts from the start of all ranks
    trace = source.open(needed, rank=rank)  # before polars is imported: it is, while the file is read

    from inferometer.analyses.selection import Selection
    from inferometer.analyses.tables.kernels import kernel_table

    return kernel_table(
        trace,
        Selection(asked.device, asked.stream, asked.rank, asked.between),
        sort=asked.sort,
        top=asked.top,
        match=asked.match,
        raw=asked.raw,
        copies=asked.memory,
        section=asked.section,
        by=cast("By", asked.by),
        counters=counters,
    )
