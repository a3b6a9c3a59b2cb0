"""What changed over an engine's versions."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferometer.fleet.questions.alike import KIND
from inferometer.fleet.questions.changes import LEAST, MOST, FleetChanges
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.fleet.titles import title_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS: Final = (
    Field("ratio", "Step after/before", "ratio"),
    Field("low", "from", "ratio", spare=1),
    Field("high", "to", "ratio", spare=1),
    Field("before_ns", "Before", "ns", spare=2),
    Field("after_ns", "After", "ns", spare=2),
    Field("traces_before", "Traces before", "count", spare=4),
    Field("traces_after", "Traces after", "count", spare=4),
    Field("before", "Up to", "text"),
    Field("after", "Since", "text"),
    *(Field(name, title_of(name), "text", spare=3) for name in KIND),
    Field("p_value", "p", "ratio", spare=5),
)


def _facts(found: FleetChanges) -> Sequence[tuple[str, str]]:
    return [("Fleet", f"{found.source}: {found.series:,} series of like traces over versions")]


def _sections(found: FleetChanges) -> Iterator[Section]:
    yield Section("Changes of the step between versions", _FIELDS, found.frame)


def _remarks(found: FleetChanges) -> Iterator[str]:
    if found.series:
        yield "The chance that any change is a false alarm is 5 % at most; intervals are of 95 %."
    if found.series > MOST:
        yield f"Of more than {MOST:,} series no change can be found: choose fewer with --only."
    if found.short:
        yield f"Series not judged, with fewer than {LEAST} traces on a side of every place: {found.short:,}."


VIEW = View(schema=Schema("fleet_changes", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
