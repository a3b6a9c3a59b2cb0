"""What quicker kernels would save."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferometer.fleet.questions.savings import FleetSavings
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_counted, format_sample, format_share

_FIELDS: Final = (
    Field("share", "Saves", "share"),
    Field("low", "from", "share", spare=1),
    Field("high", "to", "share", spare=1),
    Field("saved_gpu_hours", "GPU-hours", "ratio"),
    Field("total_ns", "Total Time", "ns", spare=2),
    Field("traces", "Traces", "count", spare=3),
    Field("kernel", "Name", "kernel"),
)


def _facts(found: FleetSavings) -> Sequence[tuple[str, str]]:
    held = f"{format_counted(found.traces, 'trace')} that held GPUs for {format_sample(found.held_gpu_hours)} hours"
    return [("Fleet", f"{found.source}: {held}"), ("Each kernel", f"{format_share(found.faster)} faster")]


def _sections(found: FleetSavings) -> Iterator[Section]:
    yield Section("What a faster kernel saves", _FIELDS, found.frame)


def _remarks(found: FleetSavings) -> Iterator[str]:
    yield from say_rest(found.frame.height, found.rows)
    yield "The most that it can save: less where a GPU waits for the host, or kernels run at once."


VIEW = View(schema=Schema("fleet_savings", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
