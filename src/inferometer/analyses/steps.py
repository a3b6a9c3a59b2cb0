"""The steps of an engine: how long they take by phase, how they grow with context, and which of them were disturbed.

Medians, the 95th percentile and the deviation (the median absolute one, not scaled) are of undisturbed steps, so that
an episode of other load doesn't blur them. `step_sources` says what a step is, `step_class_times` what classes of
kernels took in it, `step_disturbances` which are disturbed, `step_growth` how classes grow, `step_remarks` puts it in
words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.step_disturbances import find_disturbed
from inferometer.analyses.step_growth import find_growth
from inferometer.analyses.step_remarks import find_remarks
from inferometer.analyses.step_sources import RunSteps, read_steps
from inferometer.errors import UnknownName
from inferometer.names.demangle import demangle
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_count

UNKNOWN_PHASE = "unknown"
_COLUMNS = (
    *("step", "run", "phase", "tokens", "context_len", "mean_kv", "start_ns", "wall_ns", "gpu_busy_ns", "gap_ns"),
    *("disturbed", "excess_ns", "gap_excess_ns", "why"),
)
_PHASE = Field("phase", "Phase", "text")
_STEP = Field("step", "Step", "number")
_TOKENS = Field("tokens", "Tokens", "count", spare=6)
_BUSY = Field("gpu_busy_ns", "GPU busy", "ns")
_PHASE_FIELDS = (
    _PHASE,
    Field("steps", "Steps", "count"),
    Field("used", "Used", "count"),
    Field("tokens", "Tokens", "count", spare=5),
    Field("wall_median_ns", "Wall Med", "ns"),
    Field("wall_p95_ns", "Wall p95", "ns", spare=4),
    Field("wall_mad_ns", "Wall MAD", "ns", spare=7),
    Field("gpu_median_ns", "GPU Med", "ns"),
    Field("gpu_p95_ns", "GPU p95", "ns", spare=3),
    Field("gpu_mad_ns", "GPU MAD", "ns", spare=8),
    Field("gap_median_ns", "Gap Med", "ns", spare=1),
    Field("wall_per_token_ns", "Wall a token", "ns", spare=2),
    Field("gpu_per_token_ns", "GPU a token", "ns", spare=9),
)
_GROWTH_FIELDS = (
    Field("slope_ns", "A token and position", "ns"),
    Field("half_ns", "± (95 %)", "ns", spare=1),
    Field("intercept_ns", "At position 0", "ns"),
    Field("r2", "R²", "number"),
    Field("first_share", "First step", "share"),
    Field("last_share", "Last step", "share"),
    Field("steps", "Steps", "count", spare=2),
    Field("class", "Class", "name"),
)
_DISTURBED_FIELDS = (
    _STEP,
    _PHASE,
    _TOKENS,
    _BUSY,
    Field("excess_ns", "Beyond usual", "ns", spare=1),
    Field("gap_excess_ns", "Gap beyond usual", "ns", spare=2),
    Field("why", "What was slow", "name"),
)
_STEP_FIELDS = (
    _STEP,
    _PHASE,
    _TOKENS,
    Field("context_len", "Context", "count", spare=3),
    Field("wall_ns", "Wall", "ns"),
    replace(_BUSY, spare=1),
    Field("gap_ns", "Gap", "ns", spare=2),
    Field("excess_ns", "Beyond usual", "ns", spare=4),
    Field("gap_excess_ns", "Gap beyond usual", "ns", spare=5),
    Field("disturbed", "Disturbed", "text"),
)
_CLASS_FIELDS = (
    _PHASE,
    Field("share", "GPU Time", "share"),
    Field("total_ns", "Total", "ns"),
    Field("per_token_median_ns", "Med a token", "ns", spare=1),
    Field("per_layer_median_ns", "Med a layer", "ns", spare=3),
    Field("first_ns", "First step", "ns", spare=4),
    Field("last_ns", "Last step", "ns", spare=5),
    Field("layers", "Layers", "count", spare=2),
    Field("steps", "Steps", "count", spare=6),
    Field("class", "Class", "name"),
)


@dataclass(frozen=True)
class StepTable(Result):
    """One run's steps; times in ns, exact, and a null phase is unknown.

    What a row is, of `steps`: a step. `mean_kv` is the mean number of KV positions that a token of it attends to,
    `gap_ns` wall - busy, `excess_ns` what the busy time has beyond the usual at this context (of a source that tells no
    busy time, the wall time), null where nobody can say what is usual; `why` says what was slow.
    `phases`: a phase; statistics are of `used` steps, MAD is the median absolute deviation, not scaled.
    `classes`: a phase and class of kernels; `share` is of the phase's GPU time, medians are of used steps.
    `class_steps`: a step and class. `growth`: a class, of used decode steps, and `(all)`; times are of one token.

    `top`: rows that tables for people show. `runs`: steps of each run in the trace. `rank` and `process`: whose steps
    these are, as the trace's tables have it.
    """

    source: str
    model: str | None
    run: int
    runs: dict[int, int]
    rank: int | None
    process: int | None
    anchor: str | None
    steps: pl.DataFrame
    phases: pl.DataFrame
    classes: pl.DataFrame
    class_steps: pl.DataFrame
    growth: pl.DataFrame
    notable: tuple[str, ...]
    losses: Losses
    top: int | None = None

    @property
    def disturbed(self) -> list[int]:
        """Numbers of the disturbed steps."""
        return self.steps.filter("disturbed")["step"].to_list()

    def facts(self) -> Sequence[tuple[str, str]]:
        by = f", by {self.anchor}" if self.anchor else ""
        lines = [("File", self.source), ("Model", self.model or ""), ("Steps", f"{self.steps.height:,}{by}")]
        if len(self.runs) > 1:
            lines.append(("Run", f"{self.run}, one of {', '.join(map(str, self.runs))}"))
        tokens = [(row["tokens"], row["phase"]) for row in self.phases.iter_rows(named=True) if row["tokens"]]
        lines.append(("Tokens", ", ".join(f"{format_count(n)} in {phase or 'unknown'} steps" for n, phase in tokens)))
        return [(label, text) for label, text in lines if text]

    def sections(self) -> Sequence[Section]:
        notes = ("Of used steps; MAD is the median absolute deviation, not scaled.",)
        sections = [Section("Steps per phase", _PHASE_FIELDS, _named(self.phases), notes)]
        if not self.growth.is_empty():
            half = ((pl.col("high_ns") - pl.col("low_ns")) / 2).alias("half_ns")
            growth = self.growth.with_columns(half, pl.col("r2").round(5)).pipe(_demangled)
            sections.append(Section("Growth with context, decode", _GROWTH_FIELDS, growth))
        if not (disturbed := self.steps.filter("disturbed")).is_empty():
            sections.append(Section("Disturbed steps", _DISTURBED_FIELDS, _named(disturbed)))
        sections.append(Section("Steps", _STEP_FIELDS, _named(self.steps).pipe(self._first)))
        if not self.classes.is_empty():
            classes = _named(self.classes).pipe(_demangled).pipe(self._first)
            sections.append(Section("Classes of kernels", _CLASS_FIELDS, classes))
        return sections

    def _first(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame if self.top is None else frame.head(self.top)

    def remarks(self) -> Sequence[str]:
        hidden = self.top is not None and self.top < self.steps.height
        shown = [f"{self.top:,} of {self.steps.height:,} steps shown."] if hidden else []
        return [*self.notable, *shown]

    def to_polars(self) -> pl.DataFrame:
        """One row a step."""
        return self.steps

    def as_table(self) -> "StepRows":
        """All steps as one table, exact; for spreadsheets."""
        return StepRows(self, self.losses)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "model": self.model,
            "run": self.run,
            "runs": [{"run": run, "steps": steps} for run, steps in self.runs.items()],
            "anchor": self.anchor,
            "steps": self.steps.to_dicts(),
            "phases": self.phases.to_dicts(),
            "classes": self.classes.to_dicts(),
            "growth": self.growth.to_dicts(),
            "disturbed": self.disturbed,
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }


@dataclass(frozen=True)
class StepRows(Result):
    """All steps of a `StepTable` as one section."""

    of: StepTable
    losses: Losses

    def sections(self) -> Sequence[Section]:
        more = (
            Field("mean_kv", "Mean KV positions", "number"),
            Field("start_ns", "Start", "ns"),
            Field("why", "What was slow", "text"),
        )
        return [Section("Steps", (*_STEP_FIELDS, *more), _named(self.of.steps))]

    def as_json(self) -> dict[str, Any]:
        return self.of.as_json()


def step_table(
    trace: Trace,
    *,
    run: int | None = None,
    phase: str | None = None,
    keep_disturbed: bool = False,
    top: int | None = None,
) -> StepTable:
    """The steps of a run.

    Args:
        trace: Needs `steps`, or `spans` that mark them; `totals`, `function_times`, or `launches` and `calls`, tell
            the times of classes.
        run: Of a trace with several; the first by default.
        phase: Only this one: `prefill`, `decode`, `mixed` or `unknown`.
        keep_disturbed: Use disturbed steps for medians and growth, too.
        top: Rows of the longer tables that reports for people show; data hold all.

    Raises:
        InputError: The source records no steps.
        UnknownName: There is no such run, or the run has no such phase.
    """
    found = read_steps(trace, run)
    steps = find_disturbed(found.steps, found.class_steps)
    used = pl.lit(value=True) if keep_disturbed else ~pl.col("disturbed")
    steps = steps.with_columns(used.alias("used"))
    classes = found.class_steps
    if phase is not None:
        steps, classes = (_of_phase(frame, phase, found) for frame in (steps, classes))
    class_steps = classes.select("step", "phase", "class", "total_ns", "layers")
    decode = steps.filter("used", pl.col("phase") == "decode")
    growth = find_growth(decode, class_steps.join(decode.select("step"), on="step", how="semi"))
    phases = _phases(steps)
    return StepTable(
        source=trace.facts.source,
        model=trace.facts.model,
        run=found.run,
        runs=found.runs,
        rank=found.rank,
        process=found.process,
        anchor=found.anchor,
        steps=steps.select(_COLUMNS),
        phases=phases,
        classes=_sum_classes(steps, class_steps),
        class_steps=class_steps,
        growth=growth,
        notable=tuple(find_remarks(steps, phases, growth, found)),
        losses=trace.losses,
        top=top,
    )


def _of_phase(frame: pl.DataFrame, phase: str, found: RunSteps) -> pl.DataFrame:
    known = found.steps["phase"].fill_null(UNKNOWN_PHASE).unique().to_list()
    if phase not in known:
        raise UnknownName("phase", phase, known)
    return frame.filter(pl.col("phase").fill_null(UNKNOWN_PHASE) == phase)


def _phases(steps: pl.DataFrame) -> pl.DataFrame:
    statistics = []
    for name, column in (("wall", "wall_ns"), ("gpu", "gpu_busy_ns")):
        value = pl.col(column).filter("used")
        statistics += [
            value.median().alias(f"{name}_median_ns"),
            value.quantile(0.95, "linear").alias(f"{name}_p95_ns"),
            (value - value.median()).abs().median().alias(f"{name}_mad_ns"),
        ]
    per_token = [
        (pl.col(column) / _positive("tokens")).filter("used").median().alias(f"{name}_per_token_ns")
        for name, column in (("wall", "wall_ns"), ("gpu", "gpu_busy_ns"))
    ]
    return steps.group_by("phase", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col("used").sum().cast(pl.Int64),
        pl.when(pl.col("tokens").count() > 0).then(pl.col("tokens").sum()).alias("tokens"),
        *statistics,
        pl.col("gap_ns").filter("used").median().alias("gap_median_ns"),
        *per_token,
    )


def _positive(column: str) -> pl.Expr:
    """The column; null where it is 0."""
    return pl.when(pl.col(column) > 0).then(pl.col(column))


def _sum_classes(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """One row a phase and class, the phases in order of time, their largest classes first."""
    joined = class_steps.join(steps.select("step", "tokens", "used"), on="step", maintain_order="left")
    order = steps.group_by("phase", maintain_order=True).agg(
        pl.col("step").first().alias("first"), pl.col("step").last().alias("last")
    )
    joined = joined.join(order.with_row_index("order"), on="phase", nulls_equal=True, maintain_order="left")
    total = pl.col("total_ns")
    per_layer = total / _positive("layers")
    sums = joined.group_by("order", "phase", "class", maintain_order=True).agg(
        pl.col("layers").max(),
        pl.len().cast(pl.Int64).alias("steps"),
        total.sum(),
        (total / _positive("tokens")).filter("used").median().alias("per_token_median_ns"),
        per_layer.filter("used").median().alias("per_layer_median_ns"),
        total.filter(pl.col("step") == pl.col("first")).first().alias("first_ns"),
        total.filter(pl.col("step") == pl.col("last")).first().alias("last_ns"),
    )
    whole = total.sum().over("order")
    return (
        sums.with_columns(pl.when(whole > 0).then(total / whole).alias("share"))
        .sort("order", "total_ns", "class", descending=[False, True, False])
        .select(
            *("phase", "class", "layers", "steps", "total_ns", "share", "per_token_median_ns", "per_layer_median_ns"),
            *("first_ns", "last_ns"),
        )
    )


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    """For people: an unknown phase and a disturbed step in words."""
    words = [pl.col("phase").fill_null(UNKNOWN_PHASE)]
    if "disturbed" in frame.columns:
        words.append(pl.when("disturbed").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("disturbed"))
    return frame.with_columns(words)


def _demangled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.Series("class", [demangle(name) for name in frame["class"]], dtype=pl.String))
