"""Which steps something from outside disturbed: robustly, since the usual must not be learned from the unusual.

Every phase is judged by itself, and so is every number of tokens that many of its steps have. Each class of kernels and
the whole step is compared with what is usual at its context: a robust line (Theil-Sen) of the time per token over
context, or the median where a class doesn't grow. A step is disturbed when its time, or the host's gap, is out of line
by far and by much; or when many classes at once are, as when another process uses the device: one slow class is that
class's own matter. A disturbance lasts until a step is as usual again.

Where contexts aren't known, the tokens before a step stand in for them: that is the same line where one sequence is
decoded, and a flat one where steps don't drift. Steps with another number of tokens than usual, such as a tail, are out
of line only where they are both per step and per token, since it isn't known which of the two their cost follows. Steps
that did other work (other numbers of launches), that the recording cut, or that warm up are not judged, nor phases with
too few steps.
"""

from collections.abc import Iterator
from typing import Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.comparison_limits import SAME_CALLS
from inferometer.analyses.steps.class_words import say_class
from inferometer.units import format_duration

FAR = 5.0
"""Median absolute deviations, unscaled, beyond which a value is out of line: 3.4 standard deviations of a normal one,
which one of 1,500 exceeds on that side."""

MUCH = 0.05
"""A step is slow from this part of its expected time on: less doesn't move a median."""

MUCH_GAP = 0.1
"""A gap is long from this part of the step's expected wall time on. Higher than `MUCH`: a host pauses for its own
reasons (collecting garbage) now and then in every run, which is no disturbance of it."""

LITTLE = 0.01
"""Part of the expected time from which on a step is slow when further evidence says so: classes slow together, or the
step before it disturbed."""

SLOW = 1.5
"""A class is slow from so many times its expected time on."""

TOGETHER = 3
"""So many slow classes say that something slowed the device, and not one kernel ..."""

TOGETHER_SHARE = 0.25
"""... where they are this part of all classes, too."""

SMALL_CLASS = 0.001
"""Classes with less of the phase's time are not asked: their times jump by the resolution of the clock."""

GROWS = 0.1
"""A class grows with context where its line changes by more than this part of its median over the contexts seen."""

FEWEST = 8
"""Steps of a phase with the usual number of tokens, below which it isn't known what is usual."""

CONTEXTS = 3
"""Different contexts from which on a line is drawn."""

ALONE = 16
"""So many numbers of tokens of a phase are judged by themselves, the most frequent ones: engines have graphs for a few
dozen sizes of batches, and use fewer in a recording."""

_FIT_POINTS = 400  # of a robust line: it takes the slopes of all pairs
_NAMED = 3  # slow classes in `why`
FOUND = pl.Schema(
    {
        "disturbed": pl.Boolean(),
        **dict.fromkeys(("excess_ns", "gap_excess_ns"), pl.Int64()),
        "why": pl.String(),
        "judged": pl.Boolean(),
    }
)
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Phase(msgspec.Struct, frozen=True):
    """Steps of one phase in order of time: their tokens (1 where unknown), contexts, and which are usual.

    `units`, `contexts`, `judged` and `own` have shape (n,). `own` steps have the usual number of tokens. Contexts may
    lack a constant, and are all 0 where they are too few for a line.
    """

    units: Values
    usual_units: float
    contexts: Values
    judged: Flags
    own: Flags

    @classmethod
    def of(cls, steps: pl.DataFrame, classes: pl.DataFrame) -> Self:
        tokens = steps["tokens"]
        has_tokens = tokens.null_count() == 0 and bool((tokens > 0).all())
        units = numbers(tokens) if has_tokens else np.ones(steps.height)
        values, counts = np.unique(units, return_counts=True)
        usual = float(values[np.argmax(counts)])
        judged = _same_work(steps, classes)
        own = judged & (units == usual)
        contexts = np.cumsum(units) if steps["mean_kv"].null_count() else steps["mean_kv"].to_numpy()
        if len(np.unique(contexts[own])) < CONTEXTS:
            contexts = np.zeros(len(contexts))
        return cls(units, usual, contexts, judged, own)


class Usual(msgspec.Struct, frozen=True):
    """What a time of a phase's steps should have been. Shape (n,) each; NaN, or not far, where the time isn't known.

    `excess_ns`: beyond what is expected of so many tokens at this context. `least_ns`: beyond the larger of that and
    what is expected of the usual number of tokens. `is_far`: this is out of line.
    """

    expected_ns: Values
    excess_ns: Values
    least_ns: Values
    is_far: Flags

    @classmethod
    def of(cls, times_ns: Values, phase: Phase, *, grows: bool = True) -> Self:
        known = phase.own & ~np.isnan(times_ns)
        x = phase.contexts if grows else np.zeros(len(times_ns))
        slope, intercept = _usual_line(x[known], times_ns[known] / phase.units[known])
        each = slope * x + intercept
        expected = each * phase.units
        least = times_ns - np.maximum(expected, each * phase.usual_units)
        spread = np.median(np.abs(least[known])) if known.any() else 0.0
        return cls(expected, times_ns - expected, least, phase.judged & (least > FAR * spread))

    @property
    def ratios(self) -> Values:
        """How many times the expected time it took; NaN where that isn't known, or none is expected."""
        took_ns, nothing = self.expected_ns + self.excess_ns, np.full(len(self.expected_ns), np.nan)
        return np.asarray(np.divide(took_ns, self.expected_ns, out=nothing, where=self.expected_ns > 0))

    def is_beyond(self, part: float, of_ns: Values) -> Flags:
        """Where it is out of line, by more than this part of `of_ns`."""
        return np.asarray(self.is_far & (self.least_ns > part * of_ns))


