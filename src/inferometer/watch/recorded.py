"""The steps of a recording, for a watcher: all of them, or those that came since the last look."""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.steps.sources import NEEDED as STEPS_NEEDED
from inferometer.analyses.steps.sources import read_steps
from inferometer.errors import InputError
from inferometer.trace.trace import Trace
from inferometer.watch.steps import WatchedStep

NEEDED = STEPS_NEEDED
_WORK = (("prefill_tokens",), ("decode_tokens", "batch"), ("context_len",))  # the first of each that is recorded


def steps_of(trace: Trace) -> list[WatchedStep]:
    """Whole steps in order of their start: of all processes where the source has a table of steps, else of the first.

    Raises:
        InputError: There are no steps, or none says when it began.
    """
    if recorded := recorded_steps(trace):
        return recorded
    steps = read_steps(trace, None).steps
    whole = steps.filter(~pl.col("is_partial").fill_null(value=False))
    if whole["start_ns"].null_count():
        raise InputError(
            f"{trace.facts.source}: expected steps with their times, found some without a start",
            hint="A watcher looks at steps in order of time; inferometer steps and compare answer without.",
        )
    return [*_watched(whole.rename({"wall_ns": "dur_ns"}))]


def recorded_steps(trace: Trace, *, may_grow: bool = False) -> list[WatchedStep]:
    """Those of the table of steps, in order of their start.

    `may_grow`: name the owner of a process that is alone, too, since another may join it later.
    """
    steps = trace.steps.drop_nulls(["start_ns", "dur_ns"]).collect()
    return [*_watched(steps, owners=1 if may_grow else 2)]


def _watched(steps: pl.DataFrame, *, owners: int = 2) -> Iterator[WatchedStep]:
    work = [pl.coalesce(*(pl.col(name) for name in names if name in steps.columns)) for names in _WORK]
    rows = steps.filter(pl.col("dur_ns") > 0).sort("start_ns", maintain_order=True)
    owner = _owner(rows, owners)
    columns = rows.select("start_ns", "dur_ns", "phase", owner.alias("owner"))
    amounts = rows.select(column.cast(pl.Float64).fill_null(0.0) for column in work)
    for (start_ns, dur_ns, phase, whose), done in zip(columns.iter_rows(), amounts.iter_rows(), strict=True):
        yield WatchedStep(start_ns, dur_ns, phase, whose, done)


def _owner(steps: pl.DataFrame, fewest: int) -> pl.Expr:
    """Rank or process, where there are so many."""
    for name in ("rank", "process"):
        if name in steps.columns and steps[name].drop_nulls().n_unique() >= fewest:
            return pl.format(f"{name} {{}}", name)
    return pl.lit(None, dtype=pl.String)
