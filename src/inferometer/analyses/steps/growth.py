"""How the time of each class of kernels grows with context: ordinary least squares per token, with intervals.

A decode step's time in a class, per token, over the mean number of KV positions that its tokens attend to. Where most
steps have one number of tokens, the others are left out of the line: a tail's cost per token is its own. The slope's
95 % interval is of Student's t distribution, with residuals taken as independent and of one spread.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.units import format_duration

ALL = "(all)"
CONTEXTS = 3
"""Different contexts from which on a line says anything: two always lie on one."""

_CONFIDENCE = 0.95
_MOST = 0.5
Values = NDArray[np.float64]
GROWTH = pl.Schema(
    {
        "class": pl.String(),
        "steps": pl.Int64(),
        **dict.fromkeys(("intercept_ns", "slope_ns", "low_ns", "high_ns", "r2"), pl.Float64()),
        **dict.fromkeys(("first_share", "last_share"), pl.Float64()),
    }
)


def find_growth(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """One row per class, the steepest first, and a last one, `(all)`, of the time that the GPU was busy.

    Args:
        steps: The decode steps that count, in order of time: `step`, `tokens`, `mean_kv`, `gpu_busy_ns`.
        class_steps: `step`, `class`, `total_ns`.

    Returns:
        Columns `GROWTH`; `intercept_ns` and `slope_ns` are of one token, the slope for one KV position more. What
        fewer than three contexts don't show is null; without any context there are no rows. `first_share` and
        `last_share` are of the GPU's busy time in the first and the last step.
    """
    known = steps.filter(pl.col("mean_kv").is_not_null(), pl.col("tokens") > 0)
    if known.is_empty():
        return pl.DataFrame(schema=GROWTH)
    busy = known.select("step", pl.lit(ALL).alias("class"), pl.col("gpu_busy_ns").alias("total_ns")).drop_nulls()
    times = pl.concat([class_steps.select("step", "class", "total_ns"), busy])
    times = times.join(known, on="step", maintain_order="left").sort("class", "step")
    rows = pl.DataFrame(list(_rows(times, known, _alike(known))), schema=GROWTH)
    is_all = pl.col("class") == ALL
    return rows.sort(is_all, pl.col("slope_ns"), "class", descending=[False, True, False], nulls_last=True)


def format_slope(slope_ns: float) -> str:
    """A slope for people, with digits below 100 ns, which a duration has not: `0.3 ns`, `153.600 μs`."""
    return format_duration(slope_ns) if abs(slope_ns) >= 100 else f"{slope_ns:.3g} ns"


def _alike(known: pl.DataFrame) -> list[int]:
    """The numbers of tokens of the steps to draw lines through."""
    usual = known["tokens"].mode().sort()[-1]
    is_most = (known["tokens"] == usual).sum() > _MOST * known.height
    return [usual] if is_most else known["tokens"].unique().to_list()


def _rows(times: pl.DataFrame, known: pl.DataFrame, tokens: list[int]) -> Iterator[dict[str, object]]:
    ends = known["step"][0], known["step"][-1]
    share = pl.col("total_ns") / pl.when(pl.col("gpu_busy_ns") > 0).then(pl.col("gpu_busy_ns"))
    for (name,), own in times.partition_by("class", as_dict=True, maintain_order=True).items():
        alike = own.filter(pl.col("tokens").is_in(tokens))
        fit = _fit(alike["mean_kv"].to_numpy(), (alike["total_ns"] / alike["tokens"]).to_numpy())
        shares = dict(own.filter(pl.col("step").is_in(ends)).select("step", share).iter_rows())
        first, last = (shares.get(step) for step in ends)
        yield {"class": name, "steps": alike.height, **fit, "first_share": first, "last_share": last}


def _fit(x: Values, y: Values) -> dict[str, float | None]:
    if len(np.unique(x)) < CONTEXTS:
        return {}
    from scipy.special import stdtrit

    run, rise = x - x.mean(), y - y.mean()
    slope = float(run @ rise / (run @ run))
    residual = rise - slope * run
    left, whole = float(residual @ residual), float(rise @ rise)
    freedom = len(x) - 2
    half = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2)) * (left / freedom / float(run @ run)) ** 0.5
    return {
        "intercept_ns": float(y.mean() - slope * x.mean()),
        "slope_ns": slope,
        "low_ns": slope - half,
        "high_ns": slope + half,
        "r2": 1 - left / whole if whole > 0 else None,
    }
