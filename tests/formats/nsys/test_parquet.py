"""Parquetdir exports: what only they can have."""

from pathlib import Path

import polars as pl
import pytest
from tests.nsys_files import export, kernel, write_parquetdir
from tests.traces import counted, rows

import inferometer
from inferometer.errors import FormatError
from inferometer.formats.nsys import parquet

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def test_integers_of_any_width(tmp_path: Path) -> None:
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(100, 5)]))
    file = path / f"{KERNELS}.parquet"
    pl.read_parquet(file).cast({"start": pl.UInt64, "deviceId": pl.UInt8, "globalPid": pl.UInt64}).write_parquet(file)
    assert rows(inferometer.open(path), "launches", "start_ns", "device", "process") == [(100, "gpu:0", 4000)]


def test_a_column_of_another_type_is_null_and_counted(tmp_path: Path) -> None:
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(100, 5), kernel(200, 5)]))
    file = path / f"{KERNELS}.parquet"
    pl.read_parquet(file).cast({"streamId": pl.String}).write_parquet(file)
    trace = inferometer.open(path)
    assert rows(trace, "launches", "stream") == [None, None]
    assert counted(trace) == {"wrong_type": 2}


def test_many_batches_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 3)
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(10 * i, 5) for i in range(10)]))
    assert rows(inferometer.open(path), "launches", "start_ns") == [10 * i for i in range(10)]


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(100, 5)]))
    (path / f"{KERNELS}.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(FormatError, match=f"export/{KERNELS}.parquet: not a readable Parquet file"):
        inferometer.open(path)


def test_other_files_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(100, 5)]))
    (path / "README").write_text("mine")
    assert len(rows(inferometer.open(path), "launches")) == 1
