"""Parquetdir exports: what only they can have."""

from contextlib import suppress
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


def test_row_groups_that_are_all_dropped_leave_the_names_of_others(tmp_path: Path) -> None:
    """Polars dies of an empty chunk in a format string: a name that isn't there is put together otherwise."""
    kernels = [kernel(100, 5, demangledName=99), kernel(200, -5), kernel(300, 5, demangledName=98)]
    path = write_parquetdir(tmp_path / "export", export(KERNEL=kernels))
    file = path / f"{KERNELS}.parquet"
    pl.read_parquet(file).write_parquet(file, row_group_size=1)
    trace = inferometer.open(path)
    assert rows(trace, "launches", "kernel") == ["[string 99]", "[string 98]"]
    assert counted(trace) == {"negative_duration": 1, "without_string": 2}


def test_any_byte_of_a_file_may_be_any_other(tmp_path: Path) -> None:
    """Of some damage Polars panics: that is no `Exception`, and a refusal all the same."""
    path = write_parquetdir(tmp_path / "export", export(KERNEL=[kernel(100 * i, 5) for i in range(9)]))
    file = path / f"{KERNELS}.parquet"
    whole = file.read_bytes()
    for at in range(0, len(whole), 23):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        with suppress(FormatError):
            inferometer.open(path).launches.collect()
    file.write_bytes(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", _panic)
        with pytest.raises(FormatError, match="not a readable Parquet file: offset out of range"):
            inferometer.open(path)


def _panic(*_: object, **__: object) -> None:
    raise pl.exceptions.PanicException("offset out of range")
