"""One part of sampling that costs far more than its siblings, though it works on less.

Sampling on the GPU goes in phases: the first reads all logits, later ones what is left of them. Fires when a class of
the sampling family takes 10 times the median of its siblings of the same phase or more, and 0.2 % of that phase's GPU
time: `low`; from 2 % `medium`, from 10 % `high`. A factor of ten is beyond what launching costs; it is one thread
working through a list. A class that is launched as several workgroups is none, where launches show that.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.names.engine_labels import class_of_label
from inferometer.units import format_duration, format_share

_DEAR = 10.0
_SCALE = Scale("serial_sampling", low=0.002, medium=0.02, high=0.10)
_WORDS = ("sample", "sampling", "top_k", "topk", "top_p", "argmax")


def _find(evidence: Evidence) -> Iterator[Finding]:
    names = [name for name in evidence.kinds if _is_sampling(evidence, name)]
    found = evidence.class_times.filter(pl.col("class").is_in(names))
    for row in found.iter_rows(named=True):
        siblings = found.filter(pl.col("phase").eq_missing(pl.lit(row["phase"])), pl.col("class") != row["class"])
        usual = siblings["total_ns"].median()
        severity = _SCALE.severity(row["share"])
        if severity is None or not isinstance(usual, int | float) or not usual or row["total_ns"] < _DEAR * usual:
            continue
        if _is_spread(evidence, row["class"]):
            continue
        each = ", ".join(
            f"{row['total_ns'] / other:.0f}x {name}"
            for name, other in siblings.select("class", "total_ns").iter_rows()
            if other
        )
        yield Finding(
            rule=RULE.name,
            severity=severity,
            title=f"one phase of sampling is expensive: {row['class']}",
            evidence=(
                (
                    f"{format_duration(row['total_ns'])} in {row['phase'] or 'all steps'}"
                    f"{_a_token(evidence, row['total_ns'], row['phase'])}: {each}."
                ),
                f"That is {format_share(row['share'])} of the GPU time.",
            ),
            size_ns=row["total_ns"],
            share=row["share"],
            next="See whether one thread merges the candidates; a tree over the workgroup does it in few steps.",
        )


def _is_spread(evidence: Evidence, name: str) -> bool:
    """Whether any launch of the class has several workgroups."""
    kernels = evidence.trace.launches.filter(pl.col("grid").is_not_null()).select("kernel", "grid").unique().collect()
    grids = (grid for kernel, grid in kernels.iter_rows() if kernel is not None and class_of_label(kernel) == name)
    return any(max(grid) > 1 for grid in grids)


def _is_sampling(evidence: Evidence, name: str) -> bool:
    return evidence.kinds[name].family == "sampling" or any(word in name.lower() for word in _WORDS)


def _a_token(evidence: Evidence, total_ns: int, phase: str | None) -> str:
    steps = evidence.decode_steps
    tokens = int(steps["tokens"].sum()) if phase == "decode" and steps.height else 0
    return f", {format_duration(total_ns / tokens)} per token" if tokens else ""


RULE = Rule("serial_sampling", _find, (_SCALE,))
