"""The kernel table with bounds."""

from collections.abc import Iterator
from typing import Final

from inferometer.analyses.roofline.kernel_bounds import KernelBounds
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS: Final = (
    Field("share", "Time", "share"),
    Field("total_ns", "Total Time", "ns"),
    Field("launches", "Instances", "count"),
    Field("bound_ns", "Bound", "ns", spare=2),
    Field("above_ns", "Above Bound", "ns"),
    Field("fraction", "Reached", "share"),
    Field("modelled_ns", "Modelled", "ns", spare=1),
    Field("kernel", "Name", "name"),
)


def _facts(found: KernelBounds) -> Iterator[tuple[str, str]]:
    yield "File", found.source
    yield "Device", found.device.name if found.device else "not known"


def _sections(found: KernelBounds) -> Iterator[Section]:
    yield Section("Kernels", _FIELDS, found.shown)


def _remarks(found: KernelBounds) -> Iterator[str]:
    yield from found.notable
    if found.shown.height < found.frame.height:
        yield f"{found.shown.height:,} of {found.frame.height:,} kernels shown."


VIEW = View(facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
