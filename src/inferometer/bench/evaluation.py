"""What the evaluator found, for people and programs: a row for every candidate on every shape, and what to doubt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.result import Result
from inferometer.bench.results import Run, ShapeResult
from inferometer.trace.losses import Losses

_CORRECT = {
    **dict.fromkeys(("operator", "contender", "verdict"), pl.String),
    "cases": pl.Int64,
    **dict.fromkeys(("error", "row_error"), pl.Float64),
    **dict.fromkeys(("hard", "strided", "failure", "shape"), pl.String),
}
_FAST = {
    **dict.fromkeys(("operator", "contender", "verdict"), pl.String),
    **dict.fromkeys(("cold_ns", "warm_ns", "spread"), pl.Float64),
    "samples": pl.Int64,
    **dict.fromkeys(("speedup", "speedup_low", "speedup_high", "sol_fraction", "own"), pl.Float64),
    **dict.fromkeys(("failure", "shape"), pl.String),
}


@dataclass(frozen=True)
class Evaluation(Result):
    """Results for every kernel on every shape; `refused`: why other backends didn't take part."""

    view: ClassVar[str] = "evaluation"
    run: Run
    refused: Mapping[str, str]
    losses: Losses

    @property
    def is_right(self) -> bool:
        """Whether every candidate has every shape right."""
        return all(result.is_right for result in self.run.results)

    def to_polars(self) -> pl.DataFrame:
        """One row per kernel and shape: how wrong it is, or where kernels were timed, how fast."""
        if self.run.stage == "fast":
            return pl.DataFrame([_fast_row(each) for each in self.run.results], schema=_FAST, orient="row")
        return pl.DataFrame([_row(each) for each in self.run.results], schema=_CORRECT, orient="row")

    def as_json(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self.run), "right": self.is_right, "refused": dict(self.refused)}


def _row(result: ShapeResult) -> dict[str, Any]:
    return {
        "operator": result.operator,
        "contender": result.candidate,
        "verdict": result.verdict,
        "cases": result.cases,
        "error": result.error,
        "row_error": result.row_error,
        "hard": _hard(result),
        "strided": None if result.strided is None else result.strided.partition(":")[0],
        "failure": result.failure,
        "shape": result.shape,
    }


def _hard(result: ShapeResult) -> str | None:
    """How many of the hard cases it got right; None where none ran."""
    right = sum(words == "right" for words in result.hard.values())
    return f"{right} of {len(result.hard)}" if result.hard else None


def _fast_row(result: ShapeResult) -> dict[str, Any]:
    cold, warm = result.timing("cold"), result.timing("warm")
    versus = next((each for each in result.versus if each.mode == "cold"), None)
    bound = result.bound
    return {
        "operator": result.operator,
        "contender": result.candidate,
        "verdict": result.verdict if versus is None or not result.is_right else versus.verdict,
        "cold_ns": None if cold is None else cold.median_ns,
        "warm_ns": None if warm is None else warm.median_ns,
        "spread": None if cold is None else (cold.high_ns - cold.low_ns) / 2 / cold.median_ns,
        "samples": None if cold is None else cold.samples,
        "speedup": None if versus is None else versus.speedup,
        "speedup_low": None if versus is None else versus.low,
        "speedup_high": None if versus is None else versus.high,
        "sol_fraction": None if bound is None or cold is None else bound.bound_ns / cold.median_ns,
        "own": None if result.attribution is None else result.attribution.own,
        "failure": result.failure,
        "shape": result.shape,
    }
