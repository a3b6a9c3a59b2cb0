"""The catalogue of operators as results: all of them with their importance, and one with every shape and bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.operators.bounds import BoundShape, bound_shapes
from inferometer.analyses.operators.published import (
    arithmetic_intensity,
    median_intensity,
    regime_of,
    upper_median,
)
from inferometer.analyses.result import Result
from inferometer.hardware.device import Device
from inferometer.operators.bounds import BOUNDS
from inferometer.operators.operator import Operator
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

_LIST = {
    "operator": pl.String,
    "importance": pl.Float64,
    "dtype": pl.String,
    "shapes": pl.Int64,
    "regime": pl.String,
    "arithmetic_intensity": pl.Float64,
    "below_launch": pl.Int64,
    "binding": pl.String,
    "sol_fraction": pl.Float64,
}
_OWN: dict[str, type[pl.DataType]] = {
    "index": pl.Int64,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    **dict.fromkeys(BOUNDS, pl.Float64),
    "memory_warm": pl.Float64,
    "bound_ns": pl.Float64,
    "binding": pl.String,
    "deployed_ns": pl.Float64,
    "sol_fraction": pl.Float64,
    "label": pl.String,
    "flags": pl.String,
}
_PUBLISHED = {
    "index": pl.Int64,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "arithmetic_intensity": pl.Float64,
    "t_sol_ns": pl.Float64,
    "t_prod_ns": pl.Float64,
    "sol_fraction": pl.Float64,
    "label": pl.String,
    "flags": pl.String,
}


@dataclass(frozen=True)
class Catalogued:
    """One operator with its shapes on a device."""

    operator: Operator
    shapes: Sequence[BoundShape]
    normalised: float

    @property
    def sol_fraction(self) -> float | None:
        """Upper median of S over the shapes that have one."""
        known = [fraction for shape in self.shapes if (fraction := shape.sol_fraction) is not None]
        return upper_median(known) if known else None

    @property
    def published_fraction(self) -> float | None:
        """Upper median of the published S."""
        known = [fraction for shape in self.shapes if (fraction := shape.published_fraction) is not None]
        return upper_median(known) if known else None

    @property
    def below_launch(self) -> int | None:
        """Shapes whose bound is below what a launch takes; None where that isn't known of the device."""
        known = [shape.bounds for shape in self.shapes if shape.bounds.launch is not None]
        return sum(bounds.is_below_launch for bounds in known) if known else None

    def binding(self) -> str | None:
        """What binds most of the shapes; None without shapes."""
        found = Counter(shape.bounds.binding for shape in self.shapes)
        return found.most_common(1)[0][0] if found else None

    def as_json(self) -> dict[str, Any]:
        known = self.operator.catalogue()
        return {
            "id": known.id,
            "name": self.operator.name,
            "summary": self.operator.summary,
            "dtype": known.dtype,
            "status": known.status,
            "phase": known.phase,
            "upstream": known.upstream,
            "importance": known.importance,
            "importance_normalised": self.normalised,
            "profiles": known.profiles,
            "regime": regime_of(self.operator),
            "arithmetic_intensity": median_intensity(self.operator),
            "sol_fraction": self.sol_fraction,
            "published_s": self.published_fraction,
            "shapes_below_launch": self.below_launch,
            "shapes": [shape.as_json() for shape in self.shapes],
        }


@dataclass(frozen=True)
class OperatorList(Result):
    """All operators, the most important first; S is of the bounds that `published` chooses."""

    view: ClassVar[str] = "operator_list"
    device: Device
    operators: tuple[Catalogued, ...]
    losses: Losses
    published: bool = False

    def to_polars(self) -> pl.DataFrame:
        """One row per operator."""
        return pl.DataFrame([self._row(each) for each in self.operators], schema=_LIST)

    def as_json(self) -> dict[str, Any]:
        return {**_device_as_json(self.device), "operators": [each.as_json() for each in self.operators]}

    def _row(self, each: Catalogued) -> dict[str, Any]:
        known = each.operator.catalogue()
        return {
            "operator": each.operator.name,
            "importance": each.normalised,
            "dtype": known.dtype,
            "shapes": len(each.shapes),
            "regime": regime_of(each.operator),
            "arithmetic_intensity": median_intensity(each.operator),
            "below_launch": each.below_launch,
            "binding": each.binding(),
            "sol_fraction": each.published_fraction if self.published else each.sol_fraction,
        }


@dataclass(frozen=True)
class OperatorSheet(Result):
    """One operator with every shape and every bound."""

    view: ClassVar[str] = "operator_sheet"
    device: Device
    found: Catalogued
    losses: Losses
    published: bool = False

    def to_polars(self) -> pl.DataFrame:
        """One row per shape, with our bounds or the published one."""
        if self.published:
            return pl.DataFrame(self._published_rows(), schema=_PUBLISHED)
        return pl.DataFrame(self._own_rows(), schema=_OWN)

    def as_json(self) -> dict[str, Any]:
        return {**_device_as_json(self.device), "operators": [self.found.as_json()]}

    def _own_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "index": each.shape.index,
                "flops": each.work.matrix_flops + each.work.vector_flops + each.work.special_ops,
                "bytes": each.work.moved_bytes,
                **{
                    bound: time or None for bound, time in each.bounds.times_ns.items()
                },  # 0: nothing of that kind to do
                "memory_warm": each.bounds.memory_warm_ns,
                "bound_ns": each.bounds.bound_ns,
                "binding": each.bounds.binding,
                "deployed_ns": each.deployed_ns,
                "sol_fraction": each.sol_fraction,
                "label": each.shape.label,
                "flags": ", ".join(each.flags()) or None,
            }
            for each in self.found.shapes
        ]

    def _published_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "index": each.shape.index,
                "flops": each.shape.published.flops,
                "bytes": each.shape.published.read_bytes + each.shape.published.written_bytes,
                "arithmetic_intensity": arithmetic_intensity(self.found.operator, each.shape),
                "t_sol_ns": each.published_bound_ns,
                "t_prod_ns": each.deployed_ns,
                "sol_fraction": each.published_fraction,
                "label": each.shape.label,
                "flags": ", ".join(each.shape.flags) or None,
            }
            for each in self.found.shapes
        ]


def list_operators(operators: Sequence[Operator], device: Device, *, published: bool = False) -> OperatorList:
    """All of `operators` on `device`, in the order given."""
    return OperatorList(device, tuple(_catalogued(operators, operators, device)), Losses(ALL_TABLES), published)


def describe_operator(
    operator: Operator, operators: Sequence[Operator], device: Device, *, published: bool = False
) -> OperatorSheet:
    """One of `operators`, whose importance is its share of all of theirs."""
    return OperatorSheet(device, next(iter(_catalogued([operator], operators, device))), Losses(ALL_TABLES), published)


def _device_as_json(device: Device) -> dict[str, Any]:
    """Its name, and what a launch takes on it: the figure with its source, or why there is none."""
    launch = None if device.launch is None else msgspec.to_builtins(device.launch)
    return {"device": device.name, "launch": launch, "no_launch": device.unknown.get("launch")}


def _catalogued(chosen: Sequence[Operator], every: Sequence[Operator], device: Device) -> Sequence[Catalogued]:
    total = sum(operator.catalogue().importance for operator in every)
    return [
        Catalogued(operator, bound_shapes(operator, device), operator.catalogue().importance / total)
        for operator in chosen
    ]
