"""Measures the published comparison against the obvious pandas and scipy version of it, in one process.

    python -m benchmarks.published BASE CANDIDATE

BASE and CANDIDATE are folders of LatencyPrism runs of one process each. Needs pandas, which the extra `notebook` has.
Both sides begin with their tables in memory, imports and reading excluded, and take turns; reading is timed next to. No
time is reported unless all rows agree within one part in a million. JSON goes to stdout, a summary to stderr. Bar: a
fifth.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import inferometer
from inferometer.analyses.latencyprism.comparison import NEEDED, published

BAR = 1 / 5
KEYS = ["function_name", "metric_name", "device"]
TOLERANCE = 1e-6
NUMBERS = {
    "beta_base": "beta_1",
    "beta_candidate": "beta_2",
    "beta_delta": "beta_delta",
    "beta_z": "beta_z",
    "beta_p": "beta_p",
    "beta_u_p": "beta_u",
    "mu_base": "mu_1",
    "mu_candidate": "mu_2",
    "mu_delta": "mu_delta",
    "mu_z": "mu_z",
    "log_mu_z": "log_mu_z",
    "mu_p": "mu_p",
    "mu_u_p": "mu_u",
    "score": "score",
}

Row = Mapping[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("--repetitions", type=int, default=15)
    options = parser.parse_args()
    folders = (options.base, options.candidate)
    traces = [inferometer.open(folder, NEEDED) for folder in folders]
    frames = [read_frame(folder) for folder in folders]
    rows = check(published(*traces).comparisons[0].table.to_dicts(), naive_table(*frames))
    sides = {
        "ours": lambda: published(*traces),
        "naive": lambda: naive_table(*frames),
        "ours_reading": lambda: [inferometer.open(folder, NEEDED) for folder in folders],
        "naive_reading": lambda: [read_frame(folder) for folder in folders],
    }
    seconds = measure(sides, options.repetitions)
    medians = {side: statistics.median(times) for side, times in seconds.items()}
    result = {
        "rows": rows,
        "median_s": medians,
        "spread_s": {side: [min(times), max(times)] for side, times in seconds.items()},
        "ratio": medians["ours"] / medians["naive"],
        "bar": BAR,
        "repetitions": options.repetitions,
        "versions": {name: version(name) for name in ("numpy", "pandas", "polars", "scipy")},
    }
    print(json.dumps(result, indent=1))
    print(f"{rows} rows agree; ours takes {result['ratio']:.3f} of the naive version's time", file=sys.stderr)
    return 0 if medians["ours"] <= BAR * medians["naive"] else 1


def measure(sides: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Seconds of each side, which take turns; a first round is not counted."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for repetition in range(repetitions + 1):
        for side, run in sides.items():
            start = time.perf_counter()
            run()
            if repetition:
                seconds[side].append(time.perf_counter() - start)
    return seconds


def read_frame(folder: Path) -> pd.DataFrame:
    path = next(path for name in ("perf_data.csv", "perf_data.csv.gz") if (path := folder / name).is_file())
    return pd.read_csv(path)


def naive_table(base: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The formulas as one would write them down: a groupby a run, then scipy row by row."""
    both = aggregate(base).merge(aggregate(candidate), on=KEYS, how="outer", suffixes=("_1", "_2"))
    numbers = both.select_dtypes("number").columns
    both[numbers] = both[numbers].fillna(0.0)
    for name in ("beta", "mu", "log_mu"):
        both[f"{name}_delta"] = both[f"{name}_2"] - both[f"{name}_1"]
        sd = both[f"{name}_sd_1"]
        both[f"{name}_z"] = (both[f"{name}_delta"] / sd.where(sd > 1e-9)).fillna(0.0)
    for name in ("beta", "mu"):
        both[f"{name}_p"] = both.apply(welch, axis=1, name=name)
        both[f"{name}_u"] = both.apply(mann_whitney, axis=1, name=name)
    both["score"] = both["beta_delta"].abs() * (both["beta_z"].abs() + both["log_mu_z"].abs())
    return both.sort_values("score", ascending=False)


def aggregate(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame["metric_name"].notna()].copy()  # pandas reads N/A as missing
    rows["mu_pct"] = rows["mu_pct"].fillna(0.0)
    rows["log_mu"] = np.log1p(rows["mu_pct"])
    return (
        rows.groupby(KEYS)
        .agg(
            beta=("beta_pct", "mean"),
            beta_sd=("beta_pct", "std"),
            betas=("beta_pct", list),
            mu=("mu_pct", "mean"),
            mu_sd=("mu_pct", "std"),
            mus=("mu_pct", list),
            log_mu=("log_mu", "mean"),
            log_mu_sd=("log_mu", "std"),
            n=("cycle", "nunique"),
        )
        .reset_index()
    )


def welch(row: pd.Series[Any], name: str) -> float:
    if row["n_1"] <= 1 or row["n_2"] <= 1:
        return 1.0
    one, two = ((row[f"{name}_{run}"], row[f"{name}_sd_{run}"], row[f"n_{run}"]) for run in (1, 2))
    with np.errstate(all="ignore"):
        return float(stats.ttest_ind_from_stats(*one, *two, equal_var=False).pvalue)


def mann_whitney(row: pd.Series[Any], name: str) -> float:
    if row["n_1"] <= 1 or row["n_2"] <= 1:
        return 1.0
    return float(stats.mannwhitneyu(row[f"{name}s_1"], row[f"{name}s_2"], alternative="two-sided").pvalue)


def check(ours: Sequence[Mapping[str, Any]], naive: pd.DataFrame) -> int:
    """The number of rows, when every number of each agrees."""
    wanted = {tuple(row[key] for key in KEYS): row for row in naive.to_dict("records")}
    if len(ours) != len(wanted):
        raise SystemExit(f"{len(ours)} rows, expected {len(wanted)}")
    for row in ours:
        other = wanted[row["function"], row["metric"], row["device"]]
        for name, title in NUMBERS.items():
            a, b = math.nan if row[name] is None else row[name], other[title]
            if not (math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))):
                raise SystemExit(f"{row['function'][:60]} {row['metric']}: {name} is {a}, expected {b}")
    return len(ours)


if __name__ == "__main__":
    raise SystemExit(main())