class _Classes(msgspec.Struct, frozen=True):
    """The classes of a phase that are large enough to ask. Shape (n, c): time over expected time, time beyond, slow."""

    names: tuple[str, ...]
    ratios: Values
    excess_ns: Values
    slow: Flags

    @property
    def together(self) -> Flags:
        """Where many are slow at once. Shape (n,)."""
        return np.asarray(self.slow.sum(axis=1) >= max(TOGETHER, TOGETHER_SHARE * len(self.names)))

    def reason(self, step: int, excess_ns: float) -> str | None:
        """The slow classes of a step, slowest first; where none is, the one that took most of the excess."""
        ratios, excess = self.ratios[step], np.nan_to_num(self.excess_ns[step])
        named = [i for i in np.argsort(-ratios, kind="stable") if self.slow[step, i]]
        if not named and excess.max(initial=0) > excess_ns / 2:
            largest = int(excess.argmax())
            return _beyond(say_class(self.names[largest]), ratios[largest], excess[largest], digits=2)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        return (
            ", ".join(_beyond(say_class(self.names[i]), ratios[i], excess[i], digits=1) for i in named[:_NAMED]) + more
        )


def _beyond(name: str, ratio: float, excess_ns: float, *, digits: int) -> str:
    """`gemm 2.1×`; where none of its time is expected, by how much it took more: `gemm +2.100 ms`."""
    return f"{name} +{format_duration(excess_ns)}" if np.isnan(ratio) else f"{name} {ratio:.{digits}f}×"


