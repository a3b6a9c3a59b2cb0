"""A measured device next to its datasheet."""

from collections.abc import Sequence

from inferometer.analyses.hardware.devices import name_fact
from inferometer.analyses.hardware.measured import MeasuredDevice
from inferometer.hardware.measure.timing import STEADY
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_share

_FIELDS = (
    Field("fact", "Fact", "text"),
    Field("value", "Measured", "number"),
    Field("unit", "Unit", "text"),
    Field("p10", "P10", "number", spare=2),
    Field("p90", "P90", "number", spare=2),
    Field("samples", "Samples", "count", spare=4),
    Field("clock_mhz", "Clock (MHz)", "number", spare=3),
    Field("datasheet", "Datasheet", "number", spare=1),
    Field("fraction", "Measured / datasheet", "number", spare=1),
    Field("source", "How", "name", spare=5),
)


def _facts(found: MeasuredDevice) -> Sequence[tuple[str, str]]:
    measured = found.measured
    known = [] if measured.known is None else [("Known as", measured.known.name)]
    return (
        ("Device", f"{measured.subject.device.name}, {measured.subject.on}"),
        *known,
        ("By", f"{measured.subject.library}, {measured.date}"),
        ("File", found.file),
    )


def _sections(found: MeasuredDevice) -> Sequence[Section]:
    return (Section("Measured", _FIELDS, found.frame),)


def _remarks(found: MeasuredDevice) -> Sequence[str]:
    over = [name for name, part in found.frame.select("fact", "fraction").iter_rows() if part and part > 1]
    shaky = [
        f"{name_fact(each.fact)} ±{format_share(each.spread)}"
        for each in found.measured.measurements
        if each.spread >= STEADY
    ]
    lines = []
    if over:
        lines.append(f"Above the datasheet: {', '.join(over)}. Is it of this device, and at this clock?")
    if shaky:
        lines.append(f"Not steady when the time was over: {', '.join(shaky)}.")
    lines += [f"Not measured: {name_fact(fact)}: {why}." for fact, why in found.measured.missing.items()]
    return (*lines, *found.measured.subject.remarks)


VIEW = View(
    schema=Schema("measured_device", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True
)
