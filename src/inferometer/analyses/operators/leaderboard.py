"""The whole catalogue on several devices: every operator, shape and bound, and the rows of the published page.

The platforms that bounds were published for come first, the one whose deployed kernels were timed before the other;
then any device that the reader asks for. A headline row is published of each operator's middle shape by its index,
whatever that shape is; next to it stands the row of true medians. Leaves out results of candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

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
from inferometer.analyses.result import Field, Result, Section, frame_of
from inferometer.hardware.device import Device
from inferometer.operators.operator import Operator
from inferometer.operators.shapes import PROFILES
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.units import format_share

_CATALOGUE = (
    Field("operator", "Operator", "name"),
    Field("importance", "Importance", "share"),
    Field("importance_published", "As published", "share"),
    Field("sol_fraction", "Median S", "share", spare=1),
    Field("published_fraction", "Published S", "share", spare=1),
    Field("binding", "Bound by", "text"),
    Field("launch_bound", "Launch-bound", "count", spare=1),
    Field("shapes", "Shapes", "count"),
    Field("regime", "Regime", "text"),
    Field("dtype", "Dtype", "text", spare=2),
    Field("phase", "Phase", "text", spare=4),
    Field("id", "Id", "text", spare=3),
    Field("profiles", "Profiles", "count", spare=5),
)


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

    platforms: tuple[Platform, ...]
    losses: Losses

    @property
    def timed(self) -> Platform:
        """The platform that deployed kernels were timed on: S is of its bounds."""
        return self.platforms[0]

    @property
    def shapes(self) -> int:
        """Of all operators."""
        return sum(len(each.shapes) for each in self.timed.operators)

    @property
    def source(self) -> str:
        """Where the catalogue is from; "" where it is empty."""
        return next((each.operator.catalogue().source for each in self.timed.operators), "")

    @property
    def published_total(self) -> float:
        """What the published importance of all adds up to: more than 1, as profiles overlap."""
        return sum(each.operator.catalogue().importance for each in self.timed.operators)

    def facts(self) -> Sequence[tuple[str, str]]:
        return [
            ("Catalogue", f"{len(self.timed.operators)} operators, {self.shapes} shapes"),
            ("From", f"{PROFILES:,} production profiles"),
            ("Platforms", ", ".join(platform.device.name for platform in self.platforms)),
            ("Source", self.source),
        ]

    def sections(self) -> Sequence[Section]:
        return [self.catalogue(), *(headline_section(platform) for platform in self.platforms)]

    def catalogue(self) -> Section:
        """One row an operator; launch-bound shapes, what binds and S are of the timed platform."""
        rows = [_catalogue_row(each) for each in self.timed.operators]
        total = format_share(self.published_total)
        notes = [
            f"Importance: share of GPU time, normalised to 100 % in all; as published the shares add up to {total}.",
            f"Launch-bound shapes, what binds most of the others, and S are on {self.timed.device.name}.",
        ]
        return Section("Operators", _CATALOGUE, frame_of(rows, _CATALOGUE), notes)

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
        operators: The most important first.
        devices: Others, in order; one that is there already is passed over.
        device_of: The device of a name, for the published platforms.
    """
    published = [device_of(name) for name in sorted(PLATFORMS, key=lambda name: name != DEPLOYED)]
    every = {device.name: device for device in (*published, *devices)}
    platforms = [_platform(operators, device, device_of) for device in every.values()]
    return Leaderboard(tuple(platforms), Losses(ALL_TABLES))


def headline_section(platform: Platform) -> Section:
    """The headline rows of a platform: of the middle shape, then medians. T_Prod only where kernels were timed."""
    fields = _headline_fields(platform)
    frame = frame_of([_headline_cells(row, platform) for row in platform.headlines], fields)
    return Section(f"Headline rows on {platform.device.name}", fields, frame, [*_headline_notes(platform)])


def _platform(operators: Sequence[Operator], device: Device, device_of: Callable[[str], Device]) -> Platform:
    listed = list_operators(operators, device)
    return Platform(listed, tuple(_headline_row(each, device, device_of) for each in listed.operators))


def _headline_row(each: Catalogued, device: Device, device_of: Callable[[str], Device]) -> HeadlineRow:
    operator, middle = each.operator, each.shapes[len(each.shapes) // 2]
    own = OwnHeadline(
        published_bound_ns(operator, middle.shape, device),
        middle.bounds.bound_ns or None,
        middle.bounds.binding,
        _median([shape.published_bound_ns for shape in each.shapes]),
        _median([shape.bounds.bound_ns or None for shape in each.shapes]),
    )
    return HeadlineRow(operator, headline(operator, device_of), median_headline(operator, device_of), own)


def _median(values: Sequence[float | None]) -> float | None:
    """Upper median; None where one of them isn't known."""
    known = [value for value in values if value is not None]
    return upper_median(known) if values and len(known) == len(values) else None


def _catalogue_row(each: Catalogued) -> dict[str, Any]:
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
        "launch_bound": each.launch_bound,
        "binding": each.binding(),
        "sol_fraction": each.sol_fraction,
        "published_fraction": each.published_fraction,
    }


def _names(platform: Platform) -> Sequence[str]:
    """Whose published bounds stand in the rows: those of the published platforms, and of this one."""
    return tuple(dict.fromkeys((*PLATFORMS, platform.device.name)))


def _headline_fields(platform: Platform) -> Sequence[Field]:
    times = [Field(f"t_sol {name}", f"T_SOL ({name})", "ns") for name in _names(platform)]
    medians = [Field(f"median_{field.column}", f"Median {field.title}", "ns") for field in times]
    return [
        Field("operator", "Operator", "name"),
        Field("regime", "Regime", "text"),
        Field("index", "Middle shape", "count"),
        Field("arithmetic_intensity", "FLOP/B", "ratio"),
        *times,
        Field("t_prod", "T_Prod", "ns", spare=1),
        Field("bound", "Our bound", "ns"),
        Field("binding", "Bound by", "text"),
        Field("median_arithmetic_intensity", "Median FLOP/B", "ratio"),
        *medians,
        Field("median_t_prod", "Median T_Prod", "ns", spare=1),
        Field("median_bound", "Median bound", "ns"),
    ]


def _headline_cells(row: HeadlineRow, platform: Platform) -> dict[str, Any]:
    name, own = platform.device.name, row.own
    return {
        "operator": row.operator.name,
        "regime": row.middle.regime,
        "index": row.middle.index,
        "arithmetic_intensity": row.middle.arithmetic_intensity,
        **{f"t_sol {each}": row.middle.t_sol_ns.get(each, own.t_sol_ns) for each in _names(platform)},
        "t_prod": row.middle.t_prod_ns if name == DEPLOYED else None,
        "bound": own.bound_ns,
        "binding": own.binding,
        "median_arithmetic_intensity": row.median.arithmetic_intensity,
        **{f"median_t_sol {each}": row.median.t_sol_ns.get(each, own.median_t_sol_ns) for each in _names(platform)},
        "median_t_prod": row.median.t_prod_ns if name == DEPLOYED else None,
        "median_bound": own.median_bound_ns,
    }


def _headline_notes(platform: Platform) -> Sequence[str]:
    notes = [
        "As published, a row is of the operator's middle shape by index.",
        "Columns called median are the upper median over all shapes, each by itself.",
        "T_SOL: max(W / matrix peak, Q / bandwidth), as published; our bound is the greatest of six.",
    ]
    if not platform.is_timed:
        notes.append(f"T_Prod isn't given: deployed kernels were timed on {DEPLOYED} only.")
    return notes
