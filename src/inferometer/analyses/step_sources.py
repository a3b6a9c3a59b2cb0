"""The steps of one run as its source recorded them, and the device time of each class of kernels in each step.

Steps are the table `steps` where it has rows (an engine's log, cycles), else marks among the host's spans: those of
vLLM and SGLang, which tell the phase and the tokens, else `ProfilerStep#N`. Times by class are sums that the source
printed by step, else its function times, else launches: a launch belongs to the step in which its host call began, or
where calls are unknown to that in which it began itself. Finding steps without marks is no part of this.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from inferometer.analyses.correlation import CALL_KEY, tie_launches
from inferometer.analyses.intervals import busy_by
from inferometer.analyses.labels import label_names, relabel
from inferometer.analyses.nesting import find_innermost
from inferometer.errors import InputError, UnknownName
from inferometer.names.engine_labels import class_of_label
from inferometer.trace.trace import Trace

OWNER = ["rank", "process"]
NEEDED = {  # the columns of each table that the question touches
    "steps": (
        *("step", "phase", "process", "rank", "start_ns", "dur_ns", "gpu_busy_ns", "batch"),
        *("prefill_tokens", "decode_tokens", "context_len", "anchor", "source"),
    ),
    "totals": ("section", "step", "kernel", "layer", "rank", "total_ns"),
    "function_times": ("cycle", "process", "rank", "function", "device", "dur_ns", "calls"),
    "launches": ("kernel", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
    "calls": ("rank", "process", "start_ns", "correlation_id"),
    "spans": ("span", "rank", "process", "device", "stream", "start_ns", "dur_ns"),
}
STEPS = pl.Schema(
    {
        **dict.fromkeys(("step", "run"), pl.Int64()),
        "phase": pl.String(),
        **dict.fromkeys(("tokens", "prefill_tokens", "decode_tokens", "context_len"), pl.Int64()),
        "mean_kv": pl.Float64(),
        **dict.fromkeys(("start_ns", "wall_ns", "gpu_busy_ns", "gap_ns"), pl.Int64()),
    }
)
CLASS_STEPS = pl.Schema(
    {
        "step": pl.Int64(),
        **dict.fromkeys(("phase", "class"), pl.String()),
        **dict.fromkeys(("total_ns", "layers", "calls"), pl.Int64()),
    }
)
_STARTS_NO_DEVICE = pl.col("device").is_null() & pl.col("stream").is_null()
_PROFILER = re.compile(r"ProfilerStep#(?P<step>\d{1,18})")
_VLLM = re.compile(
    r"execute_context_(?P<prefills>\d{1,9})\((?P<prefill>\d{1,9})\)_generation_(?P<decodes>\d{1,9})\((?P<decode>\d{1,9})\)(?:\W.*)?"
)
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_]+) bs=(?P<batch>\d{1,9})(?: toks=(?P<tokens>\d{1,9}))?\b[^\]]*\]")
_NO_STEPS = (
    "In PyTorch, call profiler.step() once a step; vLLM and SGLang name their steps while they are profiled; a WebGPU "
    "engine's log has them where it prints a profile report a step. Without steps: inferometer kernels, timeline."
)
_SUMMED = "Device times of classes are sums over all streams; the source doesn't record how long the GPU was busy."


@dataclass(frozen=True)
class RunSteps:
    """One run of the trace. `steps` in order of time; `class_steps` with `calls` where they are known.

    `runs`: how many steps each run of the trace has. `anchor`: what delimits the steps.
    """

    run: int
    runs: dict[int, int]
    steps: pl.DataFrame
    class_steps: pl.DataFrame
    anchor: str | None
    notes: tuple[str, ...]


def read_steps(trace: Trace, run: int | None = None) -> RunSteps:
    """The steps of a run, by default of the first.

    Raises:
        InputError: The source records no steps.
        UnknownName: There is no such run.
    """
    every = _recorded(trace)
    if every.is_empty():
        every = _marked(trace)
    if every.is_empty():
        raise InputError(f"{trace.facts.source}: want steps of an engine, found none recorded", hint=_NO_STEPS)
    every = every.with_columns(_run_numbers(every, is_printed=_has_printed(trace)))
    runs = dict(every.group_by("run").len().sort("run").iter_rows())
    chosen = next(iter(runs)) if run is None else run
    if chosen not in runs:
        raise UnknownName("run", str(run), map(str, runs))
    own, notes = _in_order(every.filter(pl.col("run") == chosen))
    classes, busy, more = _class_steps(trace, own)
    own = own.join(busy, on="step", how="left", maintain_order="left")
    anchors = own["anchor"].drop_nulls().unique(maintain_order=True)
    steps = _filled(_with_gaps(own.with_columns(pl.coalesce("gpu_busy_ns", "busy_ns").alias("gpu_busy_ns"))), STEPS)
    phases = steps.select("step", "phase")
    placed = classes.join(phases, on="step", maintain_order="left").sort("step", maintain_order=True)
    return RunSteps(
        run=chosen,
        runs=runs,
        steps=steps,
        class_steps=_filled(placed, CLASS_STEPS),
        anchor=anchors[0] if len(anchors) else None,
        notes=(*notes, *more),
    )


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
    for reading, anchor in ((_read_engine, "the engine's marks"), (_read_profiler, "ProfilerStep")):
        read = [{"span": name} | found for name in names if (found := reading(name))]
        if read:
            numbers = ("step", "batch", "prefill_tokens", "decode_tokens")
            schema = {"span": pl.String, "phase": pl.String, **dict.fromkeys(numbers, pl.Int64)}
            marks = spans.join(pl.DataFrame(read, schema=schema), on="span").rename({"dur_ns": "wall_ns"})
            lacking = [pl.lit(None, dtype=pl.Int64).alias(name) for name in ("gpu_busy_ns", "context_len")]
            return marks.with_columns(*lacking, pl.lit(anchor).alias("anchor"))
    return pl.DataFrame()


def _read_profiler(name: str) -> dict[str, int | str | None] | None:
    match = _PROFILER.fullmatch(name)
    return {"step": int(match["step"])} if match else None


def _read_engine(name: str) -> dict[str, int | str | None] | None:
    """Phase and tokens as vLLM's and SGLang's marks tell them; they have no number."""
    if match := _VLLM.fullmatch(name):
        prefill, decode = int(match["prefill"]), int(match["decode"])
        phase = "mixed" if prefill and decode else "prefill" if prefill else "decode"
        batch = int(match["prefills"]) + int(match["decodes"])
        return {"phase": phase, "batch": batch, "prefill_tokens": prefill, "decode_tokens": decode}
    if match := _SGLANG.fullmatch(name):
        batch, tokens = int(match["batch"]), match["tokens"] and int(match["tokens"])
        if match["mode"] == "DECODE":
            return {"phase": "decode", "batch": batch, "prefill_tokens": 0, "decode_tokens": batch}
        other = {"EXTEND": "prefill", "MIXED": "mixed"}.get(match["mode"])
        return {"phase": other, "batch": batch, "prefill_tokens": tokens if other == "prefill" else None}
    return None


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
    """With the tokens, the gap, and the mean number of KV positions that a token of a decode step attends to.

    Of N tokens in a row behind a context of C the k-th attends to C + k positions, itself among them.
    """
    tokens = pl.col("prefill_tokens").fill_null(0) + pl.col("decode_tokens").fill_null(0)
    known = pl.col("prefill_tokens").is_not_null() | pl.col("decode_tokens").is_not_null()
    sequences = pl.max_horizontal(pl.col("batch").fill_null(1), 1)
    mean_kv = pl.col("context_len") / sequences + (pl.col("decode_tokens") / sequences + 1) / 2
    return steps.with_columns(
        pl.when(known).then(tokens).alias("tokens"),
        pl.when(pl.col("phase") == "decode").then(mean_kv).alias("mean_kv"),
        (pl.col("wall_ns") - pl.col("gpu_busy_ns")).alias("gap_ns"),
    )


_Classes = tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]


def _class_steps(trace: Trace, steps: pl.DataFrame) -> _Classes:
    """Times by step and class, the steps' busy times where they follow from these, and what to know of both."""
    sources: tuple[Callable[[Trace, pl.DataFrame], _Classes], ...] = (_from_totals, _from_functions, _from_launches)
    for source in sources:
        classes, busy, notes = source(trace, steps)
        if not classes.is_empty():
            return classes, busy, notes
    return pl.DataFrame(schema=CLASS_STEPS).drop("phase"), _no_busy(), ()


