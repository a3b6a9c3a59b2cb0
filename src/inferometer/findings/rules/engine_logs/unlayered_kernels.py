"""Kernels whose labels show neither layer nor how often they ran, in reports that have layers for others. `info`.

Their time can't be distinguished by layer, and a time per call needs the model's dimensions.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_share

_ONCE = ("sampling", "gather_scatter")  # families that run once per token: a layer would say nothing


def _find(evidence: Evidence) -> Iterator[Finding]:
    classes = evidence.class_times.with_columns(pl.col("layers").max().over("class"))
    if classes.is_empty() or not classes["layers"].max():
        return
    counts = evidence.trace.totals.filter(pl.col("count").is_not_null()).select(pl.len()).collect().item()
    once = [name for name, kind in evidence.kinds.items() if kind.family in _ONCE]
    named = classes.filter(pl.col("layers") == 0, pl.col("role").is_null(), ~pl.col("class").is_in(once))
    if counts or named.is_empty():
        return
    names = sorted(set(named["class"]))
    share = int(named["total_ns"].sum()) / max(int(classes["total_ns"].sum()), 1)
    yield Finding(
        rule=RULE.name,
        severity="info",
        title=f"labels without layer and count: {', '.join(names)}",
        evidence=(f"{format_share(share)} of the GPU time in the reports is theirs; other labels have layers.",),
        size_ns=int(named["total_ns"].sum()),
        share=share,
        next="Give these labels their layer, or print how often each ran.",
    )


RULE = Rule("unlayered_kernels", _find)
