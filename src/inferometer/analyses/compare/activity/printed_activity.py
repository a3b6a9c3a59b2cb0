"""A run whose source printed sums step by step: each step of the more frequent phase is a cycle, each class a function.

A class is a kernel without its layer. The log prints no counts, so the tokens of a step stand for its calls; a last,
smaller batch is therefore no complete cycle. Steps get dearer with their context, so two runs are compared where the
contexts of both lie (`shared_contexts`).
"""

import polars as pl

from inferometer.analyses.columns import with_schema
from inferometer.analyses.compare.activity.activity import (
    CYCLES,
    FUNCTIONS,
    LANE,
    OWNER,
    Activity,
    class_of,
    main_lanes,
)
from inferometer.analyses.compare.activity.activity import with_completeness as complete
from inferometer.analyses.steps.printed import has_printed_steps, printed_steps
from inferometer.names.engine_labels import class_of_label
from inferometer.trace.trace import Trace

_STEP = ["rank", "log_run", "step"]
Contexts = tuple[int, int]


def is_by_step(trace: Trace) -> bool:
    """Whether sums were printed step by step, and the steps are there."""
    if "steps" not in trace.scope or not has_printed_steps(trace):
        return False
    return bool(trace.steps.select(pl.len()).collect().item())


def shared_contexts(base: Trace, candidate: Trace) -> Contexts | None:
    """The lengths of context that steps of both runs had; None where one doesn't say, or they have none in common.

    Tokens in the KV cache before a step, the first and the last.
    """
    first, second = context_range(base), context_range(candidate)
    return None if first is None or second is None else overlap(first, second)


def overlap(first: Contexts, second: Contexts) -> Contexts | None:
    """What two ranges of contexts have in common."""
    low, high = max(first[0], second[0]), min(first[1], second[1])
    return (low, high) if low <= high else None


def context_range(trace: Trace) -> Contexts | None:
    """Tokens in the KV cache before the first and the last of the steps to compare; None where that isn't known."""
    if not is_by_step(trace):
        return None
    low, high = compared_steps(trace).select(low=pl.col("context_len").min(), high=pl.col("context_len").max()).row(0)
    return None if low is None else (low, high)


def compared_steps(trace: Trace) -> pl.DataFrame:
    """The steps of the phase that has most, with `log_run`, `cycle` and `tokens`."""
    steps = trace.steps.collect()
    run = pl.col("process").fill_null(0).alias("log_run")
    tokens = pl.coalesce("decode_tokens", "prefill_tokens", pl.lit(1)).alias("tokens")
    steps = steps.with_columns(run, tokens)
    phases = steps.group_by("phase", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    chosen = steps.filter(pl.col("phase").eq_missing(phases["phase"][0])) if steps.height else steps
    return chosen.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("cycle"))


def activity_of_steps(trace: Trace, contexts: Contexts | None = None) -> Activity:
    """The run's steps as cycles, those whose wall time is known; only those within `contexts` where given.

    Where no wall time is known, a step is as long as its sums.
    """
    every = compared_steps(trace)
    steps = every if contexts is None else every.filter(pl.col("context_len").is_between(*contexts))
    if steps.height and steps["dur_ns"].null_count() == steps.height:  # nothing but sums
        steps = steps.with_columns(pl.col("gpu_busy_ns").alias("dur_ns"))
    placed = steps.select(*_STEP, "cycle", "process", "tokens")
    rows = printed_steps(trace).collect().join(placed, on=_STEP, nulls_equal=True)
    classes = {label: class_of_label(label) for label in rows["kernel"].unique()}
    sums = rows.group_by(
        "cycle", *LANE, pl.col("kernel").replace_strict(classes).alias("function"), maintain_order=True
    ).agg(pl.col("total_ns").sum().alias("dur_ns"), pl.col("tokens").first().alias("calls"))
    kinds = [class_of(name) for name in sums["function"]]
    functions = with_schema(sums.with_columns(pl.Series("cls", kinds, dtype=pl.String)), FUNCTIONS)
    lanes = steps.select("cycle", *OWNER, "start_ns", "dur_ns", "anchor").join(
        main_lanes(functions), on=OWNER, how="left", nulls_equal=True
    )
    cycles = complete(with_schema(lanes, CYCLES).sort(*LANE, "cycle"), functions)
    return Activity(functions, cycles, "function_times", notes=tuple(_notes(trace, every, steps)))


def _notes(trace: Trace, every: pl.DataFrame, steps: pl.DataFrame) -> list[str]:
    others = trace.steps.select(pl.len()).collect().item() - every.height
    phase = every["phase"][0] or "recorded"
    notes = [f"{every.height:,} {phase} steps as the source printed them; {others:,} of other phases are left out."]
    if every["dur_ns"].null_count() == every.height:
        notes.append("Wall times of steps aren't known: a step is as long as the sum of its kernels.")
    if steps.height < every.height:
        low, high = steps.select(low=pl.col("context_len").min(), high=pl.col("context_len").max()).row(0)
        notes.append(f"Of these, {steps.height:,} have a context that the other run has, too: {low} to {high} tokens.")
    return notes
