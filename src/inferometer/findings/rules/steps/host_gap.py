"""Wall time of the steps in which the GPU did nothing; of runs on a CPU, in which no op did.

Fires when, over all decode steps, the gaps are 3 % of the wall time or more: `low`; from 5 % `medium`, from 25 %
`high`. Engines that keep the queue filled stay below 3 %. Where launches say, the wall time of a step is its window,
until its work has ended, whenever its mark ends on the host (`analyses.steps.sources.RunSteps`). Sums that a source
prints may hold work that overlaps; then the gap is a lower limit. A gap that doesn't vary with the GPU's work and is
about the same in each step (the middle half within a quarter of the median) is paid once per step.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale("host_gap", low=0.03, medium=0.05, high=0.25)
_FEW = 5  # steps; a correlation of fewer says nothing
_STEADY = 0.25  # of the median, between the quartiles
_UNRELATED = 0.5  # correlation below which the work explains less than a quarter of how the gap varies


class _Words(NamedTuple):
    """What the work is called where a GPU does it, and where ops on the CPU are all that was recorded."""

    title: str
    outside: str
    whose: str
    next: str
    next_if_fixed: str


_OF_GPU = _Words(
    title="{} of decode's wall time is outside GPU work",
    outside="Outside GPU work",
    whose="the GPU's work",
    next="Record the host's side of a step, and see what it does while the GPU waits.",
    next_if_fixed="Put more tokens into a step, or queue the next step before reading the last one back.",
)
_OF_CPU = _Words(
    title="{} of decode's wall time is between the CPU's ops",
    outside="Outside ops",
    whose="the ops' time",
    next="See which modules it is in: inferometer tree.",
    next_if_fixed="Put more tokens into a step, or compile the model if it is time of Python: inferometer tree.",
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    steps = evidence.decode_steps
    if "gap_ns" not in steps.columns:
        return
    steps = steps.drop_nulls(["gap_ns", "window_ns", "gpu_busy_ns"])
    wall_ns, gap_ns = int(steps["window_ns"].sum()), int(steps["gap_ns"].sum())
    severity = _SCALE.severity(gap_ns / wall_ns) if wall_ns > 0 else None
    if severity is None:
        return
    quiet = steps.filter(~pl.col("disturbed"))
    quiet = quiet if quiet.height else steps
    middle, low, high = (quiet["gap_ns"].quantile(q, "linear") for q in (0.5, 0.0, 1.0))
    share = gap_ns / wall_ns
    words = _OF_CPU if evidence.is_on_cpu else _OF_GPU
    gaps = (
        f"{words.outside}: median {format_duration(middle)} per step ({format_duration(low)} to "
        f"{format_duration(high)} over {quiet.height:,} undisturbed decode steps)"
    )
    a_token = (quiet["gap_ns"] / quiet["tokens"]).median() if quiet["tokens"].null_count() == 0 else None
    of = f", {format_duration(a_token)} per token" if isinstance(a_token, int | float) else ""
    relation, is_fixed = _relation(quiet, words)
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=words.title.format(format_share(share)),
        evidence=(
            f"{gaps}{of}.",
            f"Together {format_duration(gap_ns)} of {format_duration(wall_ns)} over all {steps.height:,} steps.",
            *relation,
        ),
        size_ns=gap_ns,
        share=share,
        next=words.next_if_fixed if is_fixed else words.next,
    )


def _relation(steps: pl.DataFrame, words: "_Words") -> tuple[tuple[str, ...], bool]:
    """Whether the gap varies with the work, or at all; true where it is about the same in each step."""
    if steps.height < _FEW:
        return (), False
    gap, busy = steps["gap_ns"].to_numpy(), steps["gpu_busy_ns"].to_numpy()
    varies = gap.std() > 0 and busy.std() > 0
    r = float(np.corrcoef(gap, busy)[0, 1]) if varies else 0.0
    if abs(r) >= _UNRELATED:
        return (f"It varies with {words.whose} (r = {r:.2f}).",), False
    low, middle, high = (float(each) for each in np.quantile(gap, (0.25, 0.5, 0.75)))
    is_fixed = high - low <= _STEADY * middle
    so = "is about the same in each step" if is_fixed else "is not the same in each step"
    half = f"the middle half have {format_duration(low)} to {format_duration(high)}"
    return (f"It doesn't vary with {words.whose} (r = {r:.2f}) and {so}: {half}.",), is_fixed


RULE = Rule("host_gap", _find, (_SCALE,))
