"""The steps of a recording, for a watcher: all of them, or those that came since the last look."""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.steps.sources import NEEDED as STEPS_NEEDED
from inferometer.analyses.steps.sources import read_steps
from inferometer.trace.trace import Trace
from inferometer.watch.steps import WatchedStep

NEEDED = STEPS_NEEDED
KINDS = ("prefill_tokens", "decode_tokens", "context_len")
"""The kinds of work in `WatchedStep.work`. Where decoded tokens aren't recorded, the batch stands for them."""


def steps_of(trace: Trace) -> list[WatchedStep]:
    """Whole steps in order of their start: of all processes where the source has a table of steps, else of the first.

    Raises:
        InputError: There are no steps.
    """
    recorded = trace.steps.drop_nulls(["start_ns", "dur_ns"]).collect()
    if recorded.height:
        return [*_watched(recorded)]
    steps = read_steps(trace, None).steps
    whole = steps.filter(~pl.col("is_partial").fill_null(value=False))
    return [*_watched(whole.rename({"wall_ns": "dur_ns"}))]


def _watched(steps: pl.DataFrame) -> Iterator[WatchedStep]:
    work = [pl.coalesce(*(pl.col(name) for name in names if name in steps.columns)) for names in _WORK]
    rows = steps.filter(pl.col("dur_ns") > 0).sort("start_ns", maintain_order=True)
    columns = rows.select("start_ns", "dur_ns", "phase", _owner(rows).alias("owner"))
    amounts = rows.select(column.cast(pl.Float64).fill_null(0.0) for column in work)
    for (start_ns, dur_ns, phase, owner), done in zip(columns.iter_rows(), amounts.iter_rows(), strict=True):
        yield WatchedStep(start_ns, dur_ns, phase, owner, done)


_WORK = (("prefill_tokens",), ("decode_tokens", "batch"), ("context_len",))


def _owner(steps: pl.DataFrame) -> pl.Expr:
    """Rank or process, where there are several."""
    for name in ("rank", "process"):
        if name in steps.columns and steps[name].drop_nulls().n_unique() > 1:
            return pl.format(f"{name} {{}}", name)
    return pl.lit(None, dtype=pl.String)
