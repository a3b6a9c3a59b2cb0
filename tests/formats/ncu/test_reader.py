"""Nsight Compute's pages: real ones recomputed by loops, and what can't be read is counted."""

import csv
import gzip
from collections import defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError

SAMPLES = Path(__file__).parents[3] / "samples" / "h200"
HEAD = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC"
ROW = '"{}","7","python3","127.0.0.1","{}","1","7","(32, 4, 1)","(66, 1, 1)","0","9.0"'


@cache
def printed(name: str) -> list[list[str]]:
    with gzip.open(SAMPLES / name, "rt") as file:
        return list(csv.reader(file))


def opened(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "ncu.csv"
    path.write_text(text)
    return inferometer.open(path)


@pytest.fixture(scope="module")
def raw() -> Trace:
    return inferometer.open(SAMPLES / "ncu_raw.csv.gz")


def test_the_raw_page_has_exact_times_by_kernel(raw: Trace) -> None:
    names, _, *launches = printed("ncu_raw.csv.gz")
    expected: dict[str, list[Fraction]] = defaultdict(list)
    for row in launches:
        expected[row[names.index("Kernel Name")]].append(
            Fraction(row[names.index("gpu__time_duration.sum")].replace(",", "")) * 1000
        )
    totals = {row["kernel"]: row for row in raw.totals.collect().iter_rows(named=True)}
    assert {kernel: (row["count"], row["total_ns"]) for kernel, row in totals.items()} == {
        kernel: (len(each), sum(each)) for kernel, each in expected.items()
    }
    assert {row["resolution_ns"] for row in totals.values()} == {None}
    assert (min(row["min_ns"] for row in totals.values())) == min(map(min, expected.values()))
    [device] = raw.facts.devices
    assert (device.name, device.multiprocessors, device.compute_capability) == ("NVIDIA H200", 132, "9.0")
    assert counted(raw) == {"profiled_alone": 15}


@pytest.mark.parametrize(
    ("metric", "factor", "unit"),
    [
        ("dram__bytes_read.sum", 10**6, "byte"),
        ("dram__bytes_write.sum", 10**6, "byte"),
        ("dram__bytes_read.sum.per_second", 10**12, "byte/s"),
        ("sm__cycles_elapsed.avg.per_second", 10**9, "hz"),
        ("lts__t_sector_hit_rate.pct", 1, "%"),
        ("lts__t_sectors.sum", 1, "sector"),
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 1, "%"),
        ("launch__grid_size", 1, None),
    ],
)
def test_the_raw_page_has_counters_in_base_units(metric: str, factor: int, unit: str | None, raw: Trace) -> None:
    names, _, *launches = printed("ncu_raw.csv.gz")
    found = raw.kernel_counters.filter(pl.col("metric") == metric).collect()
    expected = [float(Fraction(row[names.index(metric)].replace(",", "")) * factor) for row in launches]
    assert found["value"].to_list() == pytest.approx(expected, rel=1e-15)
    assert set(found["unit"]) == {unit}
    assert found["launch"].to_list() == list(range(len(launches)))
    assert found["kernel"].to_list() == [row[names.index("Kernel Name")] for row in launches]


def test_the_details_have_the_same_launches_as_finely_as_they_are_printed() -> None:
    raw, details = (inferometer.open(SAMPLES / f"ncu_{page}.csv.gz") for page in ("raw", "details"))
    exact = dict(rows(raw, "totals", "kernel", "total_ns"))
    counts = dict(rows(raw, "totals", "kernel", "count"))
    blurs: dict[str, float] = defaultdict(float)
    names, *others = printed("ncu_details.csv.gz")
    for row in others:
        if row[names.index("Metric Name")] == "Duration":  # 41.95, or 20 us: half of the last digit, in ns
            digits = len(row[names.index("Metric Value")].partition(".")[2])
            blurs[row[names.index("Kernel Name")]] += 500 / 10**digits
    for kernel, count, total_ns, resolution_ns in rows(
        details, "totals", "kernel", "count", "total_ns", "resolution_ns"
    ):
        assert resolution_ns == blurs[kernel]
        assert count == counts[kernel]
        assert abs(total_ns - exact.pop(kernel)) <= resolution_ns
    assert not exact
    where = pl.col("metric") == "Memory Workload Analysis: L2 Hit Rate"
    hit = raw.kernel_counters.filter(pl.col("metric") == "lts__t_sector_hit_rate.pct").collect()["value"]
    assert details.kernel_counters.filter(where).collect()["value"].to_list() == pytest.approx(hit.to_list(), abs=0.005)
    assert counted(details) == {"profiled_alone": 15}


def test_what_the_program_prints_is_no_launch(tmp_path: Path) -> None:
    table = f'{HEAD},"a.sum"\n{"," * 11}\nstep 1, loss 3\n{ROW.format(0, "k")},"2"\n'
    text = f"hello\n==PROF== Connected\n{table}==PROF== Bye\n"
    trace = opened(tmp_path, text)
    assert rows(trace, "kernel_counters", "launch", "kernel", "grid", "block", "metric", "value") == [
        (0, "k", [66, 1, 1], [32, 4, 1], "a.sum", 2.0)
    ]
    assert counted(trace) == {"profiled_alone": 1, "unreadable_row": 1}


def test_launches_without_a_duration_have_counts_and_no_times(tmp_path: Path) -> None:
    text = f'{HEAD},"gpu__time_duration.sum"\n{"," * 11}us\n{ROW.format(0, "k")},"2"\n{ROW.format(1, "k")},""\n'
    trace = opened(tmp_path, text)
    assert rows(trace, "totals", "kernel", "count", "total_ns", "mean_ns") == [("k", 2, None, None)]


@pytest.mark.parametrize("rest", ["", f"{',' * 11}us\n", "1,2,3\n"])
def test_a_header_alone_is_an_error_that_says_what_to_do(tmp_path: Path, rest: str) -> None:
    with pytest.raises(FormatError, match="expected rows of launches below the header of ncu, found none"):
        opened(tmp_path, f'{HEAD},"gpu__time_duration.sum"\n{rest}')


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    trace = opened(tmp_path, f'{HEAD},"a.sum"\n{"," * 11}\n{ROW.format(0, "k")},"2"\n{ROW.format(1, "k")}')
    assert counted(trace) == {"profiled_alone": 1, "truncated": 1, "unreadable_row": 1}
