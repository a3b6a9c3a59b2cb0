"""Kernels ran that the engine's own account of its choices doesn't have.

An engine that logs why it chose a kernel should log it for every operator. Fires where choices or a plan are logged:

- A fused class ran and no choice is logged for its operator, nor a variant with its name: something swapped planned
  operators for it unsaid. `medium` from 10 % of the phase's GPU time, else `low`.
- A choice is logged for an operator that no report names, not even within a longer word, in a log that is whole:
  `low`.
- Other operators without a logged choice: `info`.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_share

_SCALE = Scale("plan_differs_from_execution", low=0.0, medium=0.10)


def _find(evidence: Evidence) -> Iterator[Finding]:
    classes = evidence.class_times
    if classes.is_empty() or (evidence.selections.is_empty() and "kernel_path" not in evidence.metrics):
        return
    chosen = set(evidence.selections["op"])
    variants = " ".join(evidence.selections["variant"])
    logged = [op for op in classes["op"].unique() if op in chosen or op in variants]
    unsaid = classes.filter(~pl.col("op").is_in(logged))
    swapped = unsaid.filter(pl.col("class").is_in([name for name in unsaid["class"] if evidence.is_fused(name)]))
    if swapped.height:
        yield from _swapped(evidence, swapped)
    never = sorted(op for op in chosen if not any(op in ran for ran in classes["op"].unique()))
    if never and not evidence.trace.losses.total("truncated"):
        yield _finding("low", f"chosen, but in no report: {', '.join(never)}", (_choices(evidence),))
    rest = sorted(set(unsaid["op"]) - set(swapped["op"]))
    if rest:
        whole_ns = int(classes["total_ns"].sum())
        share = int(unsaid.filter(pl.col("op").is_in(rest))["total_ns"].sum()) / max(whole_ns, 1)
        took = f"They took {format_share(share)} of the GPU time."
        yield _finding("info", f"no choice is logged for {', '.join(rest)}", (took, _choices(evidence)))


def _swapped(evidence: Evidence, swapped: pl.DataFrame) -> Iterator[Finding]:
    by_phase = swapped.group_by("phase", maintain_order=True).agg("class", pl.col("share", "total_ns").sum())
    worst = by_phase.sort("share", descending=True).row(0, named=True)
    names = ", ".join(sorted(set(swapped["class"])))
    ran = f"{', '.join(worst['class'])}: {format_share(worst['share'])} of the GPU time of {worst['phase'] or 'all'}"
    if (severity := _SCALE.severity(worst["share"])) is None:
        return
    yield _finding(
        severity,
        f"kernels ran that no logged choice has: {names}",
        (f"{ran}, with no choice logged.", _choices(evidence), *_plan(evidence), *_replaced(evidence, worst["phase"])),
        int(swapped["total_ns"].sum()),
        worst["share"],
    )


def _choices(evidence: Evidence) -> str:
    choices = evidence.selections.select("op", "variant").unique(maintain_order=True).iter_rows()
    return f"Choices logged: {', '.join(f'{op} ({variant})' for op, variant in choices) or 'none'}."


def _plan(evidence: Evidence) -> Iterator[str]:
    """The plan as printed, next to how many operators the reports of decode name."""
    steps, kernels = evidence.number("kernel_path", "decode_steps"), evidence.number("kernel_path", "kernels")
    ops = evidence.class_times.filter(pl.col("phase") == "decode")["op"].n_unique()
    if steps is not None and kernels is not None and ops:
        yield f"The plan has {steps} decode steps with {kernels} kernels; the reports of decode name {ops} operators."


def _replaced(evidence: Evidence, phase: str | None) -> Iterator[str]:
    """What other phases run as kernels of their own and this one doesn't."""
    classes = evidence.class_times
    ours = classes.filter(pl.col("phase").eq_missing(pl.lit(phase)))
    others = classes.filter(pl.col("phase").ne_missing(pl.lit(phase)))
    gone = sorted(set(others["class"]) - set(ours["class"]))
    if gone:
        yield f"Only outside {phase or 'these steps'} run: {', '.join(gone)}."


def _finding(
    severity: Severity, title: str, evidence: tuple[str, ...], size_ns: int | None = None, share: float | None = None
) -> Finding:
    return Finding(
        rule=RULE.name,
        severity=severity,
        title=title,
        evidence=evidence,
        size_ns=size_ns,
        share=share,
        next="Log every choice with its reason, and compare the plan with the labels that ran.",
    )


RULE = Rule("plan_differs_from_execution", _find, (_SCALE,))
