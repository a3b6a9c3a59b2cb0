"""Prints the spreads of real LatencyPrism runs from which the generator's noise levels are taken.

    python -m tests.faults.noise_of_real_runs FOLDER

FOLDER holds `normal/` and `abnormal/` with perf_data.csv and counters_data.csv (or .gz). For each run: the spread of
one call's time between whole cycles (1.4826 x median absolute deviation over median, median over functions of a
class; tail: the share of cycles beyond 5 such deviations), and of each counter between ticks (per tick: its median).
Between runs: the ratio of the medians, which is drift only where the fault doesn't reach.
"""

import sys
from pathlib import Path

import polars as pl


def _table(folder: Path, stem: str) -> pl.DataFrame:
    path = next(path for path in sorted(folder.iterdir()) if path.name.startswith(stem))
    return pl.read_csv(path, infer_schema_length=None)


def calls(folder: Path) -> pl.DataFrame:
    """Per class: median over functions of the relative spread of a call's time, and the share of far cycles."""
    keys = ["func_type", "function_name", "device", "pid", "cycle"]
    cycles = _table(folder, "perf_data").unique(keys)
    each = cycles.with_columns(call_us=pl.col("duration") / pl.col("instances_count"))
    whole = each.filter(pl.col("instances_count") >= 0.9 * pl.col("instances_count").median().over(keys[:3]))
    middle = pl.col("call_us").median().over(keys[:3])
    mad = 1.4826 * (pl.col("call_us") - middle).abs().median().over(keys[:3])
    far = ((pl.col("call_us") - middle).abs() > 5 * mad).mean().over(keys[:3])
    rows = whole.with_columns(middle.alias("middle"), (mad / middle).alias("spread"), far.alias("far"))
    functions = rows.unique(keys[:3]).filter(pl.len().over("func_type") > 0)
    return functions.group_by("func_type").agg(pl.len(), pl.col("spread", "far").median()).sort("func_type")


def call_drift(base: Path, candidate: Path) -> pl.DataFrame:
    """Per class: quartiles over functions of the ratio of the median times of one call."""
    both = []
    for folder in (base, candidate):
        rows = _table(folder, "perf_data").unique(["func_type", "function_name", "device", "pid", "cycle"])
        call = (pl.col("duration") / pl.col("instances_count")).median()
        both.append(rows.group_by("func_type", "function_name").agg(call.alias("call")))
    ratio = both[0].join(both[1], on=["func_type", "function_name"], suffix="2")
    value = pl.col("call2") / pl.col("call")
    quartiles = [value.quantile(q).alias(f"q{int(100 * q)}") for q in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return ratio.group_by("func_type").agg(pl.len(), *quartiles).sort("func_type")


def counters(folder: Path) -> pl.DataFrame:
    """Per counter: samples, median, and the spread (MAD and standard deviation) over ticks of one second."""
    rows = _table(folder, "counters_data").with_columns(tick=(pl.col("timestamp") / 1e6).round())
    ticks = rows.group_by("counter_name", "tick").agg(pl.col("value").median())
    mad = 1.4826 * (pl.col("value") - pl.col("value").median()).abs().median()
    wide = [pl.col("value").median().alias("median"), mad.alias("mad"), pl.col("value").std().alias("sd")]
    lag = pl.corr(pl.col("value"), pl.col("value").shift(1)).alias("lag1")
    return ticks.sort("tick").group_by("counter_name").agg(pl.len(), *wide, lag).sort("counter_name")


def main(folder: Path) -> None:
    """Print all tables of one pair."""
    with pl.Config(tbl_rows=-1, fmt_str_lengths=40, tbl_width_chars=140):
        for run in ("normal", "abnormal"):
            print(run, calls(folder / run), counters(folder / run), sep="\n")
        print("drift of calls", call_drift(folder / "normal", folder / "abnormal"), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
