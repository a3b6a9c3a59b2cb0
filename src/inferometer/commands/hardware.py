"""`inferometer hardware`: what devices can do at most, and which of them a trace ran on."""

from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import FORMATS, Output, Source, command, output_options

if TYPE_CHECKING:
    from inferometer.analyses.result import Result


def _to_source(ctx: click.Context, param: click.Parameter, value: str | None) -> Source | None:
    return None if value is None else Source(value)


@command(
    "hardware",
    help="What devices can do at most: peaks, bandwidths, sizes, clocks, each with its source.\n\n"
    "Without NAME, all devices that there is data of. A device of your own comes from a JSON file; the one that --json "
    "prints of a NAME is such a file.",
    example='inferometer hardware "H100 SXM"',
)
@click.argument("name", required=False)
@click.option("--of", "source", metavar="FILE", callback=_to_source, help="The devices that this trace ran on.")
@click.option("--device-file", metavar="FILE", help="A JSON file with a device of your own, before those that we have.")
@output_options(*FORMATS)
def run(name: str | None, source: Source | None, device_file: str | None, out: Output) -> None:
    if name is not None and source is not None:
        raise click.UsageError("NAME and --of can't go together: choose one.")
    out.show(_answer(name, source, device_file))


def _answer(name: str | None, source: Source | None, device_file: str | None) -> "Result":
    from inferometer.analyses.hardware import NEEDED, describe_device, find_traced_devices, list_devices
    from inferometer.hardware.device_file import read_device
    from inferometer.hardware.known import devices, require_device, with_own

    known: Any = with_own(read_device(device_file)) if device_file else devices()
    if source is not None:
        return find_traced_devices(source.open(NEEDED), known)
    return list_devices(known) if name is None else describe_device(require_device(name, among=known))
