"""The whole catalogue on several devices: every operator, shape and bound, and the rows of the published page.

The platforms that bounds were published for come first, the one whose deployed kernels were timed before the other;
then any device that the reader asks for. A headline row is published of each operator's middle shape by its index,
whatever that shape is; next to it stands the row of true medians. Leaves out results of candidates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.operators.catalogue import Catalogued, OperatorList, list_operators
from inferometer.analyses.operators.published import (
    DEPLOYED,
    PLATFORMS,
    Headline,
    headline,
    median_headline,
    published_bound_ns,
    regime_of,
    upper_median,
)
from inferometer.analyses.result import Result
from inferometer.hardware.device import Device
from inferometer.operators.operator import Operator
from inferometer.operators.shapes import PROFILES
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

_SCHEMA = {
    "operator": pl.String,
    "importance": pl.Float64,
    "importance_published": pl.Float64,
    "sol_fraction": pl.Float64,
    "published_fraction": pl.Float64,
    "binding": pl.String,
    "below_launch": pl.Int64,
    "shapes": pl.Int64,
    "regime": pl.String,
    "dtype": pl.String,
    "phase": pl.String,
    "id": pl.String,
    "profiles": pl.Int64,
}


@dataclass(frozen=True)
class OwnHeadline:
    """What a device adds to a headline row: bounds of the middle shape and medians over all shapes, ns.

    `t_sol_ns` is the published bound with this device's peaks, `bound_ns` is ours; None where no peak is known.
    """

    t_sol_ns: float | None
    bound_ns: float | None
    binding: str
    median_t_sol_ns: float | None
    median_bound_ns: float | None


@dataclass(frozen=True)
class HeadlineRow:
    """An operator's row: of the middle shape, of medians, and on one device."""

    operator: Operator
    middle: Headline
    median: Headline
    own: OwnHeadline

    def as_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator.name,
            "regime": self.middle.regime,
            "middle": {
                "index": self.middle.index,
                "arithmetic_intensity": self.middle.arithmetic_intensity,
                "published_t_sol_ns": self.middle.t_sol_ns,
                "t_sol_ns": self.own.t_sol_ns,
                "bound_ns": self.own.bound_ns,
                "binding": self.own.binding,
                "t_prod_ns": self.middle.t_prod_ns,
            },
            "median": {
                "arithmetic_intensity": self.median.arithmetic_intensity,
                "published_t_sol_ns": self.median.t_sol_ns,
                "t_sol_ns": self.own.median_t_sol_ns,
                "bound_ns": self.own.median_bound_ns,
                "t_prod_ns": self.median.t_prod_ns,
            },
        }


@dataclass(frozen=True)
class Platform:
    """A device with the catalogue's operators on it, and their headline rows in the same order."""

    listed: OperatorList
    headlines: tuple[HeadlineRow, ...]

    @property
    def device(self) -> Device:
        """Whose bounds these are."""
        return self.listed.device

    @property
    def operators(self) -> tuple[Catalogued, ...]:
        """The most important first."""
        return self.listed.operators

    @property
    def is_timed(self) -> bool:
        """Whether deployed kernels were timed on it."""
        return self.device.name == DEPLOYED

    def as_json(self) -> dict[str, Any]:
        return {
            **self.listed.as_json(),
            "values": msgspec.to_builtins(self.device),
            "headlines": [row.as_json() for row in self.headlines],
        }


@dataclass(frozen=True)
class Leaderboard(Result):
    """The catalogue's operators, the most important first, on each platform; the timed one is the first."""

    view: ClassVar[str] = "leaderboard"
    platforms: tuple[Platform, ...]
    losses: Losses

    @property
    def timed(self) -> Platform:
        """The platform that deployed kernels were timed on: S is of its bounds."""
        return self.platforms[0]

    @property
    def shapes(self) -> int:
        """Number of shapes of all operators."""
        return sum(len(each.shapes) for each in self.timed.operators)

    @property
    def source(self) -> str:
        """Where the catalogue is from; "" where it is empty."""
        return next((each.operator.catalogue().source for each in self.timed.operators), "")

    @property
    def published_total(self) -> float:
        """What the published importance of all adds up to: more than 1, as profiles overlap."""
        return sum(each.operator.catalogue().importance for each in self.timed.operators)

    def to_polars(self) -> pl.DataFrame:
        """One row per operator, of the timed platform."""
        return pl.DataFrame([_row(each) for each in self.timed.operators], schema=_SCHEMA)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "operators": len(self.timed.operators),
            "shapes": self.shapes,
            "profiles": PROFILES,
            "importance_published_total": self.published_total,
            "devices": [platform.as_json() for platform in self.platforms],
        }


def make_leaderboard(
    operators: Sequence[Operator], devices: Sequence[Device], device_of: Callable[[str], Device]
) -> Leaderboard:
    """The catalogue on the published platforms and on `devices`.

    Args:
        operators: The most important first; those without published shapes are passed over.
        devices: Others, in order; one that is there already is passed over.
        device_of: The device of a name, for the published platforms.
    """
    published = [device_of(name) for name in sorted(PLATFORMS, key=lambda name: name != DEPLOYED)]
    every = {device.name: device for device in (*published, *devices)}
    known = [operator for operator in operators if operator.catalogue().shapes]
    rows = {each.name: (headline(each, device_of), median_headline(each, device_of)) for each in known}
    platforms = [_platform(known, device, rows) for device in every.values()]
    return Leaderboard(tuple(platforms), Losses(ALL_TABLES))


def _platform(operators: Sequence[Operator], device: Device, rows: Mapping[str, tuple[Headline, Headline]]) -> Platform:
    listed = list_operators(operators, device)
    return Platform(listed, tuple(_headline_row(each, device, *rows[each.operator.name]) for each in listed.operators))


def _headline_row(each: Catalogued, device: Device, published: Headline, median: Headline) -> HeadlineRow:
    operator, middle = each.operator, each.shapes[len(each.shapes) // 2]
    own = OwnHeadline(
        published_bound_ns(operator, middle.shape, device),
        middle.bounds.bound_ns or None,
        middle.bounds.binding,
        _median([shape.published_bound_ns for shape in each.shapes]),
        _median([shape.bounds.bound_ns or None for shape in each.shapes]),
    )
    return HeadlineRow(operator, published, median, own)


def _row(each: Catalogued) -> dict[str, Any]:
    known = each.operator.catalogue()
    return {
        "operator": each.operator.name,
        "id": known.id,
        "dtype": known.dtype,
        "phase": known.phase,
        "regime": regime_of(each.operator),
        "shapes": len(each.shapes),
        "importance": each.normalised,
        "importance_published": known.importance,
        "profiles": known.profiles,
        "below_launch": each.below_launch,
        "binding": each.binding(),
        "sol_fraction": each.sol_fraction,
        "published_fraction": each.published_fraction,
    }


def _median(values: Sequence[float | None]) -> float | None:
    """Upper median; None where one of them isn't known."""
    known = [value for value in values if value is not None]
    return upper_median(known) if values and len(known) == len(values) else None
