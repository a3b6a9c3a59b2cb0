"""`hardware --measure`: what the device at hand reaches."""

from typing import Annotated

from inferometer.hardware.device import Device, Quantity
from inferometer.reports.schemas.fields import Document, Part, Remarks, says


class Measurement(Part):
    """One measured value."""

    fact: Annotated[str, says("Which value of a device, such as `memory_bandwidth` or `matrix.bf16`.")]
    quantity: Annotated[Quantity, says("The value, with its unit.")]
    p10: Annotated[float, says("10th percentile, in that unit.")]
    p90: Annotated[float, says("90th percentile, in that unit.")]
    samples: Annotated[int, says("Samples.")]
    calls: Annotated[int, says("Calls of one sample.")]
    spread: Annotated[float, says("From p10 to p90, over the value.")]
    clock_hz: Annotated[float | None, says("Clock while it ran, Hz; null where it isn't known.")]
    datasheet: Annotated[float | None, says("What the datasheet says, in that unit; null where none is known.")]
    fraction: Annotated[float | None, says("Measured over datasheet.")]


class MeasuredDevice(Document):
    """What the device at hand reaches."""

    file: Annotated[str, says("The device file that was written.")]
    on: Annotated[str, says("Where it was measured: `cpu`, `cuda:0`.")]
    library: Annotated[str, says("What ran the measurements.")]
    date: Annotated[str, says("The day, ISO 8601.")]
    device: Annotated[Device, says("The device as the file has it; what isn't known is absent.")]
    measurements: list[Measurement]
    not_measured: Annotated[dict[str, str], says("Values that weren't, and why. These words may change.")]
    remarks: Remarks


DOCUMENT = MeasuredDevice
