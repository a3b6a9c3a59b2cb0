"""Wall time of the steps in which the GPU did nothing of them.

Fires when, over all decode steps, wall time minus GPU time is 3 % of the wall time or more: `low`; from 5 % `medium`,
from 25 % `high`. Engines that keep the queue filled stay below 3 %. Sums that a source prints may hold work that
overlaps; then the gap is a lower limit. Whether the gap grows with the GPU's work tells what it is: one that doesn't
is paid once a step.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale(low=0.03, medium=0.05, high=0.25)
_FEW = 5  # steps; a correlation of fewer says nothing
_UNRELATED = 0.5  # correlation below which the work explains less than a quarter of how the gap varies


def _find(evidence: Evidence) -> Iterator[Finding]:
    steps = evidence.decode_steps
    if "gap_ns" not in steps.columns:
        return
    steps = steps.drop_nulls(["gap_ns", "wall_ns", "gpu_busy_ns"])
    wall_ns, gap_ns = int(steps["wall_ns"].sum()), int(steps["gap_ns"].sum())
    severity = _SCALE.severity(gap_ns / wall_ns) if wall_ns > 0 else None
    if severity is None:
        return
    quiet = steps.filter(~pl.col("disturbed"))
    quiet = quiet if quiet.height else steps
    middle, low, high = (quiet["gap_ns"].quantile(q, "linear") for q in (0.5, 0.0, 1.0))
    share = gap_ns / wall_ns
    gaps = (
        f"Wall minus GPU time: median {format_duration(middle)} a step ({format_duration(low)} to "
        f"{format_duration(high)} over {quiet.height:,} undisturbed decode steps)"
    )
    a_token = (quiet["gap_ns"] / quiet["tokens"]).median() if quiet["tokens"].null_count() == 0 else None
    of = f", {format_duration(a_token)} a token" if isinstance(a_token, int | float) else ""
    relation, is_fixed = _relation(quiet)
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"the GPU waits for {format_share(share)} of decode's wall time",
        evidence=(
            f"{gaps}{of}.",
            f"Together {format_duration(gap_ns)} of {format_duration(wall_ns)} over all {steps.height:,} steps.",
            *relation,
        ),
        size_ns=gap_ns,
        share=share,
        next="Put more tokens into a step, or queue the next step before reading the last one back."
        if is_fixed
        else "Record the host's side of a step, and see what it does while the GPU waits.",
    )


def _relation(steps: pl.DataFrame) -> tuple[tuple[str, ...], bool]:
    """Whether the gap goes with the GPU's work, in words; true where it doesn't."""
    gap, busy = steps["gap_ns"].to_numpy(), steps["gpu_busy_ns"].to_numpy()
    if steps.height < _FEW or not (gap.std() > 0 and busy.std() > 0):
        return (), True
    r = float(np.corrcoef(gap, busy)[0, 1])
    if abs(r) < _UNRELATED:
        return (f"It doesn't go with the GPU's work (r = {r:.2f}): it is paid once a step.",), True
    return (f"It goes with the GPU's work (r = {r:.2f}).",), False


RULE = Rule("host_gap", _find)
