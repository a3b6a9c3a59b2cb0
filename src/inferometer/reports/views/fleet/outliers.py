"""Traces that are out of line."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferometer.fleet.questions.alike import KIND
from inferometer.fleet.questions.outliers import LEAST, FleetOutliers
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.fleet.titles import title_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_FIELDS: Final = (
    Field("ratio", "Of usual", "ratio"),
    Field("distance", "Deviations", "ratio", spare=2),
    Field("step_ns", "Step", "ns"),
    Field("usual_ns", "Usual", "ns", spare=1),
    Field("alike", "Alike", "count", spare=2),
    *(Field(name, title_of(name), "text", spare=3) for name in (*KIND, "version")),
    Field("path", "Trace", "name"),
)


def _facts(found: FleetOutliers) -> Sequence[tuple[str, str]]:
    return [
        ("Fleet", f"{found.source}: {format_counted(found.compared, 'phase')} of traces compared with those like them")
    ]


def _sections(found: FleetOutliers) -> Iterator[Section]:
    yield Section("Traces out of line", _FIELDS, found.frame)


def _remarks(found: FleetOutliers) -> Iterator[str]:
    if found.frame.is_empty() and found.compared:
        yield "None is out of line."
    if found.unknown:
        yield (
            f"Of {found.unknown:,} of the compared neither a model nor shapes are known: others like them may be of "
            "another model."
        )
    if found.alone:
        yield f"Not judged, with fewer than {LEAST - 1} others like them: {found.alone:,}."


VIEW = View(
    schema=Schema("fleet_outliers", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True
)
