"""Tables as files: every value exact, nothing changed on the way."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from tests.traces import trace_of

from inferometer.reports.table_files import write_about, write_csv, write_parquet
from inferometer.trace.tables import TABLES

TRACE = trace_of(
    [
        {"kernel": '=1+2,"μ"\n', "start_ns": 1767225600000000123, "grid": [1, 2, 3], "occupancy": 0.1},
        {"kernel": "", "device": None, "bytes": -(2**63)},
    ]
)


def test_a_table_of_parquet_is_the_table(tmp_path: Path) -> None:
    assert write_parquet(TRACE.launches, tmp_path / "launches.parquet") == 2
    frame = pl.read_parquet(tmp_path / "launches.parquet")
    assert frame.schema == TABLES["launches"].schema
    assert frame.equals(TRACE.launches.collect())


@pytest.mark.parametrize("batch", [1, 2, 1 << 16])
def test_csv_has_every_value_and_an_axis_a_column(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.reports.table_files.BATCH_ROWS", batch)
    file = io.BytesIO()
    assert write_csv(TRACE.launches, file) == 2
    first, second = csv.DictReader(io.StringIO(file.getvalue().decode(), newline=""))
    assert (first["kernel"], first["start_ns"], first["occupancy"]) == ('\'=1+2,"μ"\n', "1767225600000000123", "0.1")
    assert [first[f"grid_{axis}"] for axis in "xyz"] == ["1", "2", "3"]
    assert (second["kernel"], second["device"], second["grid_x"], second["bytes"]) == ("", "", "", str(-(2**63)))
    assert b"memset" not in file.getvalue()
    assert file.getvalue().splitlines()[-1].startswith(b'kernel,"",,')
    assert "grid" not in first


def test_an_empty_table_of_csv_has_its_header() -> None:
    file = io.BytesIO()
    assert write_csv(TRACE.totals, file) == 0
    assert file.getvalue().decode() == ",".join(TABLES["totals"].schema) + "\n"


def test_facts_and_losses_stand_beside_the_tables(tmp_path: Path) -> None:
    write_about(TRACE, {"launches": 2}, tmp_path / "about.json")
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["facts"]["source"] == "by hand"
    assert about["rows"] == {"launches": 2}
    assert about["losses"]["entries"] == []
