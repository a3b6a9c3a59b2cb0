"""Traces that are out of line with those like them.

Compared is the logarithm of the median step (`alike`) with the median of traces that are alike and of one version of
the engine, five of them or more. Out of line is a distance of more than 3.5 times 1.4826 median absolute deviations,
the rule of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993), that also is 10 % of the step or more. Of
normally distributed values the rule takes about 1 of 2,000 for an outlier where they are many, and more where they are
few: 1 of 60 of ten, 1 of 20 of five.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.alike import ALIKE, KIND, median_steps
from inferometer.trace.losses import Losses

LEAST: Final = 5
_ALIKE: Final = (*ALIKE, "version")
_MOST: Final = 3.5
_NORMAL: Final = 1.4826  # standard deviations of a normal distribution in a median absolute one
_SMALLEST: Final = 0.1


@dataclass(frozen=True)
class FleetOutliers(Result):
    """`frame`: a row for each, the furthest first: `ratio` of its step to the median of `alike` traces, and `distance`.

    `compared` traces (and phases) have enough others like them; `alone` haven't, and aren't judged. Of the compared,
    `unknown` are of an unknown model. `distance` is in deviations; null where all others are equal.
    """

    view: ClassVar[str] = "fleet.outliers"
    source: str
    frame: pl.DataFrame
    compared: int
    alone: int
    unknown: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row for each outlier."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "compared": self.compared,
            "alone": self.alone,
            "unknown": self.unknown,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def fleet_outliers(fleet: Fleet) -> FleetOutliers:
    """The traces that are out of line."""
    steps = median_steps(fleet)
    middle = pl.col("step_ns").median().over(_ALIKE)
    away = pl.col("ratio").log().abs()
    spread = away.median().over(_ALIKE) * _NORMAL
    rows = (
        steps.with_columns(
            pl.len().over(_ALIKE).cast(pl.Int64).alias("alike"),
            middle.alias("usual_ns"),
            (pl.col("step_ns") / middle).alias("ratio"),
        )
        .with_columns(away.alias("away"), spread.alias("spread"))
        .with_columns(pl.when(pl.col("spread") > 0).then(pl.col("away") / pl.col("spread")).alias("distance"))
    )
    compared = rows.filter(pl.col("alike") >= LEAST)
    found = compared.filter(
        pl.col("away") >= float(np.log1p(_SMALLEST)), pl.col("distance").is_null() | (pl.col("distance") > _MOST)
    ).sort("away", "path", descending=[True, False])
    shown = found.select("path", *KIND, "version", "alike", "step_ns", "usual_ns", "ratio", "distance")
    unknown = int(compared.select((pl.col("model").is_null() & pl.col("matrices").is_null()).sum()).item())
    return FleetOutliers(fleet.source, shown, compared.height, rows.height - compared.height, unknown, fleet.losses())
