"""The steps of one run as its source recorded them.

Steps are the table `steps` where it has rows (an engine's log, cycles), else marks among the host's spans: those of
engines (`engine_marks.py`), which show the phase and the tokens, else `ProfilerStep#N`, else ranges that a user named
(`found/ranges.py`). Without any, they are found in the order of kernels (`found/finding.py`).
`class_times` says what classes of kernels took in each, and how long the device worked and idled.
"""

import re

import msgspec
import polars as pl
from msgspec.structs import asdict

from inferometer.analyses.columns import with_schema
from inferometer.analyses.steps.class_times import CLASS_STEPS, OWNER, find_class_times
from inferometer.analyses.steps.engine_marks import MarkedStep, read_mark
from inferometer.analyses.steps.found.finding import FoundSteps, find_steps
from inferometer.analyses.steps.found.of_runs import choose_devices
from inferometer.analyses.steps.found.ranges import find_marks
from inferometer.analyses.steps.printed import has_printed_steps
from inferometer.analyses.steps.queued_launches import QueuedLaunches
from inferometer.analyses.timeline.recorder_pauses import UNOBSERVED_STEP
from inferometer.errors import InputError, UnknownName
from inferometer.trace.trace import Trace

UNKNOWN_PHASE = "unknown"
NEEDED = {  # the columns of each table that the question touches
    "steps": (
        *("step", "phase", "process", "rank", "start_ns", "dur_ns", "gpu_busy_ns", "batch"),
        *("prefill_tokens", "decode_tokens", "context_len", "anchor", "source"),
    ),
    "totals": ("section", "step", "kernel", "layer", "rank", "count", "total_ns"),
    "function_times": ("cycle", "process", "rank", "function", "device", "dur_ns", "calls"),
    "launches": ("kind", "kernel", "device", "stream", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
    "calls": ("rank", "process", "start_ns", "correlation_id"),
    "spans": ("span", "domain", "rank", "process", "thread", "device", "stream", "start_ns", "dur_ns"),
}
STEPS = pl.Schema(
    {
        **dict.fromkeys(("step", "run"), pl.Int64()),
        "phase": pl.String(),
        **dict.fromkeys(("batch", "tokens", "prefill_tokens", "decode_tokens", "context_len"), pl.Int64()),
        "mean_kv": pl.Float64(),
        **dict.fromkeys(("start_ns", "wall_ns", "window_start_ns", "window_ns", "gpu_busy_ns", "gap_ns"), pl.Int64()),
        **dict.fromkeys(("is_partial", "is_warm_up"), pl.Boolean()),
        "confidence": pl.Float64(),
        "layers": pl.Int64(),
    }
)
_UNTOLD = ("batch", "prefill_tokens", "decode_tokens", "gpu_busy_ns", "context_len")
FOUND = "the order of kernels"  # the anchor of steps that nothing marks
_TOLD = pl.Schema(  # by a mark's name
    {
        "step": pl.Int64(),
        "phase": pl.String(),
        **dict.fromkeys(("batch", "prefill_tokens", "decode_tokens", "context_len"), pl.Int64()),
    }
)
_STARTS_NO_DEVICE = pl.col("device").is_null() & pl.col("stream").is_null()
PROFILER_STEP = re.compile(r"ProfilerStep#(?P<step>\d{1,18})")
_NO_STEPS = (
    "In PyTorch, call profiler.step() once a step; vLLM, SGLang and TensorRT-LLM name their steps while they are "
    "profiled; a WebGPU engine's log has them where it prints a profile report a step. Without steps: inferometer "
    "kernels, timeline."
)


class RunSteps(msgspec.Struct, frozen=True):
    """One run of the trace. `steps` in order of time; `class_steps` with `calls` where they are known.

    Of `steps`, `wall_ns` is how long the mark lasts, on the host. The window of a step begins with its mark, or when
    the work before it has ended, and lasts until the mark and all work that was queued in it have ended: so it holds
    what the host queued ahead, and windows don't overlap. The first doesn't begin before the first launch where that
    waited for something that is not in the file. `gap_ns` is the time of the window in which the device ran nothing.
    Where the source shows how long the GPU was busy, and not when, the window is the wall time and the gap the rest of
    it, null where the busy time is the longer one. `is_partial`, `is_warm_up`, `confidence` and `layers` are null
    unless steps were found in the order of kernels, or the recording left steps out, which are partial then, and have
    neither gap nor busy time; `start_ns` and `wall_ns` are then the device's, from the first
    launch of a step to the end of its last.

    `runs`: how many steps each run of the trace has. `rank` and `process`: whose steps they are, as the tables have it.
    `anchor`: what delimits the steps. `queued`: the launches of the process, where they were read.
    """

    run: int
    rank: int | None
    process: int | None
    runs: dict[int, int]
    steps: pl.DataFrame
    class_steps: pl.DataFrame
    anchor: str | None
    notes: tuple[str, ...]
    queued: QueuedLaunches | None = None


def read_steps(trace: Trace, run: int | None = None) -> RunSteps:
    """The steps of a run, by default of the first.

    Raises:
        InputError: The source records no steps, and none are found.
        UnknownName: There is no such run.
    """
    every, found = every_step(trace)
    if every.is_empty():
        raise InputError(
            f"{trace.facts.source}: expected steps of an engine, found none recorded", hint=_no_steps(found)
        )
    every = every.with_columns(_run_numbers(every, is_printed=has_printed_steps(trace)))
    runs = dict(every.group_by("run").len().sort("run").iter_rows())
    chosen = next(iter(runs)) if run is None else run
    if chosen not in runs:
        raise UnknownName("run", str(run), map(str, runs))
    own, notes = _in_order(every.filter(pl.col("run") == chosen))
    times = find_class_times(trace, own, on_device=found is not None)
    own = own.join(times.busy, on="step", how="left", maintain_order="left")
    anchors = own["anchor"].drop_nulls().unique(maintain_order=True)
    steps = with_schema(_without_unobserved(_with_tokens(_with_gaps(own))), STEPS)
    phases = steps.select("step", "phase")
    placed = times.classes.join(phases, on="step", maintain_order="left").sort("step", maintain_order=True)
    rank, process = own.select(OWNER).row(0)
    return RunSteps(
        run=chosen,
        rank=rank,
        process=process,
        runs=runs,
        steps=steps,
        class_steps=with_schema(placed, CLASS_STEPS),
        anchor=anchors[0] if len(anchors) else None,
        notes=(*(() if found is None else found.notes), *notes, *times.notes),
        queued=times.queued,
    )


def every_step(trace: Trace) -> tuple[pl.DataFrame, FoundSteps | None]:
    """The steps of all runs, of the first source that has any; and what was found, where nothing marks them.

    The frame has `rank`, `process`, `step` (null or repeated where marks have no numbers of their own), `phase`,
    `start_ns`, `wall_ns`, `anchor`, and tokens where the source shows them; it is empty where there are no steps.
    """
    every = recorded_steps(trace)
    if not every.is_empty():
        return every, None
    found = _found(trace)
    return pl.DataFrame() if found is None else _rows_of(found), found


def recorded_steps(trace: Trace) -> pl.DataFrame:
    """The steps of all runs that the trace itself marks, as `every_step` has them; empty where it marks none."""
    each = (source(trace) for source in (_recorded, _marked, _named))
    return next((every for every in each if not every.is_empty()), pl.DataFrame())


def _recorded(trace: Trace) -> pl.DataFrame:
    if "steps" not in trace.scope:
        return pl.DataFrame()
    return trace.steps.select(NEEDED["steps"]).rename({"dur_ns": "wall_ns"}).collect()


def _marked(trace: Trace) -> pl.DataFrame:
    """The host's spans that mark steps: of the engine's own marks where there are any."""
    if "spans" not in trace.scope:
        return pl.DataFrame()
    spans = trace.spans.filter(_STARTS_NO_DEVICE).select("span", *OWNER, "start_ns", "dur_ns").collect()
    names = spans["span"].unique(maintain_order=True)
    for reading, anchor in ((read_mark, "the engine's marks"), (_read_profiler, "ProfilerStep")):
        read = [(name, *found) for name in names if (found := reading(name))]
        if read:
            known = pl.DataFrame(
                [{"span": name, "form": form} | asdict(step) for name, form, step in read],
                schema={"span": pl.String, "form": pl.Int64, **_TOLD},
            )
            marks = spans.join(known, on="span").rename({"dur_ns": "wall_ns"})
            marks = marks.filter(pl.col("form") == pl.col("form").min().over(OWNER)).drop("form")
            return marks.with_columns(pl.lit(None, dtype=pl.Int64).alias("gpu_busy_ns"), pl.lit(anchor).alias("anchor"))
    return pl.DataFrame()


def _named(trace: Trace) -> pl.DataFrame:
    """Ranges that a user named."""
    marks, anchor = find_marks(trace)
    return _untold(marks).with_columns(pl.lit(anchor, dtype=pl.String).alias("anchor"))


def _found(trace: Trace) -> FoundSteps | None:
    """Steps in the order of kernels; None where no launches were read."""
    return find_steps(trace) if "launches" in trace.scope else None


def _rows_of(found: FoundSteps) -> pl.DataFrame:
    steps = choose_devices(found).rename({"dur_ns": "wall_ns"})
    return _untold(steps).with_columns(pl.lit(FOUND).alias("anchor"))


def _untold(steps: pl.DataFrame) -> pl.DataFrame:
    """With the columns of what neither names of ranges nor kernels say."""
    return steps.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in _UNTOLD)