def find_disturbed(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` with the columns `FOUND`.

    `excess_ns` is what the GPU's busy time (the wall time where that isn't known) has beyond the expected one,
    `gap_excess_ns` the same of the gap; null where a step isn't `judged`. `why` names the classes, slowest first.

    Args:
        steps: One run in order of time; columns as `sources.STEPS`.
        class_steps: Columns as `class_times.CLASS_STEPS`.
    """
    parts = [pl.DataFrame(schema={"step": pl.Int64, **FOUND})]
    for own, own_classes in judged_together(steps, class_steps):
        found = _judge(own, own_classes)
        parts.append(found.select(own["step"], *FOUND))
    found = steps.join(pl.concat(parts), on="step", how="left", maintain_order="left")
    return found.with_columns(pl.col("disturbed", "judged").fill_null(value=False))


def is_whole() -> pl.Expr:
    """Neither cut by the recording's ends nor warming up, as far as is known."""
    return ~(pl.col("is_partial").fill_null(value=False) | pl.col("is_warm_up").fill_null(value=False))


def is_without_work() -> pl.Expr:
    """A mark in which nothing was launched, where other steps of its phase have `launches`."""
    launches = pl.col("launches")
    return ((launches == 0) & (launches.max().over("phase") > 0)).fill_null(value=False)


def judged_together(steps: pl.DataFrame, class_steps: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Whole steps, from which is learned what is usual, with the rows of their classes: phase by phase.

    Where several numbers of tokens have `FEWEST` steps or more, as batches that an engine has graphs for, each of them
    is judged by itself; rare ones stay with the most frequent.
    """
    for own in steps.filter(is_whole()).partition_by("phase", maintain_order=True):
        counts = own.filter(pl.col("tokens").is_not_null()).group_by("tokens").len().filter(pl.col("len") >= FEWEST)
        others = counts.sort("len", "tokens", descending=True)["tokens"][1 : 1 + ALONE]
        usual = own.filter(~pl.col("tokens").is_in(others.to_list()).fill_null(value=False))
        for part in (usual, *(own.filter(pl.col("tokens") == tokens) for tokens in others)):
            yield part, class_steps.join(part.select("step"), on="step", how="semi", maintain_order="left")


def _judge(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """The columns `FOUND` for steps that are judged together."""
    phase = Phase.of(steps, class_steps)
    has_busy = steps["gpu_busy_ns"].null_count() < steps.height
    times = numbers(steps["gpu_busy_ns" if has_busy else "wall_ns"])
    if (phase.own & ~np.isnan(times)).sum() < FEWEST:
        unjudged = {name: [False if dtype == pl.Boolean else None] * steps.height for name, dtype in FOUND.items()}
        return pl.DataFrame(unjudged, schema=FOUND)
    busy, gap = Usual.of(times, phase), Usual.of(_gaps(steps), phase, grows=False)
    classes = _read_classes(steps, class_steps, phase)
    wall_ns = busy.expected_ns + np.nan_to_num(gap.expected_ns)
    is_behind, is_late = busy.is_beyond(LITTLE, busy.expected_ns), gap.is_beyond(LITTLE, wall_ns)
    has_long_gap = gap.is_beyond(MUCH_GAP, wall_ns)
    has_long_gap[0] = False  # the first step of a phase makes pipelines and buffers
    is_slow = busy.is_beyond(MUCH, busy.expected_ns) | (classes.together & is_behind)
    disturbed = _until_usual(is_slow | has_long_gap, is_behind | is_late)
    why: list[str | None] = [None] * steps.height
    name, ratios = "GPU busy" if has_busy else "wall", busy.ratios
    for i in np.flatnonzero(disturbed).tolist():
        whole = _beyond(name, ratios[i], busy.excess_ns[i], digits=2)
        slow = classes.reason(i, busy.excess_ns[i]) or whole if is_behind[i] else None
        late = f"host gap +{format_duration(gap.excess_ns[i])}" if is_late[i] else None
        why[i] = "; ".join(filter(None, (slow, late)))
    judged = phase.judged & ~np.isnan(times)
    found = {"disturbed": disturbed, "why": why, "judged": judged}
    excess = {"excess_ns": busy.excess_ns, "gap_excess_ns": gap.excess_ns}
    whole_ns = {name: _whole(np.where(judged, values, np.nan)) for name, values in excess.items()}
    return pl.DataFrame(found | whole_ns).select(pl.col(name).cast(dtype) for name, dtype in FOUND.items())


def _same_work(steps: pl.DataFrame, class_steps: pl.DataFrame) -> Flags:
    """Which steps have about as many calls as most; all where calls weren't counted."""
    counted = class_steps.filter(pl.col("calls").is_not_null()).group_by("step").agg(pl.col("calls").sum())
    calls = numbers(steps.join(counted, on="step", how="left", maintain_order="left")["calls"])
    if np.isnan(calls).all():
        return np.ones(steps.height, dtype=bool)
    usual = np.nanmedian(calls)
    return np.asarray(np.abs(calls - usual) <= SAME_CALLS * usual)


def _gaps(steps: pl.DataFrame) -> Values:
    """Gaps; unknown where they are below 0 as a rule, since the host then runs ahead of the GPU."""
    gaps = numbers(steps["gap_ns"])
    known = gaps[~np.isnan(gaps)]
    return gaps if len(known) and np.median(known) >= 0 else np.full(len(gaps), np.nan)


def _read_classes(steps: pl.DataFrame, class_steps: pl.DataFrame, phase: Phase) -> _Classes:
    class_steps = class_steps.select("step", pl.col("class").cast(pl.Categorical), "total_ns")
    sums = class_steps.group_by("class").agg(pl.col("total_ns").sum(), pl.len())
    is_usual = (pl.col("len") > steps.height / 2) & (pl.col("total_ns") >= SMALL_CLASS * pl.col("total_ns").sum())
    names = tuple(sums.filter(is_usual)["class"].cast(pl.String).sort())
    ratios = np.full((steps.height, len(names)), np.nan)
    excess, slow = ratios.copy(), np.zeros(ratios.shape, dtype=bool)
    for i, name in enumerate(names):
        own = class_steps.filter(pl.col("class") == name).select("step", "total_ns")
        times = numbers(steps.select("step").join(own, on="step", how="left", maintain_order="left")["total_ns"])
        usual = Usual.of(times, phase)
        ratios[:, i], excess[:, i] = usual.ratios, usual.excess_ns
        slow[:, i] = usual.is_beyond(SLOW - 1, usual.expected_ns)
    return _Classes(names, ratios, excess, slow)


def _usual_line(x: Values, y: Values) -> tuple[float, float]:
    """Slope and intercept of y over x by the median of the slopes of all pairs; slope 0 where that is little."""
    if not len(y):
        return 0.0, np.nan
    usual = float(np.median(y))
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), _FIT_POINTS)).astype(np.int64))
    first, second = np.triu_indices(len(some), 1)
    run = x[some][second] - x[some][first]
    apart = run != 0
    if not apart.any():
        return 0.0, usual
    slope = float(np.median((y[some][second] - y[some][first])[apart] / run[apart]))
    if abs(slope) * np.ptp(x) <= GROWS * usual:
        return 0.0, usual
    return slope, float(np.median(y - slope * x))


def _until_usual(begins: Flags, lasts: Flags) -> Flags:
    """Where a disturbance began, or one lasts that began before."""
    found = begins.copy()
    for i in np.flatnonzero(lasts):
        found[i] |= i > 0 and found[i - 1]
    return found


def numbers(values: pl.Series) -> Values:
    """As floats, NaN where null. Times of steps are far below 2^53 ns."""
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _whole(values: Values) -> pl.Series:
    return pl.Series(values).fill_nan(None).round().cast(pl.Int64)
