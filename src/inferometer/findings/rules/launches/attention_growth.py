"""Attention kernels that take longer and longer as the run goes on.

Looks at launches that are alike (one kernel, grid and block on one device), of attention that may decode, in the
order of time: at least 8 steps, or 400 launches where steps aren't known, so that layers of one pass aren't taken for
a trend. A Theil-Sen line goes through them (of `analyses.steps.drift`: through medians of stretches). Fires where the
whole 99 % interval of its slope is above 0, and the line gains 5 % or more from the first launch to the last: in
twelve healthy runs of constant context it gained 2 % at most, and no interval left out 0.

The size is what these launches take, on their lines, beyond their number times the line's start: what growth alone
costs. Severity is its share of all GPU time: from 2 % `low`, from 6 % `medium`, from 15 % `high`. Reading a longer KV
cache takes longer: some growth is normal. The evidence says when attention will have doubled, if it goes on so.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.steps.drift import slope_interval
from inferometer.findings.evidence.kernel_rows import Ints, KernelRows
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("attention_growth", low=0.02, medium=0.06, high=0.15)
_FAMILIES = ("attention", "attention_decode")
_STEPS = 8
_LAUNCHES = 400  # without steps
_GAIN = 0.05
_LEAST_SHARE = 0.01  # of all GPU time, of launches that are looked at
_MOST_GROUPS = 100
_SHOWN = 2


class _Line(msgspec.Struct, frozen=True):
    """ns of the first launch, and what each further one takes longer, with the interval of that."""

    start: float
    slope: float
    low: float
    high: float


class _Growing(msgspec.Struct, frozen=True):
    """Alike launches, and their line over the number of the launch; `steps` that have any, None where none is known."""

    kernel: int
    node: int
    count: int
    steps: int | None
    line: _Line
    extra_ns: float

    @property
    def gain(self) -> float:
        """From the first launch to the last, as a share of the start."""
        return self.line.slope * (self.count - 1) / self.line.start


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    rows = launches.rows
    attention = np.flatnonzero(rows.of_family(*_FAMILIES))
    growing = sorted(_growing(launches, rows, attention), key=lambda each: -each.extra_ns)
    extra_ns = sum(each.extra_ns for each in growing)
    share = extra_ns / launches.total_ns
    severity = _SCALE.severity(share)
    if severity is None:
        return
    first = growing[0]
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"attention grows over the run, by {format_share(first.gain)}: {rows.known[first.kernel].short_name}",
        evidence=(
            *(sentence for each in growing[:_SHOWN] for sentence in _sentences(rows, each)),
            (
                f"On {_lines(len(growing))} {format_duration(extra_ns)} longer in all than if each took as long as at "
                f"first: {format_share(share)} of the GPU time."
            ),
            *_with_context(launches, rows, first),
        ),
        size_ns=round(extra_ns),
        share=share,
        next=(
            "Compare the growth with that of the context: see whether attention reads more of the KV cache than a step "
            f"needs, and whether its kernel splits the cache over the GPU{launches.origins.describe_node(first.node)}."
        ),
    )


def _growing(launches: "LaunchEvidence", rows: KernelRows, attention: Ints) -> Iterator[_Growing]:
    """The groups of alike launches whose line rises beyond its noise, of enough steps to have a trend over these."""
    if not len(attention):
        return
    step = launches.steps_of_rows if len(launches.step_starts_ns) else None
    like = ("rank", "device", "kernel", "shape_hash")
    chosen = rows.work[attention].select(like).with_columns(pl.Series("row", attention))
    sums = chosen.with_columns(pl.Series("dur_ns", rows.dur_ns[attention])).group_by(like).agg("row", pl.sum("dur_ns"))
    large = sums.filter(pl.col("dur_ns") >= _LEAST_SHARE * launches.total_ns).sort("dur_ns", descending=True)
    for rows_of_group in large.head(_MOST_GROUPS)["row"]:
        group = rows_of_group.to_numpy()
        group = group[np.argsort(rows.start_ns[group], kind="stable")]
        steps = None if step is None else len(np.unique(step[group]))
        lasts = len(group) >= _LAUNCHES if steps is None else steps >= _STEPS
        found = _grows(rows, group, steps) if lasts else None
        if found is not None:
            yield found


def _grows(rows: KernelRows, group: Ints, steps: int | None) -> _Growing | None:
    number, dur_ns = np.arange(len(group), dtype=np.float64), rows.dur_ns[group].astype(np.float64)
    slope, low, high = slope_interval(number, dur_ns)
    start_ns = float(np.median(dur_ns - slope * number))
    if start_ns <= 0 or low <= 0 or slope * (len(group) - 1) < _GAIN * start_ns:
        return None
    extra_ns = slope * len(group) * (len(group) - 1) / 2
    line = _Line(start_ns, slope, low, high)
    return _Growing(int(rows.kernel[group[0]]), int(rows.node[group[0]]), len(group), steps, line, extra_ns)


def _sentences(rows: KernelRows, each: _Growing) -> Iterator[str]:
    name, end_ns = rows.known[each.kernel].short_name, each.line.start * (1 + each.gain)
    yield (
        f"{name}: a line through {each.count:,} alike launches rises from {format_duration(each.line.start)} to "
        f"{format_duration(end_ns)}, by {format_duration(each.line.slope * 1000)} every 1,000 launches "
        f"({format_duration(each.line.low * 1000)} to {format_duration(each.line.high * 1000)}, 99 %)."
    )
    when = "On this line" if each.gain >= 1 else "If it goes on so"
    doubled, more = f"{when}, a launch takes twice as long as at first", each.line.start / each.line.slope
    if each.steps is None:
        yield f"{doubled} after {more:,.0f} launches."
    else:
        a_step = each.count / each.steps
        yield (
            f"{doubled} after {more / a_step:,.0f} steps with such launches; the run has {each.steps:,}, and from one "
            f"to the next a launch takes {format_duration(each.line.slope * a_step)} longer on average."
        )


def _lines(count: int) -> str:
    """Of all that grow; more of them than are shown are counted."""
    if count > _SHOWN:
        return f"their lines, all {count:,} kinds of attention launches that grow take"
    return "this line the launches take" if count == 1 else "these two lines the launches take"


def _with_context(launches: "LaunchEvidence", rows: KernelRows, each: _Growing) -> Iterator[str]:
    """What the growth with the context is, where steps know that."""
    if launches.steps is None:
        return
    growth = launches.steps.growth.filter(pl.col("class") == rows.names[each.kernel], pl.col("slope_ns").is_not_null())
    for row in growth.iter_rows(named=True):
        yield (
            f"With the context, it takes {row['slope_ns']:.3g} ns more per token for each KV position "
            f"({row['low_ns']:.3g} to {row['high_ns']:.3g}, 95 %)."
        )


RULE = Rule("attention_growth", _find, (_SCALE,))
