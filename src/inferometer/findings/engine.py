"""Asks every rule of this folder, and other packages' rules, about each run of a trace.

Gravest first, then by the time at stake. A file may hold several runs: each is looked at alone, since lengths of
contexts and medians mean nothing across runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from inferometer.analyses.result import Field, Result, Section
from inferometer.findings.finding import SEVERITIES, Finding
from inferometer.findings.rule import NEEDED, Evidence, Rule
from inferometer.registry import collect
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.steps import StepTable
    from inferometer.architectures import Model
    from inferometer.hardware import Device

TITLE = "What to look at first"

_FIELDS = (
    Field("severity", "Severity", "text"),
    Field("title", "Finding", "name"),
    Field("size_ns", "Time", "ns"),
    Field("share", "Share", "share"),
    Field("rule", "Rule", "text", spare=1),
)
_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("rule", "severity", "title"), pl.String()),
        "evidence": pl.List(pl.String),
        "size_ns": pl.Int64(),
        "share": pl.Float64(),
        "next": pl.String(),
    }
)


@dataclass(frozen=True)
class Findings(Result):
    """`findings`: gravest first. None is an answer, too: nothing that a rule knows of stands out."""

    source: str
    findings: tuple[Finding, ...]
    losses: Losses

    def sections(self) -> Sequence[Section]:
        """One table; what is more than `info` is explained below it."""
        return [Section(TITLE, _FIELDS, self.to_polars(), tuple(self._notes()))]

    def as_json(self) -> dict[str, Any]:
        """All findings with all evidence."""
        return {
            "source": self.source,
            "findings": [finding.as_json() for finding in self.findings],
            "losses": self.losses.as_dict(),
        }

    def to_polars(self) -> pl.DataFrame:
        """One row a finding."""
        return pl.DataFrame([finding.as_json() for finding in self.findings], schema=_SCHEMA, orient="row")

    def _notes(self) -> Iterator[str]:
        for number, finding in enumerate(self.findings, start=1):
            if finding.severity != "info":
                yield f"{number}. {finding.title}: {' '.join(finding.evidence)} Next: {finding.next}"


def find_findings(
    trace: Trace,
    *,
    model: "Model | None" = None,
    device: "Device | None" = None,
    bandwidths: Sequence[float] = (),
    steps: "StepTable | None" = None,
) -> Findings:
    """What to look at first in a run.

    Args:
        trace: Needs the tables `totals`, `steps`, `log` and `selections`.
        model: Dimensions of the model that ran; None: the bundled ones of the name in the file, where they agree.
        device: What it ran on, if the user knows.
        bandwidths: Memory bandwidths to bracket an unknown device with, bytes/s.
        steps: The steps of the trace's first run, where they are made already.

    Raises:
        InputError: One of these tables was not read.
    """
    trace.require(NEEDED)
    found: dict[Finding, list[int | None]] = {}
    for run, part in _runs(trace):
        made = steps if run is None else None
        evidence = Evidence(part, model=model, device=device, bandwidths=bandwidths, steps=made)
        for rule in known_rules().values():
            for finding in rule.find(evidence):
                found.setdefault(finding, []).append(run)
    named = [_named(finding, runs) for finding, runs in found.items()]
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    named.sort(key=lambda finding: (order[finding.severity], -(finding.size_ns or 0)))
    return Findings(trace.facts.source, tuple(named), trace.losses)


def known_rules() -> dict[str, Rule]:
    """All rules by name."""
    return collect("inferometer.findings", "RULE")


def _named(finding: Finding, runs: Sequence[int | None]) -> Finding:
    """With the run in its title, if it is of one run alone: lines of the log are every run's."""
    if len(runs) > 1 or runs[0] is None:
        return finding
    return replace(finding, title=f"run {runs[0]}: {finding.title}")


def _runs(trace: Trace) -> Iterator[tuple[int | None, Trace]]:
    """The whole, or each of the runs that the engine's log holds: its metrics, steps and sums."""
    runs = trace.facts.engine_metrics.get("runs", ())
    if len(runs) < 2:
        yield None, trace
        return
    for number, metrics in enumerate(runs):
        facts = msgspec.structs.replace(
            trace.facts, engine_metrics=metrics, model=metrics.get("model", trace.facts.model)
        )
        frames = {name: trace.tables.raw(name) for name in trace.tables}
        frames["steps"] = frames["steps"].filter(pl.col("process") == number)
        frames["totals"] = frames["totals"].filter(pl.col("section") == number)
        yield number, Trace(facts, frames, trace.losses, scope=trace.scope)
