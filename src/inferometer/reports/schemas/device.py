"""`hardware NAME`: what one device can do, with sources. As a file, `--hardware-file` takes it."""

from inferometer.hardware.device import Device
from inferometer.reports.schemas.fields import SchemaMark


class DeviceSheet(Device, frozen=True, kw_only=True):
    """What one device can do; every value has a unit and a source. What isn't known is absent."""

    schema: SchemaMark


DOCUMENT = DeviceSheet
