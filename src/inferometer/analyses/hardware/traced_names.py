"""What a file calls the devices that its launches ran on, and what one without a name looks like."""

from collections.abc import Sequence

from inferometer.hardware.device import Device
from inferometer.hardware.known import infer_devices
from inferometer.trace.facts import Device as TracedDevice
from inferometer.trace.facts import Facts
from inferometer.units import format_bytes, format_count

_NO_NAMES = frozenset({"AMD Radeon Graphics"})  # what ROCm says of a device whose name it doesn't know


def describe_devices(about: Facts, used: Sequence[str | None], rank: int | None = None) -> dict[str, TracedDevice]:
    """The file's description of each device of `rank`, under the text that its launches carry.

    A file with one device describes it whatever number its launches carry (ROCm's differ).
    """
    described = {device.device: device for device in about.devices if device.rank in (None, rank)}
    strangers = {device for device in used if device is not None} - set(described)
    if len(described) == len(strangers) == 1 and not set(described) & set(used):
        described = dict.fromkeys(strangers, next(iter(described.values())))
    return described


def name_devices(about: Facts, used: Sequence[str | None], rank: int | None = None) -> dict[str, str | None]:
    """Product names of the devices of `rank`, as `describe_devices` finds them."""
    return {text: device.name for text, device in describe_devices(about, used, rank).items()}


def infer_traced(traced: TracedDevice, among: Sequence[Device] | None = None) -> tuple[Device, ...]:
    """The devices with the properties of one that has no name of its own: to be reported as inferred."""
    if traced.name is not None and traced.name not in _NO_NAMES:
        return ()
    return infer_devices(
        multiprocessors=traced.multiprocessors,
        memory_bytes=traced.memory_bytes,
        compute_capability=traced.compute_capability,
        warp_size=traced.warp_size,
        among=among,
    )


def say_properties(traced: TracedDevice) -> str:
    """`304 multiprocessors, compute 9.4, warp size 64, 191.984 GiB`: what is reported; empty where nothing is."""
    stated = (
        (traced.multiprocessors, f"{format_count(traced.multiprocessors)} multiprocessors"),
        (traced.compute_capability, f"compute {traced.compute_capability}"),
        (traced.warp_size, f"warp size {traced.warp_size}"),
        (traced.memory_bytes, format_bytes(traced.memory_bytes, binary=True)),
    )
    return ", ".join(text for value, text in stated if value is not None)


def say_unnamed(traced: TracedDevice | None) -> str:
    """`unnamed; 304 multiprocessors, …: looks like MI300X (inferred)`, as far as the file shows."""
    properties = "" if traced is None else say_properties(traced)
    if traced is None or not properties:
        return "unnamed"
    alike = " or ".join(device.name for device in infer_traced(traced))
    return f"unnamed; {properties}" + (f": looks like {alike} (inferred)" if alike else "")
