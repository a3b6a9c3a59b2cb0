"""`hardware`: the devices that there is data of."""

from typing import Annotated

from inferometer.hardware.device import Device
from inferometer.reports.schemas.fields import Document, says


class Hardware(Document):
    """The devices that there is data of."""

    devices: Annotated[list[Device], says("What isn't known of one is absent.")]


DOCUMENT = Hardware
