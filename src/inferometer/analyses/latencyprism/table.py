"""The published table of two processes: one row per function, metric and device, most suspicious first.

Source: the table of LatencyPrism's comparison (arXiv 2601.09258, artifact of January 2026). beta is the function's
share of the cycle in percent, mu the metric's mean while it ran as that artifact's files have it, L = ln(1 + mu); each
has one value per cycle. The formulas are kept as published, with what is wrong in them: see `comparison`.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.latencyprism.p_values import mann_whitney_p, welch_p
from inferometer.formats.latencyprism.metric_units import recorded_means, to_percent
from inferometer.trace.trace import Trace

KEYS = ["function", "metric", "device"]
_FUNCTION = ["cycle", "process", "function", "device"]
_LEAST_SD = 1e-9  # a deviation of the base no larger than this gives a Z of 0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Sample:
    """Means and sample deviations of each row's values in one run, and its number of cycles; 0 where it has none."""

    mean: Floats
    sd: Floats
    n: NDArray[np.int64]


def metric_rows(trace: Trace) -> pl.DataFrame:
    """`beta` and `mu`, both as published files have them, of each function, metric and cycle of each process.

    A mean that is missing is 0, as published. Functions whose share isn't known are left out.
    """
    whole = pl.col("cycle_dur_ns").replace(0, None)
    share = pl.coalesce("beta", pl.col("dur_ns") / whole).first()
    betas = trace.function_times.group_by(_FUNCTION).agg(share)
    rows = trace.function_metrics.join(betas.rename({"beta": "share"}), on=_FUNCTION, how="inner", nulls_equal=True)
    known = rows.filter(pl.col("share").is_not_null()).collect()
    return known.select(
        "cycle",
        "process",
        *KEYS,
        pl.Series("beta", to_percent(known["share"].to_numpy())),
        pl.Series("mu", np.nan_to_num(recorded_means(known), nan=0.0)),
    )


def published_table(base: pl.DataFrame, candidate: pl.DataFrame) -> pl.DataFrame:
    """The table of two processes' `metric_rows`; a row that one run lacks counts as 0 there.

    Rows of equal score are in the order of their names (published reports have them in any order).
    """
    second = pl.lit(value=True)
    both = pl.concat([base.with_columns(~second.alias("second")), candidate.with_columns(second.alias("second"))])
    keys = both.select(KEYS).unique().sort(KEYS).with_row_index("row")
    # Sums depend on the order of their terms in the last digit: one order, so that equal rows have equal scores.
    both = both.join(keys, on=KEYS).sort("row", "second", "cycle", "beta", "mu")
    rows, is_second = both["row"].to_numpy().astype(np.int64), both["second"].to_numpy()
    beta, mu = both["beta"].to_numpy(), both["mu"].to_numpy()
    cycles = both["cycle"].rank("dense").to_numpy().astype(np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        logarithm = np.log1p(mu)
    by_value = {
        name: [_sample(values, rows, cycles, is_second == side, keys.height) for side in (False, True)]
        for name, values in (("beta", beta), ("mu", mu), ("log_mu", logarithm))
    }
    columns: dict[str, Floats] = {}
    for name, (one, two) in by_value.items():
        columns |= {f"{name}_base": one.mean, f"{name}_candidate": two.mean, f"{name}_delta": two.mean - one.mean}
        columns[f"{name}_z"] = _z(one, two)
    for name, values in (("beta", beta), ("mu", mu)):
        one, two = by_value[name]
        is_tested = (one.n > 1) & (two.n > 1)
        welch = welch_p(one.mean, one.sd, one.n, two.mean, two.sd, two.n)
        columns[f"{name}_p"] = np.where(is_tested, welch, 1.0)
        columns[f"{name}_u_p"] = np.where(is_tested, mann_whitney_p(values, rows, is_second, keys.height), 1.0)
    score = np.abs(columns["beta_delta"]) * (np.abs(columns["beta_z"]) + np.abs(columns["log_mu_z"]))
    table = keys.with_columns(pl.Series("score", score), *(pl.Series(name, values) for name, values in columns.items()))
    table = table.with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.sort("score", *KEYS, descending=[True, False, False, False], nulls_last=True).drop("row")


def _sample(
    values: Floats, rows: NDArray[np.int64], cycles: NDArray[np.int64], mine: NDArray[np.bool_], n_rows: int
) -> _Sample:
    """Deviations are taken from each row's first value, so that equal values have exactly that mean and no spread."""
    values, rows, cycles = values[mine], rows[mine], cycles[mine]
    count = np.bincount(rows, minlength=n_rows)
    first = np.zeros(n_rows)
    first[rows[::-1]] = values[::-1]
    some = np.maximum(count, 1)
    mean = first + np.bincount(rows, values - first[rows], n_rows) / some
    off = values - mean[rows]
    squares = np.bincount(rows, off**2, n_rows) - np.bincount(rows, off, n_rows) ** 2 / some
    sd = np.sqrt(np.maximum(squares, 0.0) / np.maximum(count - 1, 1))
    pairs = np.unique(rows * (cycles.max(initial=0) + 1) + cycles)
    return _Sample(mean, sd, np.bincount(pairs // (cycles.max(initial=0) + 1), minlength=n_rows))


def _z(one: _Sample, two: _Sample) -> Floats:
    """The change in deviations of the base; 0 where it has none."""
    z = np.zeros(len(one.mean))
    np.divide(two.mean - one.mean, one.sd, out=z, where=one.sd > _LEAST_SD)
    return z
