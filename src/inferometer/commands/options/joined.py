"""--execution-trace: arguments of ops that a profile lacks, from an execution trace of the same run."""

from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import replace

from inferometer.commands.base import TraceArgument


def execution_trace_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--execution-trace; handed on as `execution_trace`."""
    return click.option(
        "--execution-trace",
        metavar="FILE",
        help="Shapes of ops that FILE lacks, from PyTorch's ExecutionTraceObserver in the same run.",
    )(function)


def with_arguments(source: TraceArgument, execution_trace: str | None) -> TraceArgument:
    """`source`, whose ops get their arguments from there when it is opened.

    Raises:
        click.UsageError: Standard input is asked for twice.
    """
    if execution_trace == source.path == "-":
        raise click.UsageError("Standard input can be FILE or --execution-trace, not both.")
    return replace(source, execution_trace=execution_trace)
