"""Asks every rule of this folder, and other packages' rules, about each run of a trace.

Gravest first, then by the time at stake; what another finding explains stands right after that (`causes`). A file may
hold several runs: each is looked at alone, since lengths of contexts and medians mean nothing across runs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.timeline.budget import SCHEMA as BUDGET
from inferometer.errors import UnknownName
from inferometer.findings.causes import explain
from inferometer.findings.evidence.turns import Turns, taken_turn
from inferometer.findings.examined import Examined, examine
from inferometer.findings.finding import SEVERITIES, Finding, Severity, changed_thresholds
from inferometer.findings.rule import NEEDED, Evidence, Rule
from inferometer.findings.thresholds import ChangedThreshold, changed_of, say_changed
from inferometer.registry import collect
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.roofline.table import Roofline
    from inferometer.analyses.steps.table import StepTable
    from inferometer.architectures import Model
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence
    from inferometer.hardware import Device

Made = TypeVar("Made")
_AT_ONCE = 2  # rules
_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("rule", "severity", "title"), pl.String()),
        "evidence": pl.List(pl.String),
        "size_ns": pl.Int64(),
        "share": pl.Float64(),
        **dict.fromkeys(("next", "explained_by"), pl.String()),
        "idle_ns": pl.Int64(),
        "parts": pl.List(pl.String),
    }
)


@dataclass(frozen=True)
class Findings(Result):
    """`findings`: gravest first. None is an answer, too: `examined` says what was looked at.

    `budget`: where the devices' time went, of `analyses.timeline.budget`; empty where no launches were looked at.
    `left_out` counts those that were asked not to be listed. `roofline`: of the first run, where a rule asked for it.
    `thresholds`: those that were set to others than the rules' own.
    """

    view: ClassVar[str] = "findings"
    source: str
    findings: tuple[Finding, ...]
    losses: Losses
    examined: Examined
    budget: pl.DataFrame
    left_out: int = 0
    roofline: "Roofline | None" = None
    thresholds: tuple[ChangedThreshold, ...] = ()

    def head(self, top: int) -> "Findings":
        """The first ones alone."""
        return replace(self, findings=self.findings[:top], left_out=max(0, len(self.findings) - top))

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Those of this severity or a graver one."""
        grave = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(finding for finding in self.findings if finding.severity in grave)

    @property
    def causes(self) -> tuple[Finding, ...]:
        """Those that no other explains."""
        return tuple(finding for finding in self.findings if finding.explained_by is None)

    def as_json(self) -> dict[str, Any]:
        """The findings with all evidence."""
        return {
            "source": self.source,
            "findings": [finding.as_json() for finding in self.findings],
            "left_out": self.left_out,
            "examined": self.examined.as_json(),
            "thresholds": [each.as_json() for each in self.thresholds],
            "device_time_budget": self.budget.to_dicts(),
            "losses": self.losses.as_dict(),
        }

    def to_polars(self) -> pl.DataFrame:
        """One row a finding."""
        return pl.DataFrame([finding.as_json() for finding in self.findings], schema=_SCHEMA, orient="row")


