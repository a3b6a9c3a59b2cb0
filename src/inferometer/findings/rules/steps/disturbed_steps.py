"""Steps that took longer than their work explains: something else had the GPU or the host.

Which steps those are is the step table's answer: it fits what a step of its phase and context takes and marks those
far above. Fires when they lost 0.1 % of the wall time of the steps or more: `low`; from 0.5 % `medium` (it shows in a
printed rate), from 10 % `high`. Where no wall time is recorded, GPU time takes its place. Silent about steps whose
phase isn't known, which may have had other work to do, and about those whose ops weren't observed.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_ranges, format_share

_SCALE = Scale("disturbed_steps", low=0.001, medium=0.005, high=0.10)
_LISTED = 8
_EXPLAINED = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.steps is None:
        return
    known = evidence.steps.steps.filter(pl.col("phase").is_not_null())
    steps = _observed(known)
    hit = steps.filter(pl.col("disturbed")).sort("step")
    lost = [max(a or 0, 0) + max(b or 0, 0) for a, b in hit.select("excess_ns", "gap_excess_ns").iter_rows()]
    lost_ns = round(sum(lost))
    whole_ns = int(steps["wall_ns"].sum() or steps["gpu_busy_ns"].sum())
    severity = _SCALE.severity(lost_ns / whole_ns) if whole_ns else None
    if severity is None:
        return
    numbers = hit["step"].to_list()
    each = ", ".join(f"{step}: +{format_duration(ns)}" for step, ns in list(zip(numbers, lost, strict=True))[:_LISTED])
    more = f" and {len(lost) - _LISTED:,} more" if len(lost) > _LISTED else ""
    of = "all steps" if steps.height == known.height else f"the {steps.height:,} steps that were observed"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{hit.height:,} of {steps.height:,} steps took longer than their work explains: "
        f"{format_ranges(numbers)}",
        evidence=(
            (
                f"Beyond what a step of its kind takes, by step: {each}{more}; together {format_duration(lost_ns)}, "
                f"{format_share(lost_ns / whole_ns)} of the time of {of}."
            ),
            *_reasons(hit),
            "Medians and slopes of the steps leave them out.",
        ),
        size_ns=lost_ns,
        share=lost_ns / whole_ns,
        next="See what took longer in them: inferometer steps. If that is nothing of the program's own, measure again "
        "on a quiet machine, and compare medians, not sums.",
    )


def _observed(steps: pl.DataFrame) -> pl.DataFrame:
    """Without steps of which a recording has the times alone: they can't be judged."""
    if "is_partial" not in steps.columns:
        return steps
    return steps.filter(~(pl.col("is_partial").fill_null(value=False) & pl.col("gpu_busy_ns").is_null()))


def _reasons(hit: pl.DataFrame) -> Iterator[str]:
    for step, why in hit.select("step", "why").drop_nulls().head(_EXPLAINED).iter_rows():
        yield f"Step {step}: {why.rstrip('.')}."


RULE = Rule("disturbed_steps", _find, (_SCALE,))
