"""`inferometer operators`: the catalogue of production operators, and one with every shape and every bound."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, command, output_options
from inferometer.commands.options.rooflines import device_for_bounds
from inferometer.commands.options.selection import hardware_file_option, hardware_option
from inferometer.errors import printable

if TYPE_CHECKING:
    from inferometer.hardware.device import Device

_DEFAULT = "H100 SXM"


@command(
    "operators",
    group="Bench",
    help="Operators that cost time in production: importance, shapes, and how fast a device allows them to be.\n\n"
    "With NAME, every published shape of one operator with each bound (dependency, matrix, vector, special, memory), "
    "which of them binds, and S where a deployed kernel was timed.\n\n"
    "With --shapes, those of a file that `roofline --to-bench` or `fleet importance -o` wrote, with their weights.",
    example="inferometer operators rms_norm --hardware XPU-A",
)
@click.argument("name", required=False)
@hardware_option(f"Bound the shapes on this device.  [default: {_DEFAULT}]")
@hardware_file_option("Bound them on the device of this file; see `hardware --measure`.")
@click.option(
    "--published-bounds", is_flag=True, help="Bounds and S as they were published: max(W / peak, Q / bandwidth)."
)
@click.option("--shapes", metavar="FILE", help="Shapes of this file in place of the published ones.")
@output_options(*FORMATS)
def run(
    name: str | None,
    hardware: str | None,
    hardware_file: str | None,
    published_bounds: bool,
    shapes: str | None,
    out: Output,
) -> None:
    if shapes is not None:
        if name is not None or published_bounds:
            raise click.UsageError("--shapes can't be used with NAME or --published-bounds.")
        from inferometer.analyses.operators.given_shapes import bound_given
        from inferometer.bench.exchange.workloads import read_given

        out.show(bound_given(printable(shapes), read_given(Path(shapes)), _choose_device(hardware, hardware_file)))
        return
    from inferometer.analyses.operators.catalogue import describe_operator, list_operators
    from inferometer.operators import operators, require_operator

    chosen = _choose_device(hardware, hardware_file)
    every = list(operators().values())
    if name is None:
        out.show(list_operators(every, chosen, published=published_bounds))
    else:
        out.show(describe_operator(require_operator(name), every, chosen, published=published_bounds))


def _choose_device(name: str | None, file: str | None) -> "Device":
    """The device of a file or of a name, by default one that many have.

    Raises:
        click.UsageError: Both are given.
        InputError: There is none of that name, or the file is no device.
    """
    from inferometer.hardware.known import require_device

    return device_for_bounds(name, file) or require_device(_DEFAULT)
