"""The last decode step, which often has fewer tokens than the others: is it as quick a token as they are?

`info` where a token of it takes within 10 % of what its context lets expect. Above that `low`, from 1 % of decode's
GPU time `medium`: a fixed cost a step would show here first. Silent where the last step is as large as the others.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.steps.growth import ALL
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_counted, format_duration, format_share

_ODD = 0.10
_SCALE = Scale("tail_step", low=0.0, medium=0.01)
_NEIGHBOURS = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    steps = evidence.decode_steps
    if evidence.steps is None or steps.height <= _NEIGHBOURS or steps["tokens"].null_count():
        return
    tail = steps.row(-1, named=True)
    usual = steps["tokens"].mode().max()
    if not tail["tokens"] or not isinstance(usual, int) or tail["tokens"] >= usual or tail["gpu_busy_ns"] is None:
        return
    expected, how = _expected(evidence, tail["mean_kv"])
    if not expected:
        return
    found = tail["gpu_busy_ns"] / tail["tokens"]
    beyond = (found - expected) * tail["tokens"]
    is_odd = found > (1 + _ODD) * expected
    severity: Severity = "info"
    size = format_counted(tail["tokens"], "token")
    if is_odd:
        severity = _SCALE.severity(beyond / max(evidence.gpu_ns("decode"), 1)) or "info"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"the last step, of {size}, takes {_against(found / expected, is_odd)} per token",
        evidence=(
            (
                f"Step {tail['step']}: {format_duration(found)} of GPU time per token against "
                f"{format_duration(expected)} ({how}), {format_share(abs(found / expected - 1))} "
                f"{'more' if found > expected else 'less'}; most steps have {usual} tokens."
            ),
        ),
        size_ns=round(beyond) if is_odd else None,
        next="Look for work that is done once a step whatever its size." if is_odd else "Nothing.",
    )


def _against(ratio: float, is_odd: bool) -> str:
    return f"{format_share(ratio - 1)} longer than expected" if is_odd else "about as long as expected"


def _expected(evidence: Evidence, mean_kv: float | None) -> tuple[float | None, str]:
    """GPU time per token of a step here, ns: by the growth with context, or as in the steps before."""
    growth = evidence.steps.growth.filter(pl.col("class") == ALL) if evidence.steps else pl.DataFrame()
    row = growth.row(0, named=True) if growth.height else {"slope_ns": None}
    if row["slope_ns"] is not None and mean_kv is not None:
        return row["intercept_ns"] + row["slope_ns"] * mean_kv, f"expected at {mean_kv:,.1f} KV positions"
    before = evidence.quiet_steps.filter(pl.col("step") < evidence.decode_steps["step"].max()).tail(_NEIGHBOURS)
    found = (before["gpu_busy_ns"] / before["tokens"]).median()
    return (float(found) if isinstance(found, int | float) else None), f"median of the {before.height} before"


RULE = Rule("tail_step", _find, (_SCALE,))
