"""`inferometer launches`: device time by who launched it."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.selection import match_option, top_option

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.site_times import Layers
    from inferometer.analyses.launched_by.sites import By

_BY = ("op", "module", "frame", "user-frame", "span", "region")


@command(
    "launches",
    group="Explain",
    help="Device time by who launched it: ops, modules, Python frames, named ranges.",
    example="inferometer launches trace.json.gz --by module --layers pooled",
)
@source_argument
@click.option(
    "--by",
    type=click.Choice(_BY),
    help="The chain of ops, the module, the innermost frame, the innermost one in user code, the innermost named "
    "range, or the compiled region.  [default: op, or span where there are ranges and no ops]",
)
@click.option(
    "--layers",
    type=click.Choice(("apart", "pooled")),
    default="apart",
    show_default=True,
    help="A row for each layer's module, or one for all layers: model.layers.*.mlp; pooled ranges differ in numbers.",
)
@click.option("--each", is_flag=True, help="One row per launch, in order of time, with all that is known of it.")
@top_option("rows")
@match_option("rows")
@attributing_options
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    by: "By | None",
    layers: "Layers",
    each: bool,
    top: int | None,
    match: str | None,
    how: Attributing,
    out: Output,
) -> None:
    from inferometer.analyses.launched_by.each_launch import each_launch
    from inferometer.analyses.launched_by.site_times import launch_sites

    found = how.find(source)
    if each:
        out.show(each_launch(found, by=by, top=top, match=match))
    else:
        out.show(launch_sites(found, by=by, layers=layers, top=top, match=match))
