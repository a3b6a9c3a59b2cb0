"""`leaderboard`: the operator catalogue with bounds and published figures, on several devices."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.hardware.device import Device
from inferometer.reports.schemas.fields import Document, Part, says
from inferometer.reports.schemas.operators import OperatorsOnDevice
from inferometer.reports.schemas.report import Page

PublishedBounds = Annotated[dict[str, float], says("The published bound by device, ns.")]
PublishedBound = Annotated[float | None, says("The published bound with this device's peaks, ns.")]
OwnBound = Annotated[float | None, says("Our bound, ns.")]
Deployed = Annotated[float | None, says("Published time of a deployed kernel, ns.")]


class MiddleShape(Part):
    """The operator's middle shape."""

    index: Annotated[int, says("Its number.")]
    arithmetic_intensity: Annotated[float, says("FLOPs over bytes.")]
    published_t_sol_ns: PublishedBounds
    t_sol_ns: PublishedBound
    bound_ns: OwnBound
    binding: Annotated[str, says("Which bound that is, or `unknown`.")]
    t_prod_ns: Deployed


class Medians(Part):
    """Medians over all shapes."""

    arithmetic_intensity: Annotated[float, says("FLOPs over bytes.")]
    published_t_sol_ns: PublishedBounds
    t_sol_ns: PublishedBound
    bound_ns: OwnBound
    t_prod_ns: Deployed


class Headline(Part):
    """An operator in one row."""

    operator: Annotated[str, says("Its name.")]
    regime: Annotated[str, says("`C` compute, `M` memory, `I` in between.")]
    middle: MiddleShape
    median: Medians


class Platform(OperatorsOnDevice):
    """The catalogue on one device."""

    values: Annotated[Device, says("What the device can do; what isn't known is absent.")]
    headlines: Annotated[list[Headline], says("In the order of `operators`.")]


class Leaderboard(Document):
    """The catalogue on several devices; the first is the one that deployed kernels were timed on."""

    source: Annotated[str, says("Where the catalogue is from.")]
    operators: Annotated[int, says("How many operators.")]
    shapes: Annotated[int, says("How many shapes.")]
    profiles: Annotated[int, says("How many published profiles.")]
    importance_published_total: Annotated[float, says("Sum of the published shares: more than 1, as profiles overlap.")]
    devices: list[Platform]
    page: Annotated[Page | UnsetType, says("With `-o`: the page that was written.")] = UNSET


DOCUMENT = Leaderboard
