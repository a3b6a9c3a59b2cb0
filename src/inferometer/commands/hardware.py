"""`inferometer hardware`: what devices can do at most, which of them a trace ran on, what the one at hand reaches."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options
from inferometer.commands.options.selection import hardware_file_option

if TYPE_CHECKING:
    from inferometer.analyses.result import Result


class _Measuring(msgspec.Struct, frozen=True):
    """The options that only --measure has."""

    on: str | None
    output: str | None
    force: bool
    quick: bool


def _to_source(ctx: click.Context, param: click.Parameter, value: str | None) -> TraceArgument | None:
    return None if value is None else TraceArgument(value)


@command(
    "hardware",
    group="Bench",
    help="What devices can do at most: peaks, bandwidths, sizes, clocks, each with its source.\n\n"
    "Without NAME, all devices that there is data of. A device of your own comes from a JSON file; the one that --json "
    "prints of a NAME is such a file.\n\n"
    "--measure times copies, products and launches on the device at hand, sets them next to its datasheet, and writes "
    "such a file of it: bounds are then what this machine reaches, not what is promised. A GPU needs PyTorch.",
    example='inferometer hardware "H100 SXM"',
)
@click.argument("name", required=False)
@click.option("--of", "source", metavar="FILE", callback=_to_source, help="The devices that this trace ran on.")
@hardware_file_option("A JSON file with a device of your own, before those that we have.")
@click.option("--measure", is_flag=True, help="Measure the device at hand and write its file. Takes about 20 s.")
@click.option("--on", metavar="DEVICE", help="With --measure: cpu, gpu or gpu:1; the first GPU, or else the CPU.")
@click.option("--quick", is_flag=True, help="With --measure: a few seconds in all, less exact.")
@click.option("-o", "--output", metavar="OUT", help="With --measure: the file to make; NAME.json in this folder.")
@click.option("--force", is_flag=True, help="With --measure: replace OUT if it exists.")
@output_options(*FORMATS)
def run(
    name: str | None, source: TraceArgument | None, hardware_file: str | None, measure: bool, out: Output, **how: Any
) -> None:
    measuring = _Measuring(**how)
    if name is not None and source is not None:
        raise click.UsageError("NAME and --of are mutually exclusive.")
    if measure and (name is not None or source is not None or hardware_file is not None):
        raise click.UsageError("--measure is of the device at hand: NAME, --of and --hardware-file can't go with it.")
    if not measure and measuring != _Measuring(None, None, force=False, quick=False):
        raise click.UsageError("--on, --quick, --output and --force go with --measure alone.")
    out.show(_measure(measuring) if measure else _answer(name, source, hardware_file))


def _answer(name: str | None, source: TraceArgument | None, hardware_file: str | None) -> "Result":
    from inferometer.analyses.hardware.devices import NEEDED, describe_device, find_traced_devices, list_devices
    from inferometer.hardware.device_file import read_device
    from inferometer.hardware.known import devices, require_device, with_own

    known: Any = with_own(read_device(hardware_file)) if hardware_file else devices()
    if source is not None:
        return find_traced_devices(source.open(NEEDED), known)
    return list_devices(known) if name is None else describe_device(require_device(name, among=known))


def _measure(how: _Measuring) -> "Result":
    from inferometer.analyses.hardware.devices import name_fact
    from inferometer.analyses.hardware.measured import describe_measured
    from inferometer.commands.options.progress import working
    from inferometer.errors import printable
    from inferometer.hardware.measure.measure import (
        DEVICE_FILE,
        encode_device,
        file_name,
        find_subject,
        measure_subject,
    )
    from inferometer.hardware.measure.timing import FULL, QUICK
    from inferometer.new_files import NewFile

    subject = find_subject(how.on)
    path = Path(how.output or file_name(subject))
    place = NewFile(path, force=how.force, kind=DEVICE_FILE)  # refuses before the time is spent
    with working() as say:
        measured = measure_subject(
            subject, QUICK if how.quick else FULL, on_fact=lambda fact: say(f"a measurement: {name_fact(fact)}")
        )
    with place as file:
        file.write_bytes(encode_device(measured.device))
    return describe_measured(measured, printable(str(path)))
