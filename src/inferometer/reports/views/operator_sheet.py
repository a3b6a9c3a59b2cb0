"""One operator with every shape and every bound."""

from collections.abc import Sequence

from inferometer.analyses.operators.bounds import FLAGS, BoundShape
from inferometer.analyses.operators.catalogue import OperatorSheet
from inferometer.analyses.operators.published import (
    DEPLOYED,
    median_intensity,
    regime_of,
)
from inferometer.hardware.device import Device
from inferometer.operators.bounds import BOUNDS
from inferometer.operators.shapes import PROFILES
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_duration, format_share

_BOUND_TITLES = {bound: bound.capitalize() for bound in BOUNDS}
_SPARE = {"dependency": 6, "matrix": 4, "vector": 4, "special": 5, "memory": 3}


def _facts(sheet: OperatorSheet) -> Sequence[tuple[str, str]]:
    known, operator = sheet.found.operator.catalogue(), sheet.found.operator
    if not known.shapes:
        return [("Operator", f"{operator.name} (no published shapes)"), ("Does", operator.summary)]
    share, seen = format_share(sheet.found.normalised), f"{known.profiles:,} of {PROFILES:,} profiles"
    regime = f"{regime_of(operator)}, {median_intensity(operator):.4g} FLOP/byte"
    return [
        ("Operator", f"{operator.name} ({known.dtype}, {known.phase})"),
        ("Does", operator.summary),
        ("From", f"{known.upstream['framework']}: {known.upstream['symbol']}"),
        ("Importance", f"{share} of the catalogue, in {seen}"),
        ("Regime", regime),
        ("Device", sheet.device.name),
    ]


def _sections(sheet: OperatorSheet) -> Sequence[Section]:
    fields = _published() if sheet.published else _own()
    return [Section("Shapes", fields, sheet.to_polars(), tuple(_notes(sheet)))]


def _own() -> Sequence[Field]:
    return [
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


def _published() -> Sequence[Field]:
    return [
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


def _notes(sheet: OperatorSheet) -> Sequence[str]:
    if not sheet.found.shapes:
        own = sheet.found.operator
        return [f"None is published: `inferometer bench {own.name}` runs {len(own.tiny)} small shapes of its own."]
    assumed = dict.fromkeys(words for each in sheet.found.shapes for words in each.work.assumes)
    flags = dict.fromkeys(flag for each in sheet.found.shapes for flag in each.flags())
    explained = [f"{flag}: {FLAGS[flag]}." for flag in flags]
    lacking = [] if sheet.published else _lacking(sheet.device, sheet.found.shapes)
    return [
        *about_s(sheet.device, published=sheet.published),
        *([] if sheet.published else [about_launch(sheet.device)]),
        *(_carried(sheet.found.shapes) if sheet.published else []),
        *(f"Assumed: {words}." for words in ([] if sheet.published else assumed)),
        *lacking,
        *explained,
    ]


def about_s(device: Device, *, published: bool) -> Sequence[str]:
    """What S is, or why there is none."""
    if device.name != DEPLOYED:
        return [f"S is not given: deployed kernels were timed on {DEPLOYED} only (--hardware {DEPLOYED})."]
    words = "S: bound over the deployed kernel's time"
    if published:
        published_bound = "the published bound is max(W / matrix peak, Q / bandwidth)"
        return [f"{words}; {published_bound}, and below what a launch takes for many."]
    return [f"{words}."]


def about_launch(device: Device) -> str:
    """What a launch takes, as a reference, or why no figure is given."""
    if device.launch is None:
        reason = device.unknown.get("launch", "The device's data has none.")
        return f"Launch, a reference and in no bound: not given. {reason}"
    return f"Launch, a reference and in no bound: {format_duration(device.launch.value)} ({device.launch.source})."


def _carried(shapes: Sequence[BoundShape]) -> Sequence[str]:
    names = {"flops": "W", "written_bytes": "the bytes written"}
    carried = dict.fromkeys(names[name] for each in shapes for name in each.carried)
    return (
        [f"Carried, as a random draw decided it and no formula gives it: {' and '.join(carried)}."] if carried else []
    )


def _lacking(device: Device, shapes: Sequence[BoundShape]) -> Sequence[str]:
    none = [bound for bound in BOUNDS if any(each.bounds.times_ns[bound] is None for each in shapes)]
    return [f"Not known of {device.name}, and left out: the bound by {', '.join(none)}."] if none else []


VIEW = View(schema=Schema("operator", 1), facts=_facts, sections=_sections)
