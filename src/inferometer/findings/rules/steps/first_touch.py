"""The first layers of the first pass take longer than the others: their weights are touched for the first time.

Compares each layer's time in the first step with the median layer of the same class. Fires when the leading layers
(from the first on, as long as the sum of a layer is 1.3 times the median or more) lose 2 % of that step's GPU time:
`low`; from 20 % `medium`. Silent where the same layers are as slow in later steps: then they are different, not cold.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_ranges, format_share

_COLD = 1.3
_LEAST_LAYERS = 4
_SCALE = Scale("first_touch", low=0.02, medium=0.20)


def _find(evidence: Evidence) -> Iterator[Finding]:
    rows = evidence.printed.with_columns(pl.col("layer").cast(pl.Int64, strict=False))
    first = rows["step"][0] if rows.height else 0
    cold = _skew(rows.filter(pl.col("step") == first))
    later = _skew(rows.filter(pl.col("step") > first)) if rows.height else cold
    leading = _leading(cold)
    warm = later.filter(pl.col("layer").is_in(leading.implode()))["skew"].max()
    if leading.is_empty() or not isinstance(warm, int | float) or warm >= _COLD:
        return
    lost_ns = int(cold.filter(pl.col("layer").is_in(leading.implode()))["lost_ns"].sum())
    whole_ns = int(rows.filter(pl.col("step") == first)["total_ns"].sum())
    severity = _SCALE.severity(lost_ns / whole_ns)
    if severity is None:
        return
    layers = format_ranges(leading.to_list())
    worst = cold.row(0, named=True)
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"the first pass is slow in its first layers ({layers})",
        evidence=(
            (
                f"Layer {worst['layer']} takes {worst['skew']:.1f}x the median layer in step {first}, and at most "
                f"{warm:.2f}x in later steps."
            ),
            (
                f"Layers {layers} lose {format_duration(lost_ns)}, {format_share(lost_ns / whole_ns)} of its GPU time."
                f"{_widest(rows, first, worst['layer'])}"
            ),
        ),
        size_ns=lost_ns,
        share=lost_ns / whole_ns,
        next="Run one token through the model after loading: the first prompt then finds weights and pipelines warm.",
    )


def _skew(rows: pl.DataFrame) -> pl.DataFrame:
    """Per layer: its time over what it would be with the median layer of each of its classes, and the excess."""
    a_layer = rows.drop_nulls("layer").group_by("class", "layer").agg(pl.col("total_ns").sum())
    usual = pl.col("total_ns").median().over("class")
    return (
        a_layer.with_columns(usual.alias("usual_ns"))
        .filter(pl.len().over("class") >= _LEAST_LAYERS)
        .group_by("layer")
        .agg(pl.col("total_ns", "usual_ns").sum())
        .with_columns(
            (pl.col("total_ns") / pl.col("usual_ns")).alias("skew"),
            (pl.col("total_ns") - pl.col("usual_ns")).alias("lost_ns"),
        )
        .sort("layer")
    )


def _leading(cold: pl.DataFrame) -> pl.Series:
    """The layers from the first on that are slow, without a gap."""
    is_slow = (cold["skew"] >= _COLD).to_list()
    end = is_slow.index(False) if False in is_slow else 0  # all slow can't be, against their own median
    return cold["layer"][:end]


def _widest(rows: pl.DataFrame, step: object, layer: int) -> str:
    """The class that is furthest from its median in the first layer."""
    at = rows.filter(pl.col("step") == step).drop_nulls("layer")
    usual = at.group_by("class").agg(pl.col("total_ns").median().alias("usual_ns"))
    found = at.filter(pl.col("layer") == layer).join(usual, on="class").filter(pl.col("usual_ns") > 0)
    if found.is_empty():
        return ""
    ratio = pl.col("total_ns") / pl.col("usual_ns")
    row = found.with_columns(ratio.alias("ratio")).sort("ratio", descending=True).row(0, named=True)
    return f" Widest in {row['class']}: {format_duration(row['total_ns'])} against {format_duration(row['usual_ns'])}."


RULE = Rule("first_touch", _find, (_SCALE,))
