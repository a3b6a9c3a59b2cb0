"""The CSV folders hold what the traces hold."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.faults.case import Case
from tests.faults.csv_folders import write_pair
from tests.faults.pairs import make_pair

import inferometer
from inferometer import Trace

CASES = [
    Case("csv/one", ("gpu_clock",), extended=True),
    Case("csv/two", ("nvlink_traffic",), processes=2, tenants=True, cycles=(6, 8)),
    Case("csv/layers", ("cpu_clock",), layer_anchor=True, cycles=(6, 2)),
]


def from_files(run: Path) -> dict[str, pl.DataFrame]:
    """The tables as the files give them, read by the published units and nothing else."""
    perf = pl.read_csv(run / "perf_data.csv", infer_schema_length=None)
    counters = pl.read_csv(run / "counters_data.csv", infer_schema_length=None)
    device = pl.col("device").str.replace("GPU ", "gpu:").str.replace("Host", "host")
    keys = [pl.col("cycle"), pl.col("pid").alias("process"), pl.col("function_name").alias("function"), device]
    raw = "usage|rate|util|occupancy|cpu_frequency|gpu_mem_used"
    norm = pl.when(pl.col("metric_name").str.contains(raw)).then(1.0).otherwise(100.0)
    times = perf.select(
        *keys,
        (1000 * pl.col("duration")).round().cast(pl.Int64).alias("dur_ns"),
        pl.col("instances_count").alias("calls"),
        (pl.col("beta_pct") / 100).alias("beta"),
        (1000 * pl.col("anchor_dur_us")).round().cast(pl.Int64).alias("cycle_dur_ns"),
    )
    metrics = perf.filter(pl.col("metric_name") != "N/A").select(
        *keys, pl.col("metric_name").alias("metric"), pl.col("mu_pct") / norm, pl.col("sigma_pct") / norm
    )
    samples = counters.select("counter_name", (pl.col("timestamp").cast(pl.Int64) * 1000).alias("time_ns"), "value")
    return {
        "function_times": times.unique(),
        "function_metrics": metrics.rename({"mu_pct": "mu", "sigma_pct": "sigma"}),
        "counters": samples.rename({"counter_name": "metric"}),
    }


def from_trace(trace: Trace) -> dict[str, pl.DataFrame]:
    pid = pl.when(pl.col("process").is_null()).then(pl.lit("")).otherwise("_" + pl.col("process").cast(pl.String))
    return {
        "function_times": trace.function_times.collect(),
        "function_metrics": trace.function_metrics.collect(),
        "counters": trace.counters.with_columns(pl.col("metric") + pid).collect(),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_hold_the_tables(case: Case, tmp_path: Path) -> None:
    pair = make_pair(case, case.seed)
    write_pair(pair, tmp_path)
    for trace, name in zip(pair, ("normal", "abnormal"), strict=True):
        wanted = from_trace(trace)
        for table, found in from_files(tmp_path / name).items():
            assert_frame_equal(found, wanted[table].select(found.columns), check_row_order=False)


@pytest.mark.parametrize("case", [case for case in CASES if not case.extended], ids=lambda case: case.name)
def test_the_reader_gives_the_tables_back(case: Case, tmp_path: Path) -> None:
    pair = make_pair(case, case.seed)
    write_pair(pair, tmp_path)
    for wanted, name in zip(pair, ("normal", "abnormal"), strict=True):
        with inferometer.open(tmp_path / name) as found:
            for table in ("function_times", "function_metrics", "counters", "steps"):
                frames = [trace.tables[table].collect() for trace in (found, wanted)]
                assert_frame_equal(*frames, check_row_order=False)


def test_a_run_without_functions_has_no_perf_file(tmp_path: Path) -> None:
    write_pair(make_pair(Case("csv/bare", recorded="counters"), 1), tmp_path)
    assert [path.name for path in (tmp_path / "normal").iterdir()] == ["counters_data.csv"]


def test_named_devices_do_not_fit_these_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name their device"):
        write_pair(make_pair(Case("csv/resolved", pooled=False), 1), tmp_path)
