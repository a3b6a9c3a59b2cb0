"""A fused kernel that costs more than the kernels it replaces, or moves bytes far slower than others of the run.

Fires on a class that says it is fused (`fused` in the label, or a name known to join operators) where one holds:

- The same role runs unfused elsewhere in the run (often: fused in decode, unfused in prefill), the fused one does no
  more work a pass, and a layer of it takes 1.25 times as long or longer. To the unfused kernel's time all norms,
  activations and element-wise work of its phase are added, spread over the layers, since the fused one may have
  swallowed some.
- With the model's dimensions: its bytes move at less than a third of the best rate that a class of the run reaches.
  Plain matrix-vector kernels of one run lie within a factor of two of each other.

Severity is what would be saved at the parts' time or the best rate, as a share of the run's GPU time: from 0.5 %
`low` (less is hard to measure again), from 3 % `medium`, from 10 % `high`. Attention is left to the rule about KV
positions.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.model.roles import is_attention
from inferometer.findings.evidence.byte_rates import far_below_best
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SLOWER = 1.25
_SCALE = Scale("fused_slower_than_parts", low=0.005, medium=0.03, high=0.10)
_NEXT = (
    "Run it unfused, as separate kernels, and measure; then see how many workgroups the fused one launches: a norm "
    "needs the whole row, which tempts to do all of the product in one."
)
_SWALLOWED = ("norm", "activation", "elementwise")  # families that fused kernels take in


class _Case(msgspec.Struct, frozen=True):
    """One reason to call it slow: what would be saved over the run, and the sentences that show it."""

    saved_ns: float
    evidence: tuple[str, ...]


def _find(evidence: Evidence) -> Iterator[Finding]:
    run_ns = int(evidence.class_times["total_ns"].sum())
    for row in evidence.class_times.iter_rows(named=True):
        name = row["class"]
        if not evidence.is_fused(name) or is_attention(name):
            continue
        parts, rate = _against_parts(evidence, row), _against_rate(evidence, row)
        cases = [case for case in (parts, rate) if case is not None]
        saved_ns = max((case.saved_ns for case in cases), default=0.0)
        severity = _SCALE.severity(saved_ns / run_ns) if run_ns else None
        if severity is None:
            continue
        slower = "slower than its parts" if parts else "far below the best byte rate of the run"
        phase = row["phase"] or "all steps"
        share = f"It takes {format_duration(row['total_ns'])}, {format_share(row['share'])} of the GPU time of {phase}."
        saved = f"So about {format_duration(saved_ns)} of it could be saved."
        yield Finding(
            rule=RULE.name,
            severity=severity,
            title=f"fused kernel {slower}: {name} ({phase})",
            evidence=(share, *(sentence for case in cases for sentence in case.evidence), saved),
            size_ns=row["total_ns"],
            share=row["share"],
            next=_NEXT,
        )


def _against_parts(evidence: Evidence, fused: dict[str, Any]) -> _Case | None:
    """The fused class against the unfused one of the same role that it has to beat most."""
    if fused["role"] is None:
        return None
    ours = _layer_ns(evidence, fused["phase"], fused["class"], typical=False)
    found = []
    for row in evidence.class_times.filter(pl.col("role") == fused["role"]).iter_rows(named=True):
        if evidence.is_fused(row["class"]):
            continue
        theirs = _layer_ns(evidence, row["phase"], row["class"], typical=True)
        scale = _work(evidence, fused["phase"], row["phase"])
        if ours is None or theirs is None or scale is None:
            continue
        rest_ns = _swallowed_ns(evidence, row["phase"], row["layers"])
        limit_ns = (theirs + rest_ns) * scale
        if ours >= _SLOWER * limit_ns:
            found.append((limit_ns, theirs, rest_ns, row))
    if ours is None or not found:
        return None
    limit_ns, theirs, rest_ns, row = min(found, key=lambda each: each[0])
    tokens = _tokens(evidence, row["phase"])
    of = f" for {tokens:,} tokens" if tokens and row["phase"] == "prefill" else ""
    return _Case(
        fused["total_ns"] * (1 - limit_ns / ours),
        (
            (
                f"A layer takes {format_duration(ours)} per pass of {_pass(fused['phase'])}, median; {row['class']} "
                f"takes {format_duration(theirs)} per pass of {_pass(row['phase'])}{of} on the same weights: "
                f"{ours / theirs:.2f}x as long for no more work."
            ),
            (
                f"With all norms, activations and element-wise work of that phase added, {format_duration(rest_ns)} a "
                f"layer, it is still {ours / limit_ns:.2f}x."
            ),
        ),
    )


def _layer_ns(evidence: Evidence, phase: str | None, name: str, *, typical: bool) -> float | None:
    """What a layer takes in one pass, ns, median over steps; `typical`: of the median layer, not of the mean one.

    The parts are taken by their typical layer: where they run once, the first layers wait for their weights.
    """
    a_pass = pl.col("total_ns") / pl.col("passes")
    rows = _in_phase(evidence, phase).filter(pl.col("class") == name, pl.col("layer").is_not_null())
    by_step = rows.group_by("step").agg(a_pass.median() if typical else a_pass.mean())
    found = by_step["total_ns"].median()
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _in_phase(evidence: Evidence, phase: str | None) -> pl.DataFrame:
    return evidence.printed.filter(pl.col("phase").eq_missing(pl.lit(phase)), pl.col("passes") > 0)


def _swallowed_ns(evidence: Evidence, phase: str | None, layers: int) -> float:
    """Time of a pass in kernels that fusing may have taken in, a layer, ns: an upper limit, all of them."""
    small = [name for name, kind in evidence.kinds.items() if kind.family in _SWALLOWED and not evidence.is_fused(name)]
    rows = _in_phase(evidence, phase).filter(pl.col("class").is_in(small))
    by_step = rows.group_by("step").agg((pl.col("total_ns") / pl.col("passes")).sum())
    found = by_step["total_ns"].median()
    return float(found) / max(layers, 1) if isinstance(found, int | float) else 0.0


def _work(evidence: Evidence, ours: str | None, theirs: str | None) -> float | None:
    """By how much the other's time may be multiplied for being fair: tokens of our pass to theirs, at least 1."""
    if ours == theirs or ours == "decode":
        return 1.0
    tokens = _tokens(evidence, ours)
    return float(tokens) if tokens and theirs == "decode" else None


def _tokens(evidence: Evidence, phase: str | None) -> int | None:
    found = evidence.number("prefill_tokens") if phase == "prefill" else None
    return int(found) if found else None


def _pass(phase: str | None) -> str:
    return "one token" if phase == "decode" else phase or "the step"


def _against_rate(evidence: Evidence, fused: dict[str, Any]) -> _Case | None:
    """The fused class against the best byte rate that any class of the run reaches."""
    found = far_below_best(evidence, fused)
    return None if found is None else _Case(found[0], (found[1],))


RULE = Rule("fused_slower_than_parts", _find, (_SCALE,))
