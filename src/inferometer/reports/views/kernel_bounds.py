"""The kernel table with bounds."""

from collections.abc import Iterator
from typing import Final

from inferometer.analyses.roofline.kernel_bounds import KernelBounds
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View

_FIELDS: Final = (
    Field("share", "Time", "share", spare=1),
    Field("total_ns", "Total Time", "ns"),
    Field("launches", "Instances", "count", spare=2),
    Field("bound_ns", "Bound", "ns", spare=3),
    Field("above_ns", "Above Bound", "ns"),
    Field("fraction", "Reached", "share"),
    Field("modelled_ns", "Modelled", "ns", spare=4),
    Field("kernel", "Name", "kernel", leads=True),
)


def _facts(found: KernelBounds) -> Iterator[tuple[str, str]]:
    yield "File", found.source
    yield "Device", found.device.name if found.device else "not known"


def _sections(found: KernelBounds) -> Iterator[Section]:
    yield Section("Kernels", _FIELDS, found.shown)


def _remarks(found: KernelBounds) -> Iterator[str]:
    yield from found.notable
    yield from say_rest(found.shown.height, found.frame.height, "kernels")


VIEW = View(schema=Schema("kernel_bounds", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
