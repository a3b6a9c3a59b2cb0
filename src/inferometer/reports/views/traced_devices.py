"""The devices that a trace ran on, and what those of ours can do."""

from collections.abc import Sequence

from msgspec.structs import replace

from inferometer.analyses.hardware.devices import TracedDevices
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.device_list import NOTES, VALUES
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_TRACED_FIELDS = (  # as the file has them, where it names no device of ours
    Field("multiprocessors", "Multiprocessors", "count", spare=1),
    Field("compute", "Compute", "text", spare=1),
    Field("usable_gib", "Usable (GiB)", "number", spare=1),
)


def _facts(traced: TracedDevices) -> Sequence[tuple[str, str]]:
    return (("File", traced.source),)


def _sections(traced: TracedDevices) -> Sequence[Section]:
    is_known = traced.frame["device"].is_not_null()
    fields = [
        *(Field("traced", "Device", "text"), Field("launches", "Launches", "count")),
        *(Field("name", "Name", "text", spare=1), Field("device", "Known as", "text", spare=1)),
        *(() if is_known.all() else _TRACED_FIELDS),
        *(replace(field, spare=field.spare or 1) for field in VALUES),
    ]
    if traced.frame["rank"].null_count() < traced.frame.height:
        fields.insert(0, Field("rank", "Rank", "number"))
    return (Section("Devices", fields, traced.frame, NOTES if is_known.any() else ()),)


def _remarks(traced: TracedDevices) -> Sequence[str]:
    return traced.notable


VIEW = View(schema=Schema("traced_devices", 1), facts=_facts, sections=_sections, remarks=_remarks)
