"""Devices: what each can do at most, with the source of every value.

from inferometer.hardware import find_device
find_device("NVIDIA H100 80GB HBM3").memory_bandwidth.value

`hardware/devices/*.json` holds one device a file. Every value has a unit, a kind (datasheet, measured, derived) and a
source; what isn't known is absent. `find_device` takes a name only whole, and only where multiprocessors and memory,
if the trace shows them, agree; a name that several devices share gives none.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.hardware.device import Device as Device
    from inferometer.hardware.device import Quantity as Quantity
    from inferometer.hardware.device_file import read_device as read_device
    from inferometer.hardware.known import devices as devices
    from inferometer.hardware.known import find_candidates as find_candidates
    from inferometer.hardware.known import find_device as find_device

_WHERE = {
    "Device": "device",
    "Quantity": "device",
    "devices": "known",
    "find_candidates": "known",
    "find_device": "known",
    "read_device": "device_file",
}
__all__ = ["Device", "Quantity", "devices", "find_candidates", "find_device", "read_device"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
