"""The steps of an engine: how long they take by phase, how they grow with context, and which of them were disturbed.

Medians, the 95th percentile and the deviation (the median absolute one, not scaled) are of undisturbed steps, so that
an episode of other load doesn't blur them; marks without any launch, among steps that have some, are left out, too.
`sources` says what a step is, `class_times` what classes of kernels took in it, `disturbances` which are
disturbed, `growth` how classes grow, `remarks` says it in sentences. Of traces with launches, `launch_bound`
says how much of a step waited for them. `outliers` says what was different in the disturbed steps, `drift`
whether like steps get slower over the run.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.steps.disturbances import find_disturbed, is_whole, is_without_work
from inferometer.analyses.steps.drift import find_trends
from inferometer.analyses.steps.growth import find_growth
from inferometer.analyses.steps.launch_bound import LAUNCHED, find_queued, with_launches
from inferometer.analyses.steps.launch_bound import NEEDED as LAUNCHES_NEEDED
from inferometer.analyses.steps.outliers import find_differences
from inferometer.analyses.steps.remarks import find_remarks
from inferometer.analyses.steps.sources import NEEDED as SOURCES_NEEDED
from inferometer.analyses.steps.sources import UNKNOWN_PHASE, RunSteps, read_steps
from inferometer.errors import UnknownName
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.steps.serving.latency import ServingLatency
    from inferometer.formats.serving_results.serving import Serving

NEEDED = {  # the columns of each table that the question touches
    table: tuple(dict.fromkeys((*SOURCES_NEEDED.get(table, ()), *LAUNCHES_NEEDED.get(table, ()))))
    for table in (*SOURCES_NEEDED, *LAUNCHES_NEEDED)
}
_COLUMNS = (
    *("step", "run", "phase", "batch", "tokens", "prefill_tokens", "decode_tokens", "context_len", "mean_kv"),
    *("start_ns", "wall_ns", "window_ns", "gpu_busy_ns", "gap_ns"),
    *("disturbed", "excess_ns", "gap_excess_ns", "why", *LAUNCHED),
    *("is_partial", "is_warm_up", "confidence", "layers"),
)


@dataclass(frozen=True)
class StepTable(Result):
    """One run's steps; times in ns, exact, and a null phase is unknown.

    What a row is, of `steps`: a step. `mean_kv` is the mean number of KV positions that a token of it attends to.
    `wall_ns` is the mark's, on the host; `gap_ns` is the time within `window_ns`, until its work has ended, in which
    the device ran nothing (`sources.RunSteps`). `excess_ns` is what the busy time has beyond the usual at this
    context (of a source that shows no busy time, the wall time), null where it isn't known what is usual; `why` says
    what was slow.
    `launches`, `captures` and `launch_bound_ns`, with its share of the window, are of `launch_bound`, null where no
    launches or calls were recorded. `is_partial`, `is_warm_up`, `confidence` and `layers` are of steps found in the
    order of kernels, else null; partial and warm-up steps are never used for statistics.
    `phases`: a phase; statistics are of `used` steps, MAD is the median absolute deviation, not scaled.
    `classes`: a phase and class of kernels; `share` is of the phase's GPU time, medians are of used steps.
    `class_steps`: a step and class. `growth`: a class, of used decode steps, and `(all)`; times are of one token.
    `differences`: a disturbed step and a part of its excess (`outliers`). `trends`: a kind of like steps, and what
    of them gets slower over the run or a decode run (`drift`).

    `serving`: what a benchmark of the server says next to these steps. `top`: rows that tables for people show.
    `runs`: steps of each run in the trace. `rank` and `process`: whose steps these are, as the trace's tables have it.
    """

    view: ClassVar[str] = "steps.table"
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
    differences: pl.DataFrame
    trends: pl.DataFrame
    notable: tuple[str, ...]
    losses: Losses
    top: int | None = None
    serving: "ServingLatency | None" = None

    @property
    def disturbed(self) -> list[int]:
        """Numbers of the disturbed steps."""
        return self.steps.filter("disturbed")["step"].to_list()

    def with_serving(self, serving: "Serving") -> "StepTable":
        """With what a benchmark of the server measured set next to these steps."""
        from inferometer.analyses.steps.serving.latency import find_serving_latency

        return replace(self, serving=find_serving_latency(serving, self.steps, self.model))

    def to_polars(self) -> pl.DataFrame:
        """One row per step."""
        return self.steps

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
            "differences": self.differences.to_dicts(),
            "trends": self.trends.to_dicts(),
            "losses": self.losses.as_dict(),
        } | ({} if self.serving is None else {"serving": self.serving.as_json()})


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
        trace: Needs `steps`, or `spans` that mark them; `totals`, `function_times`, or `launches` and `calls`, for
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
    work = find_queued(trace, rank=found.rank, process=found.process, queued=found.queued)
    found = msgspec.structs.replace(found, queued=None)  # half a GB of ten million
    steps = find_disturbed(found.steps, found.class_steps)
    steps = with_launches(trace, steps, found.class_steps, work, rank=found.rank, process=found.process)
    del work
    used = is_whole() & ~is_without_work()
    steps = steps.with_columns((used if keep_disturbed else used & ~pl.col("disturbed")).alias("used"))
    classes, trends = found.class_steps, find_trends(steps, found.class_steps)
    if phase is not None:
        trends = trends.filter(pl.col("phase").fill_null(UNKNOWN_PHASE) == phase)
        steps, classes = (_of_phase(frame, phase, found) for frame in (steps, classes))
    class_steps = classes.select("step", "phase", "class", "total_ns", "layers")
    decode = steps.filter("used", pl.col("phase") == "decode")
    growth = find_growth(decode, class_steps.join(decode.select("step"), on="step", how="semi"))
    phases = _phases(steps)
    differences = find_differences(steps, classes)
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
        differences=differences,
        trends=trends,
        notable=tuple(find_remarks(steps, phases, growth, found, differences=differences, trends=trends)),
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
    lasting = pl.max_horizontal("wall_ns", "window_ns")  # a host that runs ahead leaves a step before its work ends
    per_token = [
        (time / _positive("tokens")).filter("used").median().alias(f"{name}_per_token_ns")
        for name, time in (("wall", lasting), ("gpu", pl.col("gpu_busy_ns")))
    ]
    return steps.group_by("phase", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col("used").sum().cast(pl.Int64),
        pl.when(pl.col("tokens").null_count() == 0).then(pl.col("tokens").sum()).alias("tokens"),
        *statistics,
        pl.col("window_ns").filter("used").median().alias("window_median_ns"),
        pl.col("gap_ns").filter("used").median().alias("gap_median_ns"),
        *per_token,
        pl.col("launches").filter("used").median().round().cast(pl.Int64).alias("launches_median"),
        pl.col("launch_bound_share").filter("used").median(),
    )


def _positive(column: str) -> pl.Expr:
    """The column; null where it is 0."""
    return pl.when(pl.col(column) > 0).then(pl.col(column))


def _sum_classes(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """One row per phase and class, the phases in order of time, their largest classes first."""
    numbered = class_steps.with_columns(pl.col("class").cast(pl.Categorical))  # a name may be long, and is each step's
    joined = numbered.join(steps.select("step", "tokens", "used"), on="step", maintain_order="left")
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
        sums.with_columns(pl.when(whole > 0).then(total / whole).alias("share"), pl.col("class").cast(pl.String))
        .sort("order", "total_ns", "class", descending=[False, True, False])
        .select(
            *("phase", "class", "layers", "steps", "total_ns", "share", "per_token_median_ns", "per_layer_median_ns"),
            *("first_ns", "last_ns"),
        )
    )
