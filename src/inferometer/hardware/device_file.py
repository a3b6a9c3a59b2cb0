"""A device from a JSON file: one of ours, or one that a user wrote for a device that we don't have.

A file of our own is a good start: `inferometer hardware "H100 SXM" --json > mine.json`.
"""

from os import PathLike
from typing import Any

import msgspec

from inferometer.errors import FormatError
from inferometer.hardware.device import Device
from inferometer.side_files import read_side_file

_HINT = 'For one to start from: inferometer hardware "H100 SXM" --json'
_MOST_BYTES = 1 << 20


class _DeviceFile(Device, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device as `hardware NAME --json` prints it: `schema` says that it is one."""

    schema: dict[str, Any] | None = None


def read_device(path: str | PathLike[str]) -> Device:
    """The device that a file declares; its fields are those of `Device`.

    Raises:
        InputError: The file can't be read.
        FormatError: It isn't JSON, a field is missing, misspelt or of another type, a unit is another than the field's,
            or a value is far from any that its unit allows.
    """
    return decode_device(read_side_file(path, most=_MOST_BYTES, pipe=True), str(path))


def decode_device(data: bytes, where: str) -> Device:
    """As `read_device`, from bytes; `where` begins the message of an error."""
    try:
        found = msgspec.json.decode(data, type=_DeviceFile)
    except msgspec.DecodeError as error:  # what isn't JSON, and what isn't a device
        raise FormatError(f"{where}: expected a device: {error}", hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: expected JSON in UTF-8, found other bytes", hint=_HINT) from error
    return Device(**{name: getattr(found, name) for name in Device.__struct_fields__})
