"""The first look: findings, the device-time budget, the first run's steps by phase, and the summary.

Where kernel time was printed step by step, kernels are shown by phase and class: labels differ in their layers alone.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from inferometer.findings.first_look import FirstLook
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.findings import first_findings, number_by_part
from inferometer.reports.views.layout import Section
from inferometer.reports.views.time_budget import budget_section
from inferometer.reports.views.view import View, facts_of, remarks_of, sections_of
from inferometer.units import format_duration, format_share

_FIRST: Final = 5  # findings that are shown
_BOUNDED: Final = 0.10  # of the device time that must have bounds for a word on them
_UNASKED: Final = (
    "The rules about launches were not asked: for {:,} of them that takes time and much memory. "
    "inferometer findings asks them."
)
_SAID_BETTER: Final = (  # remarks of the summary, and the rules whose findings say the same with more evidence
    (re.compile(r" is idle .* of its window"), {"idle_device", "launch_bound", "sync_points", "graph_breaks"}),
    (re.compile(r" kernels take less than "), {"launch_bound", "graph_breaks", "unfused_elementwise"}),
    (re.compile(r"^Copies run alone for "), {"exposed_copies"}),
)


def budget_of(first: FirstLook) -> Section | None:
    """Where the devices' time went, with numbers of the first findings; None where no launches were looked at."""
    budget = first.findings.budget
    return None if budget.is_empty() else budget_section(budget, number_by_part(first.findings, _FIRST))


def _facts(first: FirstLook) -> Sequence[tuple[str, str]]:
    """The summary's, and the model."""
    lines = facts_of(first.summary)
    model = first.summary.about.model
    return [*lines[:2], *([("Model", model)] if model else []), *lines[2:]]


def _sections(first: FirstLook) -> Sequence[Section]:
    """The first findings, or that there are none; the device-time budget; phases and classes of steps; kernels."""
    found = [first_findings(first.findings, _FIRST), *filter(None, [budget_of(first)])]
    if first.steps is None or not first.summary.tests.is_empty():
        return [*found, *sections_of(first.summary)]
    phases, *others = sections_of(first.steps)
    if first.summary.kernels.basis != "totals" or first.steps.classes.is_empty():
        return [*found, phases, *sections_of(first.summary)]
    largest = others[-1].frame.sort("total_ns", descending=True, maintain_order=True).head(first.top)
    return [*found, phases, replace(others[-1], title="Top classes of kernels", frame=largest)]


def _remarks(first: FirstLook) -> Sequence[str]:
    """The summary's, without those that a finding says better."""
    rules = {finding.rule for finding in first.findings.at_least("low")}
    better = [pattern for pattern, of in _SAID_BETTER if of & rules]
    kept = [remark for remark in remarks_of(first.summary) if not any(pattern.search(remark) for pattern in better)]
    return [*kept, *_bound(first), *([_UNASKED.format(first.unasked)] if first.unasked else [])]


def _bound(first: FirstLook) -> Iterator[str]:
    """How far all ops together are from what the device allows, where that is known of enough of the time."""
    found = first.findings.roofline
    if found is None or found.device is None or not found.bound_ns:
        return
    took, bound = found.modelled_ns - found.exchange_ns, found.bound_ns - found.exchange_bound_ns
    if took < _BOUNDED * found.total_ns or bound < (found.shortest_kernel_ns or 0):  # next to nothing was done
        return
    without = ", collectives left out" if found.exchange_ns else ""
    yield (
        f"{format_share(took / found.total_ns)} of the device time has a bound from the shapes of its ops{without}: "
        f"{format_duration(took)}, which at what the {found.device.name} allows would be "
        f"{format_duration(bound)} ({format_share(bound / took)} is reached). By op: inferometer roofline."
    )


VIEW = View(schema=Schema("summary", 1), facts=_facts, sections=_sections, remarks=_remarks)
