"""Traces that are alike, and the one number of each that they are compared by: the median step of a phase.

Alike are traces of the same model, GPU, engine, deployment and phase; of those that name no model, traces that multiply
by the same matrices. Where no shapes were recorded either, nothing tells models apart. A step is the window of
`inferometer steps`, from its begin until its work has ended; where that isn't recorded, its time on the host.
"""

from typing import Final

import polars as pl

from inferometer.analyses.model.recognition import find_matrices
from inferometer.fleet.opening import Fleet
from inferometer.fleet.tables import TRACE

KIND: Final = ("model", "gpu", "engine", "deployment", "phase")
"""What traces that are alike have in common; null is a value of its own."""
ALIKE: Final = (*KIND, "matrices")
"""The same with the matrices of models that aren't named."""


def median_steps(fleet: Fleet) -> pl.DataFrame:
    """A row for each trace and phase: `trace`, `path`, `version`, the columns of `ALIKE`, `step_ns` above 0."""
    about = fleet.traces.lazy().select(TRACE, "path", "version", *KIND[:-1])
    step = pl.coalesce("window_median_ns", "wall_median_ns").alias("step_ns")
    found = (
        fleet.table("phases")
        .select(TRACE, "phase", step)
        .filter(pl.col("step_ns") > 0)
        .join(about, on=TRACE)
        .select(TRACE, "path", "version", *KIND, "step_ns")
        .sort(*KIND, "path", nulls_last=True)
        .collect()
    )
    nameless = found.filter(pl.col("model").is_null())[TRACE].unique()
    return found.join(_matrices(fleet, nameless), on=TRACE, how="left", maintain_order="left")


def _matrices(fleet: Fleet, traces: pl.Series) -> pl.DataFrame:
    """`matrices` of these traces, as text: the sizes of all that they multiply by; no row where none was recorded."""
    ops = fleet.table("ops").filter(pl.col(TRACE).is_in(traces.implode()))
    each = ops.select(TRACE, "op", "input_dims", "total_ns").drop_nulls().collect().partition_by(TRACE, as_dict=True)
    sizes = {str(key[0]): sorted(find_matrices(part).products) for key, part in each.items()}
    rows = [(trace, str(products)) for trace, products in sizes.items() if products]
    return pl.DataFrame(rows, schema={TRACE: pl.String, "matrices": pl.String}, orient="row")
