"""What a fleet is: its traces by group."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferometer.fleet.questions.overview import SUMS, FleetOverview
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.fleet.titles import name_of, title_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_FIELDS: Final = (
    Field("traces", "Traces", "count"),
    Field("held_gpu_hours", "GPU-hours held", "ratio"),
    Field("busy_share", "Busy", "share", spare=2),
    Field("kernel_ns", "Kernels", "ns", spare=3),
    Field("launch_bound_share", "Launch-bound", "share", spare=1),
    Field("above_gpu_hours", "GPU-hours above bound", "ratio", spare=1),
    Field("above_share", "Above bound", "share", spare=2),
    Field("findings", "Findings", "count", spare=4),
)
_EXACT: Final = (
    Field("group", "group", "text"),
    *(Field(name, name, "count") for name in ("traces", *SUMS, "findings")),
    *(Field(name, name, "number") for name in ("bound_ns", "above_ns", "held_gpu_hours", "above_gpu_hours")),
    *(Field(name, name, "number") for name in ("busy_share", "above_share", "launch_bound_share")),
)


def _facts(found: FleetOverview) -> Sequence[tuple[str, str]]:
    counts = (format_counted(found.traces, "trace"), format_counted(found.paths, "path"))
    return [("Fleet", f"{found.source}: {', '.join(counts)}, {len(found.aside):,} set aside")]


def _sections(found: FleetOverview) -> Iterator[Section]:
    group = [] if found.by is None else [Field("group", title_of(found.by), "text", leads=True)]
    yield Section("Traces" if found.by is None else f"Traces by {name_of(found.by)}", [*group, *_FIELDS], found.frame)


def _remarks(found: FleetOverview) -> Iterator[str]:
    if found.frame["above_ns"].count():
        yield "Time above bounds is that of ops which are modelled, on devices that are known."
    if found.aside:
        yield f"Paths that were set aside: {len(found.aside):,}. --json says why."


def _table(found: FleetOverview) -> Section:
    return Section("Traces", _EXACT, found.frame)


VIEW = View(
    schema=Schema("fleet", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True, table=_table
)