def _no_busy() -> pl.DataFrame:
    return pl.DataFrame(schema={"step": pl.Int64, "busy_ns": pl.Int64})


def _has_printed(trace: Trace) -> bool:
    return "totals" in trace.scope and bool(trace.totals.select(pl.col("step").count()).collect().item())


def _from_totals(trace: Trace, steps: pl.DataFrame) -> _Classes:
    if not _has_printed(trace):
        return pl.DataFrame(), _no_busy(), ()
    rank, process = steps.select(OWNER).row(0)
    rows = trace.totals.filter(pl.col("rank").eq_missing(rank), pl.col("step").is_not_null())
    if rank is not None:  # sections of one rank go on where those of the one before ended
        rows = rows.with_columns(pl.col("section") - pl.col("section").min())
    rows = rows.filter(pl.col("section") == (process or 0), pl.col("total_ns").is_not_null())
    found = rows.select("step", "kernel", "layer", "total_ns").collect()
    classes = {label: class_of_label(label) for label in found["kernel"].unique()}
    sums = found.group_by("step", pl.col("kernel").replace_strict(classes).alias("class"), maintain_order=True).agg(
        pl.col("total_ns").sum(), pl.col("layer").drop_nulls().n_unique().cast(pl.Int64).alias("layers")
    )
    return sums.with_columns(pl.lit(None, dtype=pl.Int64).alias("calls")), _no_busy(), ()


