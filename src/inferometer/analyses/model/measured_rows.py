"""Measured time of each class of kernels next to the work that its part of the model takes.

Sums go over undisturbed steps whose context is known, so that both sides speak of the same work: of decode steps, one
token; of prefill, one step.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from inferometer.analyses.model.pass_work import PRODUCTS, Passes, Sizes, sum_of
from inferometer.analyses.model.roles import Part, match_roles
from inferometer.analyses.steps.printed import printed_of_run, printed_steps
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.errors import InputError
from inferometer.names.engine_labels import class_of_label, layer_of_label
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.architectures import Model

LEAST_BEST_BYTES = 1_000_000
"""A class that moves less per step is bound by its launch: its rate says nothing about what the device reaches."""

_MOST_ROUNDING = 0.05  # of a class's time, by which its printed digits may be off, for its rate to count as the best


def printed_rows_of_run(trace: Trace, run: int | None, known: StepTable | None) -> pl.DataFrame:
    """Printed rows of undisturbed steps with their step's phase, tokens and context."""
    trace.require(("totals", "steps"))
    if printed_steps(trace).head(1).collect().is_empty():
        raise InputError(
            f"{trace.facts.source}: expected sums by kernel and step, as a WebGPU engine's log has them, found none",
            hint="Leave --model-config out.",
        )
    table = step_table(trace, run=run) if known is None else known
    steps = table.steps.filter(~pl.col("disturbed").fill_null(value=False))
    steps = steps.select("step", "phase", "tokens", pl.col("context_len").alias("context"))
    return printed_of_run(trace, table.rank, table.process).collect().join(steps, on="step")


def phase_rows(
    rows: pl.DataFrame, phase: str | None, model: "Model", sizes: Sizes, *, by_layer: bool
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """One row per class of the phase, the most time first, and the roles that none of them has.

    Times are sums of undisturbed steps and what that is a unit; `flops`, `weight_bytes` and `moved_bytes` are a unit's.
    `is_rated`: the class's rate may count as the best of the run.
    """
    passes = Passes.of(rows, phase)
    costs = passes.costs(model, sizes)
    kernels = {kernel: class_of_label(kernel) for kernel in rows["kernel"].unique()}
    roles = match_roles(kernels.values(), list(dict.fromkeys(part for part, _ in costs)), _layers_of(kernels))
    label = pl.col("kernel") if by_layer else pl.col("kernel").replace_strict(kernels)
    sums = (
        rows.group_by(label.alias("kernel"), maintain_order=True)
        .agg(
            pl.col("total_ns").sum(),
            pl.col("resolution_ns").sum(),
            pl.col("step").n_unique().alias("steps"),
            pl.col("layer").drop_nulls().unique().alias("layers_seen"),
        )
        .sort("total_ns", "kernel", descending=[True, False])
    )
    found = []
    for row in sums.iter_rows(named=True):
        name = row["kernel"]
        parts = roles.parts[kernels[name] if by_layer else name]
        is_cut = by_layer or not roles.shared.isdisjoint(parts)
        layers = [int(layer) for layer in row["layers_seen"] if str(layer).isdecimal()] if is_cut else None
        cost = sum_of(costs, parts, layers or None)
        found.append(
            {
                "phase": phase,
                "kernel": name,
                "roles": [role for _, role in parts],
                "layers": len(row["layers_seen"]),
                "steps": row["steps"],
                "unit": passes.unit,
                "units": passes.units,
                "total_ns": row["total_ns"],
                "share": row["total_ns"] / max(1, int(sums["total_ns"].sum())),
                "measured_ns": row["total_ns"] / passes.units,
                "is_rated": _is_rated(row, parts),
                **{column: None if np.isnan(value) else float(value) / passes.units for column, value in cost.items()},
            }
        )
    floats = dict.fromkeys(("flops", "weight_bytes", "moved_bytes"), pl.Float64())
    schema = pl.Schema({"phase": pl.String(), "roles": pl.List(pl.String()), **floats})
    frame = pl.DataFrame(found, schema_overrides=schema, infer_schema_length=None)
    return frame, tuple(role for _, role in roles.unclaimed)


def _layers_of(kernels: Mapping[str, str]) -> dict[str, set[int]]:
    """The layers that the labels of each class name."""
    found: dict[str, set[int]] = {}
    for label, name in kernels.items():
        layer = layer_of_label(label)
        found.setdefault(name, set()).update(() if layer is None else (layer,))
    return found


def _is_rated(row: Mapping[str, Any], parts: Sequence[Part]) -> bool:
    """Whether a class reads whole matrices, and its time is printed finely enough to tell a rate."""
    reads = any(op in PRODUCTS for op, _ in parts)
    return reads and (row["resolution_ns"] or 0) <= _MOST_ROUNDING * row["total_ns"]


def with_rates(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` of all phases with `bytes_per_s` and `flops_per_s`, and in each the run's `best_bytes_per_s`."""
    seconds = pl.when(pl.col("measured_ns") > 0).then(pl.col("measured_ns") / 1e9)
    rated = rows.with_columns(
        (pl.col("moved_bytes") / seconds).alias("bytes_per_s"), (pl.col("flops") / seconds).alias("flops_per_s")
    )
    counts = pl.col("is_rated") & (pl.col("weight_bytes") >= LEAST_BEST_BYTES)
    return rated.with_columns(pl.col("bytes_per_s").filter(counts).max().alias("best_bytes_per_s")).drop("is_rated")
