"""`inferometer.export`: the right files in the right place, and an account of every row."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.perfetto_files import decode
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.errors import InputError, UnknownName
from inferometer.reports.export import FORMS, write_export

CALL = {"api": "x", "start_ns": 1, "dur_ns": 2}
LINE = {"line": 1, "text": "hello"}
RANKS = [{"rank": rank} for rank in (0, 1, 1)]


def simple() -> Trace:
    return trace_of([{}, {}], calls=[CALL], log=[LINE])


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_chrome_trace_is_one_file_and_tells_what_it_left_out(tmp_path: Path) -> None:
    done = inferometer.export(simple(), tmp_path / "out.json", to="chrome")
    (file,) = done.files
    assert done.left_out == {"log": 1}
    assert (file.path, file.rows) == (str(tmp_path / "out.json"), {"launches": 2, "calls": 1})
    assert file.size_bytes == (tmp_path / "out.json").stat().st_size
    assert len(json.loads((tmp_path / "out.json").read_bytes())["traceEvents"]) == 3


RECORDED = {"kernel": "k", "device": "gpu:0", "stream": 7, "start_ns": 0, "collective": "allreduce", "group_size": 8}
UNTIED = RECORDED | {"start_ns": 99}


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_a_collective_stands_with_its_launch_and_is_left_out_without_one(to: str, tmp_path: Path) -> None:
    trace = trace_of([{}, {"start_ns": 5}], collectives=[RECORDED, UNTIED])
    done = inferometer.export(trace, tmp_path / "out", to=to)
    assert (done.files[0].rows, done.left_out) == ({"launches": 2, "collectives": 1}, {"collectives": 1})
    if to == "perfetto":
        arguments = [piece.args for piece in decode(tmp_path / "out").slices]
        assert [(each.get("collective"), each.get("group_size")) for each in arguments] == [
            ("allreduce", 8),
            (None, None),
        ]


def test_a_name_that_ends_in_gz_is_compressed_the_same_way_each_time(tmp_path: Path) -> None:
    for name in ("one.json.gz", "two.json.gz", "plain.json"):
        inferometer.export(simple(), tmp_path / name, to="chrome")
    packed = [(tmp_path / name).read_bytes() for name in ("one.json.gz", "two.json.gz")]
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]) == (tmp_path / "plain.json").read_bytes()
    inferometer.export(simple(), tmp_path / "out.pftrace.gz", to="perfetto")
    assert len(decode(tmp_path / "out.pftrace.gz").slices) == 3


def test_a_chrome_trace_of_several_ranks_is_a_folder_that_reads_back(tmp_path: Path) -> None:
    trace = trace_of([*RANKS, {}], calls=[CALL | {"rank": 1}])
    with pytest.raises(InputError, match=r"has 3 ranks, a Chrome trace one\n.*-o FOLDER"):
        inferometer.export(trace, tmp_path / "out.json", to="chrome")
    done = inferometer.export(trace, tmp_path / "out", to="chrome")
    assert names(tmp_path / "out") == ["no-rank.json.gz", "rank0.json.gz", "rank1.json.gz"]
    assert {Path(file.path).name: file.rows for file in done.files} == {
        "rank0.json.gz": {"launches": 1},
        "rank1.json.gz": {"launches": 2, "calls": 1},
        "no-rank.json.gz": {"launches": 1},
    }
    again = inferometer.open(tmp_path / "out" / "rank1.json.gz")
    assert again.launches.select("rank").collect().to_series().to_list() == [1, 1]
    inferometer.export(trace, tmp_path / "out", to="chrome", force=True)


def test_perfetto_holds_all_ranks_in_one_file(tmp_path: Path) -> None:
    done = inferometer.export(trace_of(RANKS), tmp_path / "out.pftrace", to="perfetto")
    assert done.files[0].rows == {"launches": 3}
    assert {one.track[0] for one in decode(tmp_path / "out.pftrace").slices} == {"gpu:0, rank 0", "gpu:0, rank 1"}


@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_tables_are_a_folder_of_those_with_rows(to: str, tmp_path: Path) -> None:
    done = inferometer.export(simple(), tmp_path / "out", to=to)
    assert names(tmp_path / "out") == ["about.json", f"calls.{to}", f"launches.{to}", f"log.{to}"]
    assert done.left_out == {}
    read = pl.read_parquet if to == "parquet" else pl.read_csv
    assert read(tmp_path / "out" / f"launches.{to}").height == 2
    inferometer.export(simple(), tmp_path / "out", to=to, tables=["calls"], force=True)
    assert names(tmp_path / "out") == ["about.json", f"calls.{to}"]


@pytest.mark.parametrize("name", ["calls.csv", "calls.csv.gz", "calls.parquet"])
def test_one_table_may_be_one_file(name: str, tmp_path: Path) -> None:
    to = name.split(".")[1]
    inferometer.export(simple(), tmp_path / name, to=to, tables=["calls"])
    read = pl.read_parquet if to == "parquet" else pl.read_csv
    assert read(tmp_path / name)["api"].to_list() == ["x"]
    with pytest.raises(InputError, match=f"expected one table as {to}, found 3 tables"):
        inferometer.export(simple(), tmp_path / f"x{name}", to=to)
    other = "csv" if to == "parquet" else "parquet"
    with pytest.raises(InputError, match=f"expected one table as {to}, found {other} was asked for"):
        inferometer.export(simple(), tmp_path / f"x{name}", to=other, tables=["calls"])


@pytest.mark.parametrize("to", FORMS)
def test_every_form_gives_an_account_of_every_row(to: str, tmp_path: Path) -> None:
    done = inferometer.export(simple(), tmp_path / "out", to=to)
    written = {table: n for file in done.files for table, n in file.rows.items()}
    total = {table: written.get(table, 0) + done.left_out.get(table, 0) for table in ("launches", "calls", "log")}
    assert total == {"launches": 2, "calls": 1, "log": 1}
    data = done.as_json()
    assert set(data) == {"to", "files", "left_out", "redacted", "losses"}
    assert set(data["files"][0]) == {"path", "rows", "bytes"}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"to": "excel"}, UnknownName, 'unknown form "excel"'),
        ({"to": "csv", "tables": ["lunches"]}, UnknownName, "nearest first: launches"),
        ({"to": "csv", "tables": ["totals"]}, InputError, "the tables totals have no rows to export"),
        ({"to": "chrome", "tables": ["log"]}, InputError, "no row has a place in such a file"),
        ({"to": "perfetto", "tables": ["log"]}, InputError, "no row has a place in such a file"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    options: dict[str, Any], error: type[InputError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        inferometer.export(simple(), tmp_path / "out", **options)
    assert names(tmp_path) == []


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="by hand: the trace has no rows to export"):
        inferometer.export(trace_of(), tmp_path / "out", to="parquet")


def test_a_table_that_was_not_read_is_refused_and_the_others_are_written(tmp_path: Path) -> None:
    trace = trace_of([{}], tables={"launches"})
    with pytest.raises(InputError, match="'calls' was not read"):
        inferometer.export(trace, tmp_path / "out", to="csv", tables=["launches", "calls"])
    for to in FORMS:
        assert inferometer.export(trace, tmp_path / to, to=to).files[0].rows == {"launches": 1}


def test_an_open_file_takes_what_is_one_file() -> None:
    for to, tables in (("chrome", None), ("perfetto", None), ("csv", ["calls"])):
        file = io.BytesIO()
        assert write_export(simple(), file, to=to, tables=tables).files[0].rows["calls"] == 1
        assert file.getvalue()
    for trace, to, said in (
        (simple(), "csv", "csv needs several files"),
        (simple(), "parquet", "parquet needs several files"),
        (trace_of(RANKS), "chrome", "this trace 2"),
    ):
        with pytest.raises(InputError, match=said):
            write_export(trace, io.BytesIO(), to=to)


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_a_step_whose_time_is_not_known_is_left_out_and_counted(to: str, tmp_path: Path) -> None:
    steps = [{"step": 0, "source": "recorded"}, {"step": 1, "start_ns": 4, "dur_ns": 2, "source": "recorded"}]
    done = inferometer.export(trace_of(steps=steps), tmp_path / "out", to=to)
    assert [(file.rows, done.left_out) for file in done.files] == [({"steps": 1}, {"steps": 1})]
