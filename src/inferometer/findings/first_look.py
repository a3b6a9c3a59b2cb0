"""The first look at a run: what stands out, its steps by phase, and the summary of any trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.analyses.tables.summary import Summary, summarize
from inferometer.findings.engine import Findings, find_findings
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.architectures import Model
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence
    from inferometer.hardware.device import Device

MOST_LAUNCHES = 11_000_000
"""A first look is to be quick: of ten million launches, the rules about them take 8 s on two cores, and 3.5 GB."""


@dataclass(frozen=True)
class FirstLook(Result):
    """`summary` of any trace; `findings`, gravest first; `steps` of its first run, None where none are recorded.

    `unasked`: launches that no rule was asked about, since they are too many for a first look.
    """

    view: ClassVar[str] = "first_look"
    summary: Summary
    findings: Findings
    steps: StepTable | None
    losses: Losses
    top: int
    unasked: int = 0

    def to_polars(self) -> pl.DataFrame:
        """The summary's main table."""
        return self.summary.to_polars()

    def as_json(self) -> dict[str, Any]:
        """The summary's, with all `findings`, and `phases`."""
        phases = [] if self.steps is None else self.steps.phases.to_dicts()
        found = self.findings.as_json()
        more = {name: found[name] for name in ("findings", "examined", "thresholds", "device_time_budget")}
        more |= {"phases": phases, "unasked_launches": self.unasked}
        return self.summary.as_json() | more


def first_look(
    trace: Trace,
    *,
    top: int = 10,
    raw: bool = False,
    model: "Model | None" = None,
    device: "Device | None" = None,
    bandwidths: Sequence[float] = (),
    launches: "LaunchEvidence | None" = None,
    thresholds: Mapping[str, float] = MappingProxyType({}),
) -> FirstLook:
    """What a trace is, where its time went and what stands out.

    Args:
        trace: Opened with all tables.
        top: Kernels to list.
        raw: Their names as in the file.
        model: Dimensions of the model that ran; None: the bundled ones of the name in the file, where they agree.
        device: What it ran on, if the user knows.
        bandwidths: Memory bandwidths to bracket an unknown device with, bytes/s.
        launches: What the analyses make of the launches, where somebody asks them besides the rules.
        thresholds: As for `find_findings`.
    """
    count = trace.launches.select(pl.len()).collect().item()
    if launches is None and 0 < count <= MOST_LAUNCHES:
        from inferometer.findings.evidence.launch_evidence import LaunchEvidence

        launches = LaunchEvidence(trace, device=device)
    steps = step_table(trace) if trace.steps.select(pl.len()).collect().item() else None
    summaries: list[Summary] = []

    def sum_up() -> None:
        if launches is None or not 0 < count <= MOST_LAUNCHES:
            summaries.append(summarize(trace, top=top, raw=raw))
            return
        _ = launches.attribution  # what most rules wait for comes first
        summaries.append(
            summarize(trace, top=top, raw=raw, busy=lambda: launches.busy_times, gaps=lambda: launches.gaps)
        )

    findings = find_findings(
        trace,
        model=model,
        device=device,
        bandwidths=bandwidths,
        steps=steps,
        launches=launches,
        most_launches=MOST_LAUNCHES,
        thresholds=thresholds,
        beside=sum_up,
    )
    if launches is not None:
        launches.release()
    return FirstLook(
        summary=summaries[0],
        findings=findings,
        steps=steps,
        losses=trace.losses,
        top=top,
        unasked=count if count > MOST_LAUNCHES else 0,
    )
