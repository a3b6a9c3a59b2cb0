"""The first look at a run: what stands out, its steps by phase, and what `analyses.tables.summary` tells of any trace.

Where kernel time was printed step by step, kernels are shown by phase and class: labels differ in their layers alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from inferometer.analyses.result import Result, Section
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.analyses.tables.summary import Summary, summarize
from inferometer.analyses.timeline.budget import budget_section
from inferometer.findings.engine import Findings, find_findings
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.architectures import Model
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence
    from inferometer.hardware.device import Device

_FIRST = 5  # findings that are shown
_UNASKED = (
    "The rules about launches were not asked: for {:,} of them that takes time and much memory. "
    "inferometer findings asks them."
)
_SAID_BETTER = (  # remarks of the summary, and the rules whose findings say the same with more evidence
    (re.compile(r" is idle .* of its window"), {"idle_device", "launch_bound", "sync_points", "graph_breaks"}),
    (re.compile(r" kernels take less than "), {"launch_bound", "graph_breaks", "unfused_elementwise"}),
    (re.compile(r"^Copies run alone for "), {"exposed_copies"}),
)


MOST_LAUNCHES = 11_000_000
"""A first look is to be quick: of ten million launches, the rules about them take 16 s on two cores, and 6 GB."""


@dataclass(frozen=True)
class FirstLook(Result):
    """`summary` of any trace; `findings`, gravest first; `steps` of its first run, None where none are recorded.

    `unasked`: launches that no rule was asked about, since they are too many for a first look.
    """

    summary: Summary
    findings: Findings
    steps: StepTable | None
    losses: Losses
    top: int
    unasked: int = 0

    def facts(self) -> Sequence[tuple[str, str]]:
        """The summary's, and the model."""
        lines = list(self.summary.facts())
        model = self.summary.about.model
        return [*lines[:2], *([("Model", model)] if model else []), *lines[2:]]

    def sections(self) -> Sequence[Section]:
        """The first findings, or that there are none; the device-time budget; phases and classes of steps; kernels."""
        first = [self.findings.first(_FIRST), *filter(None, [self.time_budget()])]
        if self.steps is None:
            return [*first, *self.summary.sections()]
        phases, *others = self.steps.sections()
        if self.summary.kernels.basis != "totals" or self.steps.classes.is_empty():
            return [*first, phases, *self.summary.sections()]
        largest = others[-1].frame.sort("total_ns", descending=True, maintain_order=True).head(self.top)
        return [*first, phases, replace(others[-1], title="Top classes of kernels", frame=largest)]

    def time_budget(self) -> Section | None:
        """Where the devices' time went, with numbers of the first findings; None where no launches were looked at."""
        budget = self.findings.budget
        return None if budget.is_empty() else budget_section(budget, self.findings.by_part(_FIRST))

    def remarks(self) -> Sequence[str]:
        """The summary's, but what a finding says better."""
        found = {finding.rule for finding in self.findings.at_least("low")}
        outdone = [pattern for pattern, rules in _SAID_BETTER if rules & found]
        kept = [remark for remark in self.summary.remarks() if not any(pattern.search(remark) for pattern in outdone)]
        return [*kept, *([_UNASKED.format(self.unasked)] if self.unasked else [])]

    def to_polars(self) -> pl.DataFrame:
        """The summary's main table."""
        return self.summary.to_polars()

    def as_json(self) -> dict[str, Any]:
        """The summary's, with all `findings`, and `phases`."""
        phases = [] if self.steps is None else self.steps.phases.to_dicts()
        found = self.findings.as_json()
        more = {name: found[name] for name in ("findings", "examined", "device_time_budget")}
        more |= {"phases": phases, "unasked_launches": self.unasked}
        return self.summary.as_json() | more


def first_look(
    trace: Trace,
    *,
    top: int = 10,
    model: "Model | None" = None,
    device: "Device | None" = None,
    bandwidths: Sequence[float] = (),
    launches: "LaunchEvidence | None" = None,
) -> FirstLook:
    """What a trace is, where its time went and what stands out.

    Args:
        trace: Opened with all tables.
        top: Kernels to list.
        model: Dimensions of the model that ran; None: the bundled ones of the name in the file, where they agree.
        device: What it ran on, if the user knows.
        bandwidths: Memory bandwidths to bracket an unknown device with, bytes/s.
        launches: What the analyses make of the launches, where somebody asks them besides the rules.
    """
    count = trace.launches.select(pl.len()).collect().item()
    steps = step_table(trace) if trace.steps.select(pl.len()).collect().item() else None
    findings = find_findings(
        trace,
        model=model,
        device=device,
        bandwidths=bandwidths,
        steps=steps,
        launches=launches,
        most_launches=MOST_LAUNCHES,
    )
    if launches is not None:
        launches.release()
    return FirstLook(
        summary=summarize(trace, top=top),
        findings=findings,
        steps=steps,
        losses=trace.losses,
        top=top,
        unasked=count if count > MOST_LAUNCHES else 0,
    )
