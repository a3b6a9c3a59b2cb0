"""`inferometer tree`: the call tree with device time."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.selection import Number, match_option

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.call_tree_nodes import Frames
    from inferometer.analyses.launched_by.site_times import Layers

_MIN_SHARE = 0.5


@command(
    "tree",
    help="The call tree down to the kernels, with the device time of each node.",
    example="inferometer tree trace.json.gz --folded > trace.folded",
)
@source_argument
@click.option(
    "--layers",
    type=click.Choice(("pooled", "apart")),
    default="pooled",
    show_default=True,
    help="One node for all layers (layers.*) and for ranges that differ in numbers, or each its own.",
)
@click.option(
    "--frames",
    type=click.Choice(("auto", "none", "user", "all")),
    default="auto",
    show_default=True,
    help="Python frames in the tree: those of user code where calls part, none, all of user code, or all.",
)
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Show so many levels.")
@click.option(
    "--min-share",
    type=Number(min=0, max=100),
    metavar="PERCENT",
    default=_MIN_SHARE,
    show_default=True,
    help="Show nodes with at least this share of the device time.",
)
@match_option("nodes, and those above them,")
@attributing_options
@click.option("--folded", is_flag=True, help="Folded stacks, for flame graph tools: a;b;kernel NANOSECONDS.")
@click.option("--speedscope", is_flag=True, help="A profile for speedscope.")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    layers: "Layers",
    frames: "Frames",
    depth: int | None,
    min_share: float,
    match: str | None,
    how: Attributing,
    folded: bool,
    speedscope: bool,
    out: Output,
) -> None:
    from inferometer.analyses.launched_by.call_tree import call_tree

    if (folded and speedscope) or ((folded or speedscope) and out.form):
        raise click.UsageError("--folded, --speedscope and the other forms are mutually exclusive.")
    found = how.find(source)
    table = call_tree(
        found, layers=layers, frames=frames, code=how.code, depth=depth, min_share=min_share / 100, match=match
    )
    if folded or speedscope:
        from inferometer.reports.flames import render_folded, render_speedscope

        out.write((render_folded if folded else render_speedscope)(table))
    else:
        out.show(table)
