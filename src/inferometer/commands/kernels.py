"""`inferometer kernels`: the table of kernel time."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, Source, command, output_options, source_argument

if TYPE_CHECKING:
    from inferometer.analyses.kernels import SortKey

_SORT_KEYS: dict[str, "SortKey"] = {  # with Nsight's words beside ours
    "total": "total",
    "count": "count",
    "instances": "count",
    "mean": "mean",
    "avg": "mean",
    "median": "median",
    "med": "median",
    "min": "min",
    "max": "max",
    "stddev": "stddev",
    "name": "name",
}


@command(
    "kernels", help="Time by kernel, as Nsight Systems prints it.", example="inferometer kernels trace.json.gz --top 20"
)
@source_argument
@click.option(
    "--sort",
    type=click.Choice(tuple(_SORT_KEYS)),
    default="total",
    show_default=True,
    help="Largest first; names from A to Z.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show the first N kernels.")
@click.option("--match", metavar="REGEX", help="Show kernels whose name the regular expression finds.")
@click.option("--device", metavar="DEVICE", help="Only this device: 0 or gpu:0.")
@click.option("--stream", type=int, metavar="N", help="Only this stream.")
@click.option("--rank", type=int, metavar="N", help="Only this rank.")
@click.option(
    "--between",
    nargs=2,
    metavar="T1 T2",
    help="Only launches that begin in this window, in seconds from "
    "the trace's start or with a unit: --between 1.5 2, --between 20ms 35ms.",
)
@click.option("--raw", is_flag=True, help="Names as in the file; otherwise C++ names are demangled.")
@click.option("--memory", is_flag=True, help="Memory copies and sets as rows of their own.")
@output_options(*FORMATS)
def run(
    source: Source,
    sort: str,
    top: int | None,
    match: str | None,
    device: str | None,
    stream: int | None,
    rank: int | None,
    between: tuple[str, str] | None,
    raw: bool,
    memory: bool,
    out: Output,
) -> None:
    from inferometer.units import parse_duration

    window = None
    if between:
        window = (parse_duration(between[0], default_unit="s"), parse_duration(between[1], default_unit="s"))
    trace = source.open(None if window else {"launches"})

    from inferometer.analyses.kernels import kernel_table
    from inferometer.analyses.selection import Selection

    selection = Selection(device, stream, rank, window)
    key: SortKey = _SORT_KEYS[sort]
    out.show(kernel_table(trace, selection, sort=key, top=top, match=match, raw=raw, copies=memory))
