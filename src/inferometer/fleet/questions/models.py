"""Which models the traces are of, inferred from their shapes, next to the names that were recorded.

How it is inferred, `analyses.model.recognition` says. A trace of several ranks or of two models may have several
answers; it counts for the one with the wider model. One without products whose shapes were recorded, such as a graph's
replay, says nothing, and is counted so.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.model.recognition import Recognised, find_matrices, recognise
from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.times import HOUR_NS
from inferometer.fleet.tables import TRACE
from inferometer.trace.losses import Losses

NO_SHAPES: Final = "no products with shapes"
NONE_FITS: Final = "no known model fits"
_BY_OUTPUT: Final = "width and vocabulary alone"
_SCHEMA: Final = {"models": pl.String, "tensor_parallel": pl.Int64, "agree": pl.String, "reason": pl.String}


@dataclass(frozen=True)
class FleetModels(Result):
    """`frame`: a row for each answer, those that held GPUs longest first.

    `models` names all that fit equally well, null where none was found, which `reason` explains; `tensor_parallel`
    says over how many devices, null where that depends on the model; `agree` what of its dimensions was seen.
    `recorded` has the names that `named` of these `traces` have otherwise, null where they have none.
    """

    view: ClassVar[str] = "fleet.models"
    source: str
    frame: pl.DataFrame
    traces: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row for each answer."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "traces": self.traces,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def fleet_models(fleet: Fleet, recognised: pl.DataFrame | None = None) -> FleetModels:
    """The models by the shapes of products; `recognised` is what `recognised_traces` gives, where it is known."""
    named = (recognised_traces(fleet) if recognised is None else recognised).join(
        fleet.traces.select(TRACE, "model", "path", "held_ns", "op_ns"), on=TRACE
    )
    rows = (
        named.group_by(*_SCHEMA)
        .agg(
            pl.col("model").drop_nulls().unique().sort().str.join(", ").replace("", None).alias("recorded"),
            pl.col("model").count().cast(pl.Int64).alias("named"),
            pl.len().cast(pl.Int64).alias("traces"),
            pl.col("path").min().alias("example"),
            pl.col("held_ns").sum(),
            pl.col("op_ns").sum(),
        )
        .with_columns((pl.col("held_ns") / HOUR_NS).alias("held_gpu_hours"))
        .sort("held_ns", "op_ns", *_SCHEMA, descending=[True, True, *[False] * len(_SCHEMA)], nulls_last=True)
    )
    shown = rows.select(*_SCHEMA, "recorded", "named", "traces", "held_gpu_hours", "op_ns", "example")
    return FleetModels(fleet.source, shown, fleet.traces.height, fleet.losses())


def recognised_traces(fleet: Fleet) -> pl.DataFrame:
    """A row for each trace: `trace`, `models`, `tensor_parallel`, `agree`, `reason`."""
    ops = fleet.table("ops").select(TRACE, "op", "input_dims", "total_ns").drop_nulls().collect()
    parts = {key[0]: part for key, part in ops.partition_by(TRACE, as_dict=True).items()}
    rows = [{TRACE: trace, **_answer(parts.get(trace))} for trace in fleet.traces[TRACE]]
    return pl.DataFrame(rows, schema={TRACE: pl.String, **_SCHEMA}, orient="row")


def _answer(ops: pl.DataFrame | None) -> dict[str, Any]:
    matrices = None if ops is None else find_matrices(ops)
    if matrices is None or not matrices.products:
        return {"reason": NO_SHAPES}
    found = _widest(recognise(matrices))
    if found is None:
        return {"reason": NONE_FITS}
    agree = _BY_OUTPUT if found.is_by_vocabulary else ", ".join(found.agree)
    return {"models": found.say_models(), "tensor_parallel": found.split, "agree": agree}


def _widest(found: Iterable[Recognised]) -> Recognised | None:
    return max(found, key=lambda each: (not each.is_by_vocabulary, each.hidden), default=None)
