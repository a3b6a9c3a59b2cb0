"""rocpd databases: sums equal those of plain SQL, no row vanishes, ids are joined by run and `stack_id`."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.rocprof_files import SMALL, small_runs
from tests.traces import counted, rows
from tools.rocprof_maker.program import KERNELS, truth_of
from tools.rocprof_maker.rocpd_file import write_rocpd

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import find_format
from inferometer.formats.source import Source

SCHEMAS = ("3.0.0", "4.1")


@pytest.fixture(scope="module", params=SCHEMAS)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rocpd") / "run.db"
    write_rocpd(small_runs(), SMALL, path, schema=request.param)
    return path


@pytest.fixture(scope="module")
def trace(database: Path) -> Trace:
    return inferometer.open(database)


def tables_of(database: sqlite3.Connection, base: str) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? ORDER BY name"
    return [name for (name,) in database.execute(query, (f"{base}_0*",))]


def by_force(path: Path) -> dict[str, tuple[int, int]]:
    """Launches and summed ns by kernel: with plain SQL, a run at a time."""
    found: dict[str, tuple[int, int]] = {}
    with closing(sqlite3.connect(path)) as database:
        for dispatches in tables_of(database, "rocpd_kernel_dispatch"):
            symbols = dispatches.replace("kernel_dispatch", "info_kernel_symbol")
            query = f"""
                SELECT coalesce(display_name, '[kernel ' || kernel_id || ']') AS name, count(*), sum("end" - start)
                FROM "{dispatches}" d LEFT JOIN "{symbols}" s ON s.id = d.kernel_id GROUP BY name
            """
            for name, n, ns in database.execute(query):
                before = found.get(name, (0, 0))
                found[name] = (before[0] + n, before[1] + ns)
    return found


def changed(database: Path, target: Path, *statements: str) -> Path:
    """A copy in which each statement was run, with the tables of the first run under their bare names in braces."""
    target.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(target)) as connection:
        suffix = tables_of(connection, "rocpd_event")[0].removeprefix("rocpd_event")
        for statement in statements:
            connection.execute(statement.replace("#", suffix))
        connection.commit()
    return target


def test_sums_are_those_of_plain_sql_and_of_the_program(trace: Trace, database: Path) -> None:
    launches = trace.tables["launches"].collect()
    sums = launches.group_by("kind", "kernel").agg(pl.len(), pl.col("dur_ns").sum())
    assert {name: (n, ns) for kind, name, n, ns in sums.rows() if kind == "kernel"} == by_force(database)
    truth: Any = truth_of(small_runs())
    assert {name: [n, ns] for _, name, n, ns in sums.rows()} == truth["work"]
    assert [trace.tables[name].collect().height for name in ("calls", "spans")] == [truth["calls"], truth["spans"]]


def test_a_dispatch_without_a_thread_stays(trace: Trace, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        tables = tables_of(connection, "rocpd_kernel_dispatch")
        assert sum(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables) == 13
    assert trace.tables["launches"].filter(pl.col("kind") == "kernel").collect().height == 13


def test_calls_are_joined_by_run_and_stack_id(trace: Trace) -> None:
    calls = trace.tables["calls"].filter(pl.col("api").str.starts_with("hip")).collect()
    launches = trace.tables["launches"].collect()
    assert launches.join(calls, on=["process", "correlation_id"]).height == calls.height == launches.height
    assert set(calls["thread"]) == {run.pid + 1 for run in small_runs()}


def test_grids_registers_and_streams_are_as_in_json(trace: Trace) -> None:
    columns = ("kernel", "grid", "block", "registers", "shared_bytes", "scratch_bytes")
    found = {row[0]: row[1:] for row in rows(trace, "launches", *columns) if row[1]}
    for each in KERNELS:
        if each.name in found:
            grid, block, registers, lds, scratch = found[each.name]
            assert (tuple(grid), tuple(block)) == (each.blocks, each.workgroup)
            assert (lds, scratch) == (each.static_lds + each.dynamic_lds, each.scratch)
            assert registers in (each.vgpr, None)
    pairs = [(row.stream, row.queue) for run in small_runs() for row in run.dispatches]
    kernels = trace.tables["launches"].filter(pl.col("kind") == "kernel").collect()
    assert Counter(kernels.select("stream", "queue").rows()) == Counter(pairs)


def test_counters_are_summed_over_instances(trace: Trace) -> None:
    found: Counter[str] = Counter()
    for kernel, metric, value in rows(trace, "kernel_counters", "kernel", "metric", "value"):
        found[f"{kernel}\n{metric}"] += int(value)
    assert found == truth_of(small_runs())["counters"]
    assert sorted(set(rows(trace, "kernel_counters", "launch"))) == list(range(SMALL.dispatches))


def test_the_environment_and_the_command_stay_in_the_file(trace: Trace, database: Path, tmp_path: Path) -> None:
    assert SMALL.token.encode() in database.read_bytes()
    assert counted(trace)["environment"] == 8
    assert counted(trace)["secret"] == 4
    inferometer.import_trace(database, tmp_path / "a.ifm")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "a.ifm").rglob("*") if path.is_file())
    for text in (SMALL.token, "serve.py", "/usr/bin"):
        assert text.encode() not in kept
        assert text not in repr(trace.facts)


def test_it_is_found_by_its_tables_wherever_these_stand(tmp_path: Path) -> None:
    path = tmp_path / "large-pages.sqlite"
    write_rocpd(small_runs(), SMALL, path, page_bytes=8192)
    assert b"rocpd_" not in Source(path).head
    assert find_format(Source(path)).name == "rocpd"


@pytest.mark.parametrize(
    ("statement", "loss", "n"),
    [
        ("UPDATE \"rocpd_kernel_dispatch#\" SET start = 'soon' WHERE id = 1", "wrong_type", 1),
        ('UPDATE "rocpd_kernel_dispatch#" SET "end" = 0 WHERE id = 1', "negative_duration", 1),
        ('UPDATE "rocpd_kernel_dispatch#" SET kernel_id = NULL', "without_symbol", None),
        ('UPDATE "rocpd_region#" SET name_id = 4444 WHERE rowid = 1', "without_string", 1),
        ('UPDATE "rocpd_region#" SET event_id = NULL WHERE rowid = 1', "unknown_category", 1),
        ('DELETE FROM "rocpd_event#"', "unknown_category", None),
        ('DROP TABLE "rocpd_info_agent#"', "secret", 4),
        ('CREATE TABLE "rocpd_arg#" AS SELECT 1 AS id', "unknown_category", 1),
        ('UPDATE "rocpd_kernel_dispatch#" SET kernel_id = 1e30 WHERE id = 1', "wrong_type", None),
        ("UPDATE \"rocpd_pmc_event#\" SET value = 'many'", "counter_without_value", None),
    ],
)
def test_odd_rows_are_counted(tmp_path: Path, database: Path, statement: str, loss: str, n: int | None) -> None:
    path = changed(database, tmp_path / "a.db", statement)
    found = counted(inferometer.open(path))[loss]
    assert found == n if n is not None else found > 0


@pytest.mark.parametrize(
    "change", [lambda data: data[:5000], lambda data: data[:70], lambda data: data[:1024] + b"\0" * 9000]
)
def test_a_damaged_file_says_what_to_do(tmp_path: Path, database: Path, change: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(change(database.read_bytes()))
    with pytest.raises(InputError, match=r"a.db: .*\n  .*rocprofv3"):
        inferometer.open(path, format="rocpd")


def test_a_database_of_something_else_says_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rocpd_kernel_dispatch_lz4_blob (id)")
        connection.commit()
    with pytest.raises(FormatError, match=r"expected plain tables such as rocpd_kernel_dispatch.*\n.*LZ4"):
        inferometer.open(path.rename(tmp_path / "b.db"), format="rocpd")