def _no_steps(found: FoundSteps | None) -> str:
    why = [] if found is None or found.devices.is_empty() else found.notes
    return "\n".join((_NO_STEPS, *why))


def _read_profiler(name: str) -> tuple[int, MarkedStep] | None:
    match = PROFILER_STEP.fullmatch(name)
    return (0, MarkedStep(step=int(match["step"]))) if match else None


def _run_numbers(steps: pl.DataFrame, *, is_printed: bool) -> pl.Series:
    """As the source numbers its runs, or else a number for each rank and process."""
    if is_printed and steps["rank"].null_count() == steps.height:
        return steps["process"].fill_null(0).alias("run")
    owners = steps.select(OWNER).unique().sort(OWNER).with_row_index("run")
    return steps.join(owners, on=OWNER, nulls_equal=True, how="left", maintain_order="left")["run"].cast(pl.Int64)


def _in_order(steps: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """By time where all times are known, else by number. Steps without numbers, or with equal ones, count from 0."""
    by = "step" if steps["start_ns"].null_count() else "start_ns"
    steps = steps.sort(by, maintain_order=True)
    if steps["step"].null_count() == 0 and steps["step"].is_unique().all():
        return steps, []
    notes = [] if steps["step"].null_count() else ["Numbers of steps repeat in the source: they are counted anew here."]
    return steps.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("step")), notes


