"""--counters, a file of what a profiler counted of the kernels of a trace."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import TraceArgument

if TYPE_CHECKING:
    from inferometer.trace.trace import Trace


def counters_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--counters, or --ncu; handed on as `counters`."""
    return click.option(
        "--counters",
        "--ncu",
        "counters",
        metavar="FILE",
        help="Counters of the same kernels, to set next to them: what `ncu --csv` printed, or a .ncu-rep.",
    )(function)


def open_counters(source: TraceArgument, path: str, *others: str) -> "Trace":
    """What counters of kernels are read from.

    Args:
        source: The trace that they are set next to.
        path: The file of counters.
        others: Further files that the command was given.

    Raises:
        click.UsageError: Standard input is asked for twice.
    """
    from inferometer.analyses.counters.join import NEEDED

    if path == "-" and "-" in (source.path, *others):
        raise click.UsageError("Standard input can be one file only: FILE, a --capture or --counters.")
    return TraceArgument(path, limited=source.limited).open(NEEDED)
