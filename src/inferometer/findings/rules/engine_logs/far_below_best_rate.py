"""A kernel that reads weights far slower than the best one of the run does.

Fires on an unfused class of decode steps that moves its bytes at less than a third of the best rate of the run;
plain matrix-vector kernels of one run lie within a factor of two of each other. What needs less than 20 μs a call
at that rate is bound by its launch and left out. Needs the model's dimensions. Severity is what would be saved at
the best rate, as a share of the run's GPU time: from 0.5 % `low`, from 3 % `medium`, from 10 % `high`. Fused
classes and attention have rules of their own; in a prefill, arithmetic may bind.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.model.roles import is_attention
from inferometer.findings.evidence.byte_rates import far_below_best
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale("far_below_best_rate", low=0.005, medium=0.03, high=0.10)


def _find(evidence: Evidence) -> Iterator[Finding]:
    run_ns = max(int(evidence.class_times["total_ns"].sum()), 1)
    for row in evidence.class_times.filter(pl.col("phase") == "decode").iter_rows(named=True):
        name = row["class"]
        if evidence.is_fused(name) or is_attention(name):
            continue
        saved_ns, sentence = far_below_best(evidence, row) or (0.0, "")
        severity = _SCALE.severity(saved_ns / run_ns)
        if severity is None:
            continue
        yield Finding(
            rule=RULE.name,
            severity=severity,
            title=f"far below the best byte rate of the run: {name} (decode)",
            evidence=(
                f"It takes {format_duration(row['total_ns'])}, {format_share(row['share'])} of decode's GPU time.",
                sentence,
                f"So about {format_duration(saved_ns)} of it could be saved.",
            ),
            size_ns=row["total_ns"],
            share=row["share"],
            next="Compare its variant and workgroups with those of the class that reaches the best rate.",
        )


RULE = Rule("far_below_best_rate", _find, (_SCALE,))
