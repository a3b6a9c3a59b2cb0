"""`inferometer timeline`: busy and idle, what is exposed, why devices wait, which rank lags."""

import sys

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import between_option, device_option, rank_option, stream_option, top_option

_PIPE_WIDTH = 60
_BESIDE = 36  # columns that rank, device and stream take next to the strip
_LEAST = 20


@command(
    "timeline",
    group="Look",
    help="Busy and idle time of devices, streams and ranks, and why they wait.",
    example="inferometer timeline trace.json.gz --between 20ms 35ms",
)
@source_argument
@top_option("Gaps", default=10)
@click.option(
    "--width",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    help=f"Slices of the strip; as the terminal has room for; in a pipe {_PIPE_WIDTH} at most.",
)
@device_option()
@stream_option(": what runs on others counts as idle")
@rank_option()
@between_option("this window (work that reaches into it is cut to it)")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    top: int,
    width: int | None,
    device: str | None,
    stream: int | None,
    rank: int | None,
    between: tuple[int, int] | None,
    out: Output,
) -> None:
    trace = source.open(rank=None if between else rank)

    from inferometer.analyses.selection import Selection
    from inferometer.analyses.timeline.strip import ASCII, BLOCKS
    from inferometer.analyses.timeline.timeline import find_timeline

    glyphs = BLOCKS if _can_print(BLOCKS.compute + BLOCKS.idle) else ASCII
    selection = Selection(device, stream, rank, between)
    out.show(find_timeline(trace, selection, top=top, width=width or _width(), glyphs=glyphs))


def _width() -> int:
    from inferometer.reports.screen.screen import screen_width

    room = max(_LEAST, screen_width() - _BESIDE)
    return room if sys.stdout.isatty() else min(room, _PIPE_WIDTH)


def _can_print(text: str) -> bool:
    """Whether stdout's encoding has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
