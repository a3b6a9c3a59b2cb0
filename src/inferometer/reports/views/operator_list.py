"""The catalogue's operators with their importance and S on one device."""

from collections.abc import Sequence

from inferometer.analyses.operators.catalogue import OperatorList
from inferometer.operators.shapes import PROFILES
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.operator_sheet import about_launch, about_s
from inferometer.reports.views.view import View
from inferometer.units import format_share

_LIST = (
    Field("operator", "Operator", "text"),
    Field("importance", "Importance", "share"),
    Field("dtype", "Dtype", "text", spare=2),
    Field("shapes", "Shapes", "count"),
    Field("regime", "Regime", "text"),
    Field("arithmetic_intensity", "FLOP/B", "ratio"),
    Field("below_launch", "Below launch", "count", spare=1),
    Field("binding", "Bound by", "text"),
    Field("sol_fraction", "S", "share"),
)
_REGIMES = "Regime by published FLOPs a byte, median over shapes: C above 10, I (indexing) below 0.01, else M."


def _facts(listed: OperatorList) -> Sequence[tuple[str, str]]:
    shapes = sum(len(each.shapes) for each in listed.operators)
    return [
        ("Catalogue", f"{len(listed.operators)} operators, {shapes} shapes, from {PROFILES:,} production profiles"),
        ("Device", listed.device.name),
    ]


def _sections(listed: OperatorList) -> Sequence[Section]:
    return [Section("Operators", _LIST, listed.to_polars(), tuple(_notes(listed)))]


def _notes(listed: OperatorList) -> Sequence[str]:
    total = sum(each.operator.catalogue().importance for each in listed.operators)
    words = f"Importance: share of GPU time, normalised (as published the shares add up to {format_share(total)})."
    below = "" if listed.device.launch is None else "Below launch: shapes whose bound is below that. "
    launch = f"{about_launch(listed.device)} {below}".strip()
    return [words, _REGIMES, *about_s(listed.device, published=listed.published), launch]


VIEW = View(schema=Schema("operators", 1), facts=_facts, sections=_sections)
