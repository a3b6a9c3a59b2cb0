"""`hardware --of`: the devices that a trace ran on."""

from typing import Annotated

from inferometer.hardware.device import Device
from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says
from inferometer.trace.facts import Device as FileDevice


class TracedDevice(Part):
    """A device of the trace."""

    traced: Annotated[FileDevice, says("What the trace says of it; what it doesn't say is absent.")]
    launches: Annotated[int, says("Launches on it.")]
    device: Annotated[Device | None, says("Which of the known ones that is; null where it isn't sure.")]
    candidates: Annotated[list[str], says("Known ones that may be meant.")]
    inferred: Annotated[list[str], says("Known ones that it looks like, where the trace has no name.")]


class TracedDevices(Document):
    """The devices that a trace ran on."""

    source: Source
    devices: list[TracedDevice]
    remarks: Remarks
    losses: Losses


DOCUMENT = TracedDevices
