"""Every launch with who launched it."""

from collections.abc import Sequence

from inferometer.analyses.launched_by.each_launch import EachLaunch
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS = (
    Field("start_ns", "Start", "count", spare=3),
    Field("dur_ns", "Duration", "ns"),
    Field("how", "How", "text", spare=2),
    Field("user_frame", "User Frame", "text", spare=8),
    Field("module", "Module", "text", spare=6),
    Field("op_chain", "Ops", "text", spare=7),
    Field("kernel", "Kernel", "kernel"),
)


def _sections(found: EachLaunch) -> Sequence[Section]:
    return [Section("Launches", _FIELDS, found.frame)]


def _remarks(found: EachLaunch) -> Sequence[str]:
    some = [f"{found.frame.height:,} of {found.launches:,} launches shown."]
    return [*(some if found.frame.height < found.launches else []), *found.notable]


VIEW = View(schema=Schema("each_launch", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