def find_findings(
    trace: Trace,
    *,
    model: "Model | None" = None,
    device: "Device | None" = None,
    bandwidths: Sequence[float] = (),
    steps: "StepTable | None" = None,
    rules: Collection[str] = (),
    launches: "LaunchEvidence | None" = None,
    most_launches: int | None = None,
    thresholds: Mapping[str, float] = MappingProxyType({}),
    beside: Callable[[], None] | None = None,
) -> Findings:
    """What to look at first in a run.

    Args:
        trace: Needs the tables of `rule.NEEDED`.
        model: Dimensions of the model that ran; None: the bundled ones of the name in the file, where they agree.
        device: What it ran on, if the user knows.
        bandwidths: Memory bandwidths to bracket an unknown device with, bytes/s.
        steps: The steps of the trace's first run, where they are made already.
        rules: Ask these alone; none: all.
        launches: What the analyses make of the trace's launches, where somebody asks them besides the rules.
        most_launches: Don't ask about launches where the trace has more.
        thresholds: Shares to judge by in place of the rules' own, by name (`idle_device.low`).
        beside: Called on a thread as soon as all rules were begun, when there is nothing that these could do meanwhile.

    Raises:
        InputError: One of these tables was not read, or there is no such threshold.
        UnknownName: There is no such rule.
    """
    trace.require(NEEDED)
    asked = _asked(rules)
    changed = changed_of(known_rules().values(), thresholds)
    found: dict[Finding, list[int | None]] = {}
    looked_at: list[LaunchEvidence | None] = []
    for run, part in _runs(trace):
        is_whole = run is None
        evidence = Evidence(
            part,
            model=model,
            device=device,
            bandwidths=bandwidths,
            steps=steps if is_whole else None,
            launches=launches if is_whole else None,
            most_launches=most_launches,
        )
        with changed_thresholds({each.name: each.value for each in changed}):
            first: list[Callable[[], None]] = []
            last = [beside] if beside else []
            if (launched := evidence.launches) is not None:
                if not rules:
                    first.append(partial(_make_steps, launched))
                last.append(partial(_make_budget, launched))
            for finding in _ask(asked, evidence, first, last):
                found.setdefault(finding, []).append(run)
        beside = None
        looked_at.append(launched)
    named = explain([_named(_judged(finding, changed), runs) for finding, runs in found.items()])
    return Findings(
        source=trace.facts.source,
        findings=tuple(named),
        losses=trace.losses,
        examined=examine(trace, len(asked), looked_at, named, of_all_rules=not rules),
        roofline=next((made for each in looked_at if each is not None and (made := each.made_roofline)), None),
        budget=pl.concat([pl.DataFrame(schema=BUDGET), *(each.budget for each in looked_at if each is not None)]),
        thresholds=changed,
    )


def known_rules() -> dict[str, Rule]:
    """All rules by name."""
    return collect("inferometer.findings.rules", "RULE", group="inferometer.findings", deep=True)


def _asked(names: Collection[str]) -> list[Rule]:
    known = known_rules()
    for name in names:
        if name not in known:
            raise UnknownName("rule", name, known)
    return [rule for name, rule in known.items() if not names or name in names]


def _make_steps(launches: "LaunchEvidence") -> None:
    _ = launches.steps


def _make_budget(launches: "LaunchEvidence") -> None:
    _ = launches.budget


def _ask(
    rules: Sequence[Rule], evidence: Evidence, first: Sequence[Callable[[], None]], last: Sequence[Callable[[], None]]
) -> Iterator[Finding]:
    """What rules find, in their order; `_AT_ONCE` work at once, besides those that wait for what another makes.

    What is to be made anyway is begun `first`, or `last` where rules ask for most that it needs.
    """
    turns = Turns(_AT_ONCE)

    def find(rule: Rule) -> list[Finding]:
        return list(rule.find(evidence))

    def in_turn(make: Callable[[], Made]) -> Made:
        with taken_turn(turns):
            return make()

    def begin(make: Callable[[], Made]) -> Future[Made]:
        turns.acquire()  # before there is a thread for it: most work is done by the two that worked before
        return pool.submit(copy_context().run, in_turn, make)  # threads have no thresholds of their own

    with ThreadPoolExecutor(len(first) + len(rules) + len(last)) as pool:
        others = [begin(each) for each in first]
        asked = [begin(partial(find, rule)) for rule in rules]
        others += [begin(each) for each in last]
        for each in asked:
            yield from each.result()
        for other in others:
            other.result()


def _judged(finding: Finding, changed: Sequence[ChangedThreshold]) -> Finding:
    """With a sentence on thresholds that aren't its rule's own."""
    said = say_changed(changed, finding.rule)
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, *said)) if said else finding


def _named(finding: Finding, runs: Sequence[int | None]) -> Finding:
    """With the run in its title, if it is of one run alone: lines of the log are every run's."""
    if len(runs) > 1 or runs[0] is None:
        return finding
    return msgspec.structs.replace(finding, title=f"run {runs[0]}: {finding.title}")


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
