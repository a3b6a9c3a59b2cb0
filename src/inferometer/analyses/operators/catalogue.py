"""The catalogue of operators as results: all of them with their importance, and one with every shape and bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.operators.bounds import FLAGS, BoundShape, bound_shapes
from inferometer.analyses.operators.published import (
    DEPLOYED,
    arithmetic_intensity,
    median_intensity,
    regime_of,
    upper_median,
)
from inferometer.analyses.result import Field, Result, Section, frame_of
from inferometer.hardware.device import Device
from inferometer.operators.bounds import BOUNDS
from inferometer.operators.operator import Operator
from inferometer.operators.shapes import PROFILES
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.units import format_share

_LIST = (
    Field("operator", "Operator", "text"),
    Field("importance", "Importance", "share"),
    Field("dtype", "Dtype", "text", spare=2),
    Field("shapes", "Shapes", "count"),
    Field("regime", "Regime", "text"),
    Field("arithmetic_intensity", "FLOP/B", "ratio"),
    Field("launch_bound", "Launch-bound", "count", spare=1),
    Field("binding", "Bound by", "text"),
    Field("sol_fraction", "S", "share"),
)
_REGIMES = "Regime by published FLOPs a byte, median over shapes: C above 10, I (indexing) below 0.01, else M."
_BOUND_TITLES = {bound: bound.capitalize() for bound in BOUNDS}
_SPARE = {"launch": 3, "dependency": 6, "matrix": 4, "vector": 4, "special": 5, "memory": 3}


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
    def launch_bound(self) -> int:
        """Shapes that the launch binds."""
        return sum(shape.is_launch_bound for shape in self.shapes)

    def binding(self) -> str:
        """What binds most of the shapes that the launch doesn't bind."""
        found = Counter(shape.bounds.binding for shape in self.shapes if not shape.is_launch_bound)
        return found.most_common(1)[0][0] if found else "launch"

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
            "launch_bound_shapes": self.launch_bound,
            "shapes": [shape.as_json() for shape in self.shapes],
        }


@dataclass(frozen=True)
class OperatorList(Result):
    """All operators, the most important first; S is of the bounds that `published` chooses."""

    device: Device
    operators: tuple[Catalogued, ...]
    losses: Losses
    published: bool = False

    def facts(self) -> Sequence[tuple[str, str]]:
        shapes = sum(len(each.shapes) for each in self.operators)
        return [
            ("Catalogue", f"{len(self.operators)} operators, {shapes} shapes, from {PROFILES:,} production profiles"),
            ("Device", self.device.name),
        ]

    def sections(self) -> Sequence[Section]:
        rows = [self._row(each) for each in self.operators]
        return [Section("Operators", _LIST, frame_of(rows, _LIST), tuple(self._notes()))]

    def as_json(self) -> dict[str, Any]:
        return {"device": self.device.name, "operators": [each.as_json() for each in self.operators]}

    def _row(self, each: Catalogued) -> dict[str, Any]:
        known = each.operator.catalogue()
        return {
            "operator": each.operator.name,
            "importance": each.normalised,
            "dtype": known.dtype,
            "shapes": len(each.shapes),
            "regime": regime_of(each.operator),
            "arithmetic_intensity": median_intensity(each.operator),
            "launch_bound": each.launch_bound,
            "binding": each.binding(),
            "sol_fraction": each.published_fraction if self.published else each.sol_fraction,
        }

    def _notes(self) -> Sequence[str]:
        total = sum(each.operator.catalogue().importance for each in self.operators)
        words = f"Importance: share of GPU time, normalised (as published the shares add up to {format_share(total)})."
        return [words, _REGIMES, *_about_s(self.device, published=self.published)]


