"""All that is known of one device, one row per value."""

from collections.abc import Sequence

from inferometer.analyses.hardware.devices import DeviceSheet, name_fact
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_SHEET = (
    Field("fact", "Fact", "text"),
    Field("value", "Value", "number"),
    Field("unit", "Unit", "text"),
    Field("kind", "Kind", "text", spare=1),
    Field("source", "Source", "name", spare=2),
)


def _facts(sheet: DeviceSheet) -> Sequence[tuple[str, str]]:
    device = sheet.device
    lines = [("Device", device.name), ("Vendor", device.vendor), ("Target", device.arch)]
    lines.append(("Names", ", ".join((*device.aliases, *device.shared_names))))
    return [(label, text) for label, text in lines if text]


def _sections(sheet: DeviceSheet) -> Sequence[Section]:
    return (Section("Values", _SHEET, sheet.frame),)


def _remarks(sheet: DeviceSheet) -> Sequence[str]:
    known = sheet.device
    lacking = (f"Not given: {name_fact(fact)}. {reason}" for fact, reason in known.unknown.items())
    return (*known.notes, *lacking)


VIEW = View(schema=Schema("device", 1), facts=_facts, sections=_sections, remarks=_remarks)
