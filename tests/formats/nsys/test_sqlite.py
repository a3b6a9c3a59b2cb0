"""SQLite files as they come: of any types, damaged, packed, hostile, or another program's."""

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nsys_files import call, export, kernel, kernels_by_sql, string, write_sqlite
from tests.traces import counted, rows

import inferometer
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.errors import FormatError, InputError
from inferometer.formats.databases import sqlite as subject

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """An export of 3,000 kernels of two names and their calls."""
    names = ("gemm", "void attn<128>(float*)")
    kernels = [kernel(100 * i, 7 + i % 13, names[i % 2], correlationId=i) for i in range(3000)]
    calls = [call(100 * i - 50, 9, correlationId=i) for i in range(3000)]
    return write_sqlite(tmp_path / "good.sqlite", export(KERNEL=kernels, RUNTIME=calls))


def change(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def test_every_number_of_the_table_is_that_of_plain_sql(good: Path) -> None:
    found = {row["kernel"]: row for row in kernel_table(inferometer.open(good)).frame.to_dicts()}
    columns = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
    assert {name: tuple(row[column] for column in columns) for name, row in found.items()} == {
        name: pytest.approx(numbers, rel=1e-12) for name, numbers in kernels_by_sql(good).items()
    }


@given(durations=st.lists(st.integers(0, 2**40), min_size=1, max_size=30), gap=st.integers(1, 10**6))
def test_the_table_is_that_of_plain_sql_for_any_durations(
    durations: list[int], gap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "export.sqlite"
    write_sqlite(path, export(KERNEL=[kernel(gap * i, dur) for i, dur in enumerate(durations)]))
    [row] = kernel_table(inferometer.open(path, {"launches": ["kind", "kernel", "dur_ns"]})).frame.to_dicts()
    count, total, mean, median, least, most, deviation = kernels_by_sql(path)["gemm"]
    assert (row["count"], row["total_ns"], row["min_ns"], row["max_ns"]) == (count, total, least, most)
    assert (row["mean_ns"], row["median_ns"]) == (pytest.approx(mean), pytest.approx(median))
    assert row["stddev_ns"] == pytest.approx(deviation, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_rows_stay_in_the_files_order_whatever_the_batches(
    batch_rows: int, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "BATCH_ROWS", batch_rows)
    change(good, f"DELETE FROM {KERNELS} WHERE rowid % 3 = 0 OR rowid > 100")  # gaps among the row ids
    whole = inferometer.open(good, {"launches"})
    assert rows(whole, "launches", "start_ns") == [100 * (i - 1) for i in range(1, 101) if i % 3]


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE {KERNELS} SET rowid = 4000000000000000000 WHERE rowid = 3000",
        f"CREATE TABLE t AS SELECT *, 5 AS rowid, 5 AS oid, 5 AS _rowid_ FROM {KERNELS}",
    ],
)
def test_row_ids_that_are_no_help_do_no_harm(statement: str, good: Path) -> None:
    change(good, statement)
    if "CREATE" in statement:
        change(good, f"DROP TABLE {KERNELS}", f"ALTER TABLE t RENAME TO {KERNELS}")
    assert kernel_table(inferometer.open(good)).frame["count"].sum() == 3000


@pytest.mark.parametrize("value", ["'abc'", "1.5", "x'00ff'"])
@pytest.mark.parametrize("row", [1, 2999])
def test_what_is_no_whole_number_is_null_and_counted(value: str, row: int, good: Path) -> None:
    change(good, f"UPDATE {KERNELS} SET streamId = {value} WHERE rowid = {row}")
    trace = inferometer.open(good)
    streams = rows(trace, "launches", "stream")
    assert (streams.count(7), streams[row - 1]) == (2999, None)
    assert counted(trace) == {"wrong_type": 1}


def test_a_time_that_is_no_number_drops_its_row(good: Path) -> None:
    change(good, f"UPDATE {KERNELS} SET end = 'soon' WHERE rowid = 17")
    trace = inferometer.open(good)
    assert len(rows(trace, "launches")) == 2999
    assert (trace.losses.dropped(KERNELS), counted(trace)["wrong_type"]) == (1, 1)


@pytest.mark.parametrize("column", ["start", "end"])
@pytest.mark.parametrize("value", ["'soon'", "1.5", "NULL", "x'00ff'", "'12'"])
def test_a_quick_reading_takes_no_text_for_a_time(column: str, value: str, good: Path) -> None:
    change(good, f"UPDATE {KERNELS} SET start = start + 1000000000, end = end + 1000000000")
    whole = kernel_table(inferometer.open(good, {"launches": ["kind", "kernel", "dur_ns"]}))
    assert whole.frame["count"].sum() == 3000
    change(good, f"UPDATE {KERNELS} SET {column} = {value} WHERE rowid = 1717")
    trace = inferometer.open(good, {"launches": ["kind", "kernel", "dur_ns"]})
    assert kernel_table(trace).frame["count"].sum() == 2999
    assert whole.total_ns - kernel_table(trace).total_ns == 7 + 1716 % 13
    assert trace.losses.dropped(KERNELS) == 1


def test_times_beyond_64_bits_do_no_harm(good: Path) -> None:
    change(good, f"UPDATE {KERNELS} SET start = -9223372036854775807, end = 9223372036854775807 WHERE rowid = 17")
    trace = inferometer.open(good)
    assert len(rows(trace, "launches")) == 2999
    assert trace.losses.dropped(KERNELS) == 1


def test_text_that_is_not_utf8_is_mended_and_counted(good: Path) -> None:
    change(good, f"UPDATE StringIds SET value = CAST(x'676580ff6d' AS TEXT) WHERE id = {string('gemm')}")
    trace = inferometer.open(good)
    assert set(rows(trace, "launches", "kernel")) == {"ge\ufffd\ufffdm", "void attn<128>(float*)"}
    assert counted(trace) == {"invalid_utf8": 1}


def test_names_in_any_script_and_of_any_length(good: Path) -> None:
    change(good, f"UPDATE StringIds SET value = '内核🚀' || hex(zeroblob(100000)) WHERE id = {string('gemm')}")
    assert "内核🚀" + "00" * 100_000 in rows(inferometer.open(good), "launches", "kernel")


def test_an_unusual_path(good: Path) -> None:
    odd = good.rename(good.parent / "100% ? # 内核 'x\".sqlite")
    assert len(rows(inferometer.open(odd), "launches")) == 3000


def test_a_packed_export_and_one_from_a_pipe(good: Path) -> None:
    packed = good.with_suffix(".sqlite.gz")
    packed.write_bytes(gzip.compress(good.read_bytes(), 1))
    assert len(rows(inferometer.open(packed), "launches")) == 3000
    pipe = good.parent / "pipe"
    os.mkfifo(pipe)
    if os.fork() == 0:
        pipe.write_bytes(good.read_bytes())
        os._exit(0)
    assert len(rows(inferometer.open(pipe), "launches")) == 3000
    os.wait()


@pytest.mark.parametrize("keep", [16, 99, 100, 4096, 60_000, -4096, -1])
def test_a_file_that_was_cut_off_is_refused(keep: int, good: Path) -> None:
    good.write_bytes(good.read_bytes()[:keep])
    with pytest.raises(FormatError, match=r"good\.sqlite: .*\n  The database is damaged or was cut off"):
        inferometer.open(good)


def test_a_packed_export_that_was_cut_off_is_refused(good: Path) -> None:
    packed = good.with_suffix(".gz")
    packed.write_bytes(gzip.compress(good.read_bytes(), 1)[:-1000])
    with pytest.raises(FormatError, match="the compressed data ends in the middle"):
        inferometer.open(packed)


@pytest.mark.parametrize("place", range(4096, 200_000, 24_000))
def test_overwritten_pages_are_an_error_or_change_nothing(place: int, good: Path) -> None:
    data = bytearray(good.read_bytes())
    data[place : place + 4096] = b"\xff" * 4096
    good.write_bytes(data)
    with suppress(FormatError):
        trace = inferometer.open(good)
        assert len(rows(trace, "launches")) + trace.losses.dropped(KERNELS) == 3000


@pytest.mark.parametrize(
    ("table", "view"),
    [
        (KERNELS, "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x AS start, x AS end FROM r"),
        ("StringIds", "SELECT 1 AS id, 'x' AS value"),
    ],
)
def test_a_view_in_the_place_of_a_table_is_refused(table: str, view: str, good: Path) -> None:
    change(good, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {view}")
    with pytest.raises(FormatError, match=f"{table}: expected a plain table, found a view"):
        inferometer.open(good)


def test_a_virtual_table_is_refused_and_a_stranger_s_view_is_passed_over(good: Path) -> None:
    change(good, "CREATE VIEW mine AS SELECT 1")
    assert len(rows(inferometer.open(good), "launches")) == 3000
    change(good, f"DROP TABLE {KERNELS}", f"CREATE VIRTUAL TABLE {KERNELS} USING fts5(start, end)")
    with pytest.raises(FormatError, match=f"{KERNELS}: expected a plain table, found a virtual table"):
        inferometer.open(good)


def test_a_generated_column_is_not_a_column(good: Path) -> None:
    change(good, f"ALTER TABLE {KERNELS} ADD COLUMN graphNodeId AS (zeroblob(1000000000)) VIRTUAL")
    assert set(rows(inferometer.open(good), "launches", "graph_node_id")) == {None}


def test_another_programs_database_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    change(path, "CREATE TABLE moz_places (id INTEGER)", "CREATE TABLE moz_hosts (id INTEGER)")
    with pytest.raises(
        FormatError, match=r"is a database, but no export of Nsight Systems: .* found moz_hosts, moz_plac"
    ):
        inferometer.open(path)


def test_an_empty_database_and_one_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    change(path, "CREATE TABLE t (x)", "DROP TABLE t")
    with pytest.raises(FormatError, match="found no table"):
        inferometer.open(path)
    trace = inferometer.open(write_sqlite(path, export(KERNEL=[], RUNTIME=[], NVTX_EVENTS=[])))
    assert trace.count_rows()["launches"] == 0
    assert len(trace.losses) == 0


def test_kernels_without_any_strings_are_refused(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "nameless.sqlite", {KERNELS: [kernel(0, 5)]})
    with pytest.raises(FormatError, match="expected the table StringIds, which holds the names of the kernels"):
        inferometer.open(path)


def test_text_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Time (%)")
    with pytest.raises(InputError, match=r"expected an SQLite export .*, found b'Time \(%\)'"):
        inferometer.open(tmp_path / "text", format="nsys")


def test_reading_tells_how_far_it_is(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "BATCH_ROWS", 1000)
    told: list[tuple[int, int | None]] = []
    note: Callable[[int, int | None], None] = lambda done, size: told.append((done, size))  # noqa: E731
    inferometer.open(good, {"launches"}, progress=note)
    size = good.stat().st_size
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_an_odd_row_needs_no_memory_for_a_billion(tmp_path: Path) -> None:
    """ADBC makes room for a whole batch at once, and the process dies where it can't have it."""
    kernels = [kernel(100 * i, 5, streamId="seven" if i == 3 else 7) for i in range(9)]
    path = write_sqlite(tmp_path / "odd.sqlite", export(KERNEL=kernels))
    code = (
        "import resource, sys, inferometer\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "print(inferometer.open(sys.argv[1]).losses.total('wrong_type'))"
    )
    surroundings = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, env=surroundings, check=False)
    assert (done.returncode, done.stdout) == (0, b"1\n"), done.stderr.decode()


def test_a_database_that_is_being_written_is_not_called_damaged(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.connect", partial(sqlite3.connect, timeout=0))
    writing = sqlite3.connect(good, isolation_level=None)
    writing.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(
            FormatError, match=r"good\.sqlite: another program has locked this SQLite database"
        ) as raised:
            inferometer.open(good)
    finally:
        writing.close()
    assert raised.value.hint == "Try again when it is done."
    assert rows(inferometer.open(good), "launches")


def test_a_message_of_the_database_may_quote_bytes_that_are_no_text(good: Path) -> None:
    good.write_bytes(good.read_bytes().replace(b"CREATE TABLE", b"CREATE VIEW\xc5"))
    with pytest.raises(FormatError, match=r"good\.sqlite: not readable as an SQLite database: "):
        inferometer.open(good)


def test_a_table_whose_name_is_no_text_is_no_table(good: Path) -> None:
    """SQLite itself opens the others, though the schema is damaged."""
    blob = "UPDATE sqlite_master SET name = CAST(name AS BLOB) WHERE name = 'stranger'"
    change(good, "CREATE TABLE stranger (x)", "PRAGMA writable_schema = 1", blob)
    assert len(rows(inferometer.open(good), "launches")) == 3000


@pytest.mark.parametrize("made", ["AS ('x')", "AS (start)", "DEFAULT 'x'"])
def test_a_column_may_be_called_as_the_row_id_is(made: str, good: Path) -> None:
    change(good, f"ALTER TABLE {KERNELS} ADD COLUMN rowid {made}", f"ALTER TABLE {KERNELS} ADD COLUMN OID {made}")
    assert len(rows(inferometer.open(good), "launches")) == 3000