@dataclass(frozen=True)
class OperatorSheet(Result):
    """One operator with every shape and every bound."""

    device: Device
    found: Catalogued
    losses: Losses
    published: bool = False

    def facts(self) -> Sequence[tuple[str, str]]:
        known, operator = self.found.operator.catalogue(), self.found.operator
        share, seen = format_share(self.found.normalised), f"{known.profiles:,} of {PROFILES:,} profiles"
        regime = f"{regime_of(operator)}, {median_intensity(operator):.4g} FLOP/byte"
        return [
            ("Operator", f"{operator.name} ({known.dtype}, {known.phase})"),
            ("Does", operator.summary),
            ("From", f"{known.upstream['framework']}: {known.upstream['symbol']}"),
            ("Importance", f"{share} of the catalogue, in {seen}"),
            ("Regime", regime),
            ("Device", self.device.name),
        ]

    def sections(self) -> Sequence[Section]:
        frame, fields = self._published() if self.published else self._own()
        return [Section("Shapes", fields, frame, tuple(self._notes()))]

    def as_json(self) -> dict[str, Any]:
        return {"device": self.device.name, "operators": [self.found.as_json()]}

    def _own(self) -> tuple[pl.DataFrame, Sequence[Field]]:
        fields = [
            Field("index", "#", "count"),
            Field("flops", "FLOPs", "count", spare=8),
            Field("bytes", "Bytes", "bytes", spare=7),
            *(Field(bound, title, "ns", spare=_SPARE[bound]) for bound, title in _BOUND_TITLES.items()),
            Field("memory_warm", "From L2", "ns", spare=6),
            Field("bound_ns", "Bound", "ns"),
            Field("binding", "Bound by", "text"),
            Field("deployed_ns", "Deployed", "ns", spare=1),
            Field("sol_fraction", "S", "share", spare=1),
            Field("label", "Shape", "name"),
            Field("flags", "Odd", "text", spare=9),
        ]
        rows = [
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
        return frame_of(rows, fields), fields

    def _published(self) -> tuple[pl.DataFrame, Sequence[Field]]:
        fields = [
            Field("index", "#", "count"),
            Field("flops", "W", "count", spare=2),
            Field("bytes", "Q", "bytes", spare=2),
            Field("arithmetic_intensity", "FLOP/B", "ratio", spare=1),
            Field("t_sol_ns", "T_SOL", "ns"),
            Field("t_prod_ns", "T_Prod", "ns", spare=1),
            Field("sol_fraction", "S", "share", spare=1),
            Field("label", "Shape", "name"),
            Field("flags", "Odd", "text", spare=9),
        ]
        rows = [
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
        return frame_of(rows, fields), fields

    def _notes(self) -> Sequence[str]:
        assumed = dict.fromkeys(words for each in self.found.shapes for words in each.work.assumes)
        flags = dict.fromkeys(flag for each in self.found.shapes for flag in each.flags())
        explained = [f"{flag}: {FLAGS[flag]}." for flag in flags]
        lacking = [] if self.published else _lacking(self.device, self.found.shapes)
        return [
            *_about_s(self.device, published=self.published),
            *(_carried(self.found.shapes) if self.published else []),
            *(f"Assumed: {words}." for words in ([] if self.published else assumed)),
            *lacking,
            *explained,
        ]


def list_operators(operators: Sequence[Operator], device: Device, *, published: bool = False) -> OperatorList:
    """All of `operators` on `device`, in the order given."""
    return OperatorList(device, tuple(_catalogued(operators, operators, device)), Losses(ALL_TABLES), published)


def describe_operator(
    operator: Operator, operators: Sequence[Operator], device: Device, *, published: bool = False
) -> OperatorSheet:
    """One of `operators`, whose importance is its share of all of theirs."""
    return OperatorSheet(device, next(iter(_catalogued([operator], operators, device))), Losses(ALL_TABLES), published)


def _catalogued(chosen: Sequence[Operator], every: Sequence[Operator], device: Device) -> Sequence[Catalogued]:
    total = sum(operator.catalogue().importance for operator in every)
    return [
        Catalogued(operator, bound_shapes(operator, device), operator.catalogue().importance / total)
        for operator in chosen
    ]


def _about_s(device: Device, *, published: bool) -> Sequence[str]:
    if device.name != DEPLOYED:
        return [f"S is not given: deployed kernels were timed on {DEPLOYED} only (--hardware {DEPLOYED})."]
    words = "S: bound over the deployed kernel's time"
    if published:
        return [f"{words}; the published bound is max(W / matrix peak, Q / bandwidth), and below a launch for many."]
    return [f"{words}, where the launch isn't what binds."]


def _carried(shapes: Sequence[BoundShape]) -> Sequence[str]:
    names = {"flops": "W", "written_bytes": "the bytes written"}
    carried = dict.fromkeys(names[name] for each in shapes for name in each.carried)
    return (
        [f"Carried, as a random draw decided it and no formula gives it: {' and '.join(carried)}."] if carried else []
    )


def _lacking(device: Device, shapes: Sequence[BoundShape]) -> Sequence[str]:
    none = [bound for bound in BOUNDS if any(each.bounds.times_ns[bound] is None for each in shapes)]
    return [f"Not known of {device.name}, and left out: the bound by {', '.join(none)}."] if none else []
