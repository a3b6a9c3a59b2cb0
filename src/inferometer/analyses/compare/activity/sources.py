"""The activity of a run, from whatever its source recorded.

From `function_times` where there are any, else from launches, else from printed totals, by step where they are.
"""

import polars as pl

from inferometer.analyses.columns import with_schema
from inferometer.analyses.compare.activity.activity import (
    CYCLES,
    FUNCTIONS,
    HOST,
    LANE,
    OWNER,
    Activity,
    class_of,
    main_lanes,
    with_completeness,
    with_costs,
)
from inferometer.analyses.compare.activity.launch_activity import activity_of_launches
from inferometer.analyses.compare.activity.printed_activity import activity_of_steps, is_by_step
from inferometer.trace.trace import Trace


def activity(trace: Trace, contexts: tuple[int, int] | None = None) -> Activity:
    """What the run did.

    Args:
        trace: Needs any of `function_times`, `launches` (with `steps`, `spans` and `calls` for cycles) and `totals`
            (with `steps` where they were printed by step).
        contexts: Of steps that were printed, those with so many tokens of context, first and last.
    """
    if _has_rows(trace, "function_times"):
        return _from_function_times(trace)
    if _has_rows(trace, "launches"):
        return activity_of_launches(trace)
    if _has_rows(trace, "totals"):
        return activity_of_steps(trace, contexts) if is_by_step(trace) else _from_totals(trace)
    return Activity(pl.DataFrame(schema=FUNCTIONS), pl.DataFrame(schema=CYCLES))


def _has_rows(trace: Trace, table: str) -> bool:
    return table in trace.scope and bool(trace.tables[table].select(pl.len()).collect().item())


def _from_function_times(trace: Trace) -> Activity:
    rows = trace.function_times.collect()
    notes = () if rows["calls"].null_count() == 0 else ("Calls were not recorded: each row counts as one call.",)
    names = rows.select("function", "class", "device").unique(maintain_order=True)
    classes = [HOST if device == HOST else class_of(function, text) for function, text, device in names.iter_rows()]
    rows = rows.join(
        names.with_columns(pl.Series("cls", classes, dtype=pl.String)),
        on=["function", "class", "device"],
        nulls_equal=True,
        maintain_order="left",
    )
    sums = rows.group_by("cycle", *LANE, "function", "cls", maintain_order=True).agg(
        pl.col("dur_ns").sum(), pl.col("calls").fill_null(1).sum()
    )
    functions = with_costs(with_schema(sums, FUNCTIONS))
    cycles = rows.group_by("cycle", *OWNER, maintain_order=True).agg(
        pl.col("cycle_dur_ns").max().alias("dur_ns"), pl.col("anchor").drop_nulls().first()
    )
    cycles = cycles.join(_starts(trace), on=["cycle", *OWNER], how="left", nulls_equal=True, maintain_order="left")
    lanes = cycles.join(main_lanes(functions), on=OWNER, how="left", nulls_equal=True)
    ordered = with_schema(lanes, CYCLES).sort(*LANE, "cycle")
    return Activity(functions, with_completeness(ordered, functions), "function_times", notes=notes)


def _starts(trace: Trace) -> pl.DataFrame:
    """When each cycle began, where the source's steps are these cycles."""
    if "steps" not in trace.scope:
        return pl.DataFrame(schema={name: CYCLES[name] for name in ("cycle", *OWNER, "start_ns")})
    steps = trace.steps.select(pl.col("step").alias("cycle"), *OWNER, "start_ns").collect()
    return steps.unique(["cycle", *OWNER], keep="first", maintain_order=True)


def _from_totals(trace: Trace) -> Activity:
    """The first printed table: others may count the same time. Rows without a time are left out, and reported."""
    rows = trace.totals.collect()
    sections = rows["section"].unique().sort()
    rows = rows.filter(pl.col("section") == sections[0])
    summed = pl.col("total_ns").fill_null((pl.col("mean_ns") * pl.col("count")).round().cast(pl.Int64))
    rows = rows.with_columns(summed.alias("dur_ns"), pl.col("count").fill_null(1).alias("calls"))
    known = rows.filter(pl.col("dur_ns").is_not_null())
    notes = [f"Of {len(sections)} printed tables the first is compared."] if len(sections) > 1 else []
    if known.height < rows.height:
        notes.append(f"{rows.height - known.height} printed rows without a time are left out.")
    spread = pl.when(pl.len() == 1).then(pl.col("stddev_ns").first()).alias("spread_ns")
    sums = known.group_by("rank", "device", pl.col("kernel").alias("function"), maintain_order=True).agg(
        pl.col("dur_ns").sum(), pl.col("calls").sum(), spread
    )
    classes = [class_of(name) for name in sums["function"]]
    functions = with_schema(sums.with_columns(pl.Series("cls", classes, dtype=pl.String), cycle=1), FUNCTIONS)
    lanes = functions.group_by(LANE, maintain_order=True).agg(pl.col("dur_ns").sum())
    cycles = with_schema(lanes.with_columns(cycle=1, complete=pl.lit(value=True)), CYCLES)
    return Activity(functions, cycles, "totals", notes=tuple(notes))