def _from_functions(trace: Trace, steps: pl.DataFrame) -> _Classes:
    if "function_times" not in trace.scope:
        return pl.DataFrame(), _no_busy(), ()
    rows = trace.function_times.filter(pl.col("device") != "host", *_of_owner(steps))
    found = rows.select("cycle", "function", "dur_ns", "calls").collect()
    labels = label_names(found["function"].unique(), "name")
    sums = found.group_by(
        pl.col("cycle").alias("step"), pl.col("function").replace(labels).alias("class"), maintain_order=True
    ).agg(
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.when(pl.col("calls").null_count() == 0).then(pl.col("calls").sum()).alias("calls"),
    )
    notes = (_SUMMED,) if steps["gpu_busy_ns"].null_count() else ()
    return sums.with_columns(pl.lit(0, dtype=pl.Int64).alias("layers")), _no_busy(), notes


def _of_owner(steps: pl.DataFrame) -> list[pl.Expr]:
    rank, process = steps.select(OWNER).row(0)
    return [pl.col("rank").eq_missing(rank), pl.col("process").eq_missing(process)]


def _from_launches(trace: Trace, steps: pl.DataFrame) -> _Classes:
    timed = steps.filter(pl.col("start_ns").is_not_null(), pl.col("wall_ns").is_not_null())
    if "launches" not in trace.scope or timed.is_empty():
        return pl.DataFrame(), _no_busy(), ()
    launches = _called(trace, *timed.select(OWNER).row(0))
    times = launches["called_ns"].fill_null(launches["start_ns"]).to_numpy()
    start, wall = (timed[name].to_numpy() for name in ("start_ns", "wall_ns"))
    lanes = (np.zeros(len(start), dtype=np.int64), np.zeros(len(times), dtype=np.int64))
    inside = find_innermost(lanes[0], start, start + wall, lanes[1], times)
    number = np.concatenate((timed["step"].to_numpy(), [0]))[inside]
    placed = launches.with_columns(pl.Series("step", number, dtype=pl.Int64)).filter(pl.Series(inside) >= 0)
    labels = label_names(placed["kernel"].cast(pl.String).unique(), "name")
    sums = (
        relabel(placed.lazy(), labels)
        .group_by("step", pl.col("kernel").cast(pl.String).alias("class"))
        .agg(pl.col("dur_ns").sum().alias("total_ns"), pl.len().cast(pl.Int64).alias("calls"))
        .sort("step", "class")
        .with_columns(pl.lit(0, dtype=pl.Int64).alias("layers"))
        .collect()
    )
    busy = busy_by(placed.lazy(), ["step"]).collect()
    idle = pl.DataFrame({"step": timed["step"], "idle_ns": 0}, schema={"step": pl.Int64, "idle_ns": pl.Int64})
    busy = idle.join(busy, on="step", how="left").select("step", pl.coalesce("busy_ns", "idle_ns").alias("busy_ns"))
    return sums, busy, tuple(_about_launches(launches, placed))


def _called(trace: Trace, rank: int | None, process: int | None) -> pl.DataFrame:
    """The launches of a run with `called_ns`; those of an unknown process count where only its rank tells."""
    launches = trace.compact("launches").filter(pl.col("rank").eq_missing(rank))
    if process is not None:
        launches = launches.filter(pl.col("process").is_null() | (pl.col("process") == process))
    launches = launches.select("kernel", *OWNER, "start_ns", "dur_ns", "correlation_id")
    if "calls" not in trace.scope:
        return launches.with_columns(pl.lit(None, dtype=pl.Int64).alias("called_ns")).collect()
    calls = trace.calls.select(*CALL_KEY, "start_ns").with_row_index("call")
    called = calls.select("call", pl.col("start_ns").alias("called_ns"))
    return tie_launches(launches, calls).join(called, on="call", how="left").collect()


def _about_launches(launches: pl.DataFrame, placed: pl.DataFrame) -> list[str]:
    notes = []
    if outside := launches.height - placed.height:
        notes.append(f"{outside:,} of {launches.height:,} launches are in no step and are left out.")
    if uncalled := placed["called_ns"].null_count():
        which = "Launches" if uncalled == placed.height else f"{uncalled:,} of {placed.height:,} launches"
        notes.append(f"{which} have no host call in the file: they belong to the step in which they began.")
    return notes


def _filled(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
