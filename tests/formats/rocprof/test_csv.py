"""CSV files of rocprofv3: a folder is one trace of its processes, a file opens by itself, sums are those of `csv`."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.rocprof_files import SMALL, small_runs
from tests.traces import counted, rows
from tools.rocprof_maker.csv_folder import write_csv
from tools.rocprof_maker.program import HOST, KERNELS, truth_of

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.base import find_format
from inferometer.formats.source import Source


@pytest.fixture(scope="module", params=["7.0", "6.3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rocprof") / "out"
    write_csv(small_runs(), SMALL, folder, release=request.param)
    return folder


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    return inferometer.open(folder)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """One file, of ROCm 7."""
    write_csv(small_runs(), SMALL, tmp_path / "made")
    return (tmp_path / "made" / HOST / "900_kernel_trace.csv").rename(tmp_path / "900_kernel_trace.csv")


def by_force(*files: Path) -> Counter[str]:
    """Summed ns by kernel: with the csv module."""
    found: Counter[str] = Counter()
    for path in files:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                found[row["Kernel_Name"]] += int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
    return found


def sums(trace: Trace) -> Counter[str]:
    launches = trace.tables["launches"].filter(pl.col("kind") == "kernel").collect()
    return Counter(dict(launches.group_by("kernel").agg(pl.col("dur_ns").sum()).rows()))


def test_a_folder_is_one_trace_of_all_its_processes(trace: Trace, folder: Path) -> None:
    assert sums(trace) == by_force(*folder.rglob("*_kernel_trace.csv"))
    truth: Any = truth_of(small_runs())
    assert set(rows(trace, "launches", "process")) == {run.pid for run in small_runs()}
    assert [trace.tables[name].collect().height for name in ("calls", "spans")] == [truth["calls"], truth["spans"]]
    found: Counter[str] = Counter()
    for kernel, metric, value in rows(trace, "kernel_counters", "kernel", "metric", "value"):
        found[f"{kernel}\n{metric}"] += int(value)
    assert found == truth["counters"]
    assert not trace.losses.total("wrong_type")


def test_agents_are_devices_by_the_file_that_lists_them(trace: Trace) -> None:
    assert [device.name for device in trace.facts.devices] == ["AMD Instinct MI350X"] * SMALL.gpus
    expected = Counter(f"gpu:{row.gpu}" for run in small_runs() for row in run.dispatches)
    expected += Counter(f"gpu:{row.gpu}" for run in small_runs() for row in run.copies)
    assert Counter(rows(trace, "launches", "device")) == expected


def test_copies_have_no_bytes_there(trace: Trace) -> None:
    copies = trace.tables["launches"].filter(pl.col("kind") == "memcpy").collect()
    assert copies["bytes"].null_count() == copies.height == sum(len(run.copies) for run in small_runs())


def test_grids_are_blocks_rounded_up(trace: Trace) -> None:
    used = {row.kernel for run in small_runs() for row in run.dispatches}
    sizes = rows(trace, "launches", "kernel", "grid", "block")
    found = {(name, tuple(grid), tuple(block)) for name, grid, block in sizes if grid}
    assert found == {(each.name, each.blocks, each.workgroup) for each in KERNELS if each in used}


def test_a_single_file_opens_and_says_how_devices_are_numbered(one: Path) -> None:
    trace = inferometer.open(one)
    assert find_format(Source(one)).name == "rocprof"
    assert sums(trace) == by_force(one)
    assert set(rows(trace, "launches", "process")) == {900}
    assert "gpu:4 is what AMD calls agent 4" in trace.facts.notes[0]


@pytest.mark.parametrize(
    ("change", "loss", "n"),
    [
        (lambda text: text.replace('"KERNEL_DISPATCH"', '"KERNEL_DISPATCH",7', 1), "unreadable_row", 1),
        (lambda text: text[:-5], "truncated", 1),
        (lambda text: text.replace(",63", ",s63", 1), "wrong_type", 1),
        (lambda text: text + '"KERNEL_DISPATCH,1\n', "unreadable_row", 1),
    ],
)
def test_odd_rows_are_counted(one: Path, change: Any, loss: str, n: int | None) -> None:
    one.write_text(change(one.read_text()))
    found = counted(inferometer.open(one)).get(loss, 0)
    assert found == n if n is not None else found > 0


def test_a_file_of_another_kind_is_counted_by_its_rows(tmp_path: Path) -> None:
    write_csv(small_runs(), SMALL, tmp_path / "out")
    scratch = "Kind,Operation\nSCRATCH,ALLOC\nSCRATCH,FREE\n"
    (tmp_path / "out" / HOST / "900_scratch_memory_trace.csv").write_text(scratch)
    trace = inferometer.open(tmp_path / "out")
    assert trace.losses.total("unknown_category", category="scratch_memory_trace") == 2


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "900_kernel_trace.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="expected CSV files of rocprofv3, found none"):
        inferometer.open(tmp_path)
