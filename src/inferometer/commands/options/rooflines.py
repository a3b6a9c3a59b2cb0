"""What commands that model a trace's ops open, and the device that they bound by."""

from typing import TYPE_CHECKING

import click

from inferometer.commands.base import TraceArgument
from inferometer.commands.options.attribution import Attributing
from inferometer.commands.options.counted import open_counters
from inferometer.commands.settings import is_setting

if TYPE_CHECKING:
    from inferometer.analyses.roofline.table import Roofline
    from inferometer.hardware.device import Device
    from inferometer.operators.framework.lengths import Lengths


def model_trace(
    source: TraceArgument,
    how: Attributing,
    *,
    device: "Device | None" = None,
    lengths: "Lengths | None" = None,
    counters: str | None = None,
    output_code: str | None = None,
    top: int | None = None,
) -> "Roofline":
    """Open the source, its captures and the file of counters, and set each op next to its bound.

    Raises:
        click.UsageError: Standard input is asked for twice.
        InputError: `counters` holds none that are read, or `output_code` no kernel.
    """
    from inferometer.analyses.roofline.table import NEEDED, roofline
    from inferometer.operators.framework.output_code import read_output_code

    counted = None if counters is None else open_counters(source, counters, *how.captures)
    sources = None if output_code is None else read_output_code(output_code)
    trace, found = how.open(source, NEEDED, with_op_calls=True)
    return roofline(
        found,
        trace,
        selection=how.selection,
        device=device,
        lengths=lengths,
        counters=counted,
        output_code=sources,
        top=top,
    )


def device_for_bounds(name: str | None, file: str | None = None) -> "Device | None":
    """The device of a name or a file; None where neither is given.

    Raises:
        click.UsageError: Both are given.
        InputError: There is none of that name, or the file is no device.
    """
    from inferometer.hardware.device_file import read_device
    from inferometer.hardware.known import require_device

    if name is not None and file is not None and not is_setting("hardware"):
        raise click.UsageError("--hardware and --hardware-file are mutually exclusive.")
    if file is not None:
        return read_device(file)
    return None if name is None else require_device(name)
