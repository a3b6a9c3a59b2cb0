"""Shapes of a file, with their bounds on a device."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferometer.analyses.operators.given_shapes import GivenShapes
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS: Final = (
    Field("operator", "Operator", "text"),
    Field("weight", "Weight", "share", spare=1),
    Field("flops", "FLOPs", "ratio", spare=3),
    Field("bytes", "Bytes", "bytes", spare=3),
    Field("bound_ns", "Bound", "ns"),
    Field("binding", "Bound by", "text"),
    Field("shape", "Shape", "name"),
)


def _facts(found: GivenShapes) -> Sequence[tuple[str, str]]:
    return [("Shapes", found.source), ("Device", found.device.name)]


def _sections(found: GivenShapes) -> Iterator[Section]:
    yield Section("Shapes and their bounds", _FIELDS, found.frame)


def _remarks(found: GivenShapes) -> Iterator[str]:
    below = int(found.frame["below_launch"].sum())
    if below:
        yield f"Shapes whose bound is below what a launch takes on the device: {below:,} of {found.frame.height:,}."


VIEW = View(schema=Schema("given_shapes", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
