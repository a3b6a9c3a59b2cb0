"""`inferometer tree`: the call tree with device time."""

from typing import TYPE_CHECKING

import click
import msgspec

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.selection import Number, match_option

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.call_tree import TreeOptions
    from inferometer.analyses.launched_by.call_tree_nodes import Frames
    from inferometer.analyses.launched_by.site_times import Layers

_MIN_SHARE = 0.5


@command(
    "tree",
    group="Look",
    help="The call tree down to the kernels, with the device time of each node.\n\n"
    "With --base, FILE is the candidate and each node has its time in both runs and the change, the largest first. "
    "Times are those of a step where both runs mark their steps alike, else of the whole runs.",
    example="inferometer tree trace.json.gz --folded > trace.folded\n"
    "  inferometer tree slow.json.gz --base normal.json.gz",
)
@source_argument
@click.option("--base", metavar="BASE", help="Compare with this run, node by node.")
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
    help="Show nodes with at least this share of the device time; with --base, of the larger one.",
)
@match_option("nodes, and those above them,", of_kernels=" (of kernels whole or as it is decoded)")
@attributing_options
@click.option(
    "--folded",
    is_flag=True,
    help="Folded stacks, for flame graph tools: a;b;kernel "
    "NANOSECONDS; with --base two numbers, the base's first, for a differential flame graph.",
)
@click.option("--speedscope", is_flag=True, help="A profile for speedscope.")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    base: str | None,
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
    from inferometer.analyses.launched_by.call_tree import TreeOptions, call_tree
    from inferometer.analyses.launched_by.launched import NEEDED as LAUNCHED
    from inferometer.analyses.launched_by.summed_tree import NEEDED as SUMMED
    from inferometer.analyses.launched_by.summed_tree import summed_tree

    if (folded and speedscope) or ((folded or speedscope) and out.form):
        raise click.UsageError("--folded, --speedscope and the other forms are mutually exclusive.")
    asked = TreeOptions(layers, frames, how.code, depth, min_share / 100, match)
    if base is not None:
        if speedscope:
            raise click.UsageError("--speedscope has one value per stack: with --base, use --folded.")
        _show_difference(source, base, how, asked, out, folded=folded)
        return
    trace, found = how.open(source, {**LAUNCHED, **SUMMED})
    sums = summed_tree(trace, asked) if found.launches.is_empty() and how.is_all else None
    table = sums or call_tree(found, **msgspec.structs.asdict(asked))
    if folded or speedscope:
        from inferometer.reports.flames import render_folded, render_speedscope

        out.write((render_folded if folded else render_speedscope)(table))
    else:
        out.show(table)


def _show_difference(
    source: TraceArgument, base: str, how: Attributing, asked: "TreeOptions", out: Output, *, folded: bool
) -> None:
    from inferometer.analyses.compare.call_trees import NEEDED, compare_trees

    if base == source.path == "-":
        raise click.UsageError("Standard input can be FILE or --base, not both.")
    first = how.open(TraceArgument(base, source.format, source.limited), NEEDED)
    found = compare_trees(first, how.open(source, NEEDED), asked)
    if folded:
        from inferometer.reports.flames import render_folded_difference

        out.write(render_folded_difference(found))
    else:
        out.show(found)
