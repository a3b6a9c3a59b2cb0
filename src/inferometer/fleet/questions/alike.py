"""Traces that are alike, and the one number of each that they are compared by: the median step of a phase.

Alike are traces of the same model, GPU, engine, deployment and phase. A step is the window of `inferometer steps`, from
its begin until its work has ended; where that isn't recorded, its time on the host.
"""

from typing import Final

import polars as pl

from inferometer.fleet.opening import Fleet
from inferometer.fleet.tables import TRACE

KIND: Final = ("model", "gpu", "engine", "deployment", "phase")
"""What traces that are alike have in common; null is a value of its own."""


def median_steps(fleet: Fleet) -> pl.DataFrame:
    """A row for each trace and phase: `trace`, `path`, `version`, the columns of `KIND`, `step_ns` above 0."""
    about = fleet.traces.lazy().select(TRACE, "path", "version", *KIND[:-1])
    step = pl.coalesce("window_median_ns", "wall_median_ns").alias("step_ns")
    return (
        fleet.table("phases")
        .select(TRACE, "phase", step)
        .filter(pl.col("step_ns") > 0)
        .join(about, on=TRACE)
        .select(TRACE, "path", "version", *KIND, "step_ns")
        .sort(*KIND, "path", nulls_last=True)
        .collect()
    )