def _with_gaps(steps: pl.DataFrame) -> pl.DataFrame:
    """With windows and gaps: of launches where these show how long the device was busy, else of the wall time."""
    wall, recorded = pl.col("wall_ns"), pl.col("gpu_busy_ns")
    is_of_launches = recorded.is_null() & pl.col("from_ns").is_not_null()
    return steps.with_columns(
        pl.when(is_of_launches).then("from_ns").otherwise("start_ns").alias("window_start_ns"),
        pl.when(is_of_launches).then("lasting_ns").otherwise(wall).alias("window_ns"),
        pl.when(is_of_launches).then("idle_ns").when(recorded <= wall).then(wall - recorded).alias("gap_ns"),
        pl.coalesce(recorded, "busy_ns").alias("gpu_busy_ns"),
    )


def _without_unobserved(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps of which only the times were recorded are partial: what ran in them isn't known."""
    if "source" not in steps.columns or not (steps["source"] == UNOBSERVED_STEP).any():
        return steps
    is_seen = pl.col("source").ne_missing(UNOBSERVED_STEP)
    known = (pl.when(is_seen).then(name).alias(name) for name in ("gpu_busy_ns", "gap_ns"))
    return steps.with_columns(*known, is_partial=~is_seen)


def _with_tokens(steps: pl.DataFrame) -> pl.DataFrame:
    """With the tokens of both phases, and the mean number of KV positions that a token of a decode step attends to.

    Of N tokens in a row after a context of C the k-th attends to C + k positions, itself among them. A step whose
    phase is known has no tokens of the other one where nothing is reported of them.
    """
    prefill, decode, phase = pl.col("prefill_tokens"), pl.col("decode_tokens"), pl.col("phase")
    has_prefill, has_decode = prefill.is_not_null(), decode.is_not_null()
    is_known = (
        pl.when(phase == "decode")
        .then(has_decode)
        .when(phase == "prefill")
        .then(has_prefill)
        .when(phase == "mixed")
        .then(has_prefill & has_decode)
        .otherwise(has_prefill | has_decode)
    )
    sequences = pl.max_horizontal(pl.col("batch").fill_null(1), 1)
    mean_kv = pl.col("context_len") / sequences + (decode / sequences + 1) / 2
    return steps.with_columns(
        pl.when(is_known).then(prefill.fill_null(0) + decode.fill_null(0)).alias("tokens"),
        pl.when(phase == "decode").then(mean_kv).alias("mean_kv"),
    )
