"""Opening by name: what may be asked for, and how a mistake is reported."""

import subprocess
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.traces import rows

import inferometer
from inferometer.errors import InputError, UnknownName
from inferometer.formats import base
from inferometer.trace.tables import ALL_TABLES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([kernel()]))
    return path


def test_all_tables_are_read_unless_some_are_asked_for(path: Path) -> None:
    assert inferometer.open(path).scope == ALL_TABLES
    assert inferometer.open(str(path), ["launches", "launches"]).scope == {"launches"}
    assert inferometer.open(path, set()).scope == set()


def test_a_table_that_nobody_knows_lists_the_known_ones(path: Path) -> None:
    with pytest.raises(UnknownName, match='unknown table "lunches"\n  Known, nearest first: launches'):
        inferometer.open(path, {"launches", "lunches"})


def test_one_name_alone_is_no_set_of_names(path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a set of names, found the text 'ops'\n  Write \{'ops'\}"):
        inferometer.open(path, "ops")


def test_importing_makes_a_store_that_is_opened_at_once(path: Path, tmp_path: Path) -> None:
    store = tmp_path / "a.ifm"
    assert rows(inferometer.import_trace(path, store), "launches", "kernel") == ["k"]
    with pytest.raises(InputError, match="already exists"):
        inferometer.import_trace(path, store)
    assert rows(inferometer.import_trace(store, tmp_path / "b.ifm"), "launches", "kernel") == ["k"]
    assert rows(inferometer.import_trace(path, store, force=True), "launches", "kernel") == ["k"]


def test_importing_what_is_no_trace_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text('{"schemaVersion": 1}')
    with pytest.raises(InputError, match="expected a traceEvents array"):
        inferometer.import_trace(tmp_path / "trace.json", tmp_path / "a.ifm")
    assert [each.name for each in tmp_path.iterdir()] == ["trace.json"]


def test_a_broken_reader_is_our_bug_and_leaves_nothing_behind(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferometer.formats.kineto.reader.read", lambda *_: 1 / 0)
    for tables in (None, {"launches"}):
        with pytest.raises(ZeroDivisionError):
            inferometer.open(path, tables)
    with pytest.raises(ZeroDivisionError):
        inferometer.import_trace(path, tmp_path / "a.ifm")
    assert [each.name for each in tmp_path.iterdir()] == ["trace.json"]


def test_the_package_shows_its_names_and_no_others() -> None:
    assert set(inferometer.__all__) <= set(dir(inferometer))
    for name in inferometer.__all__:
        assert getattr(inferometer, name)
    with pytest.raises(AttributeError, match="has no attribute 'close'"):
        _ = inferometer.close


def test_formats_are_looked_for_once() -> None:
    assert base.known_formats()["kineto"] is base.known_formats()["kineto"]


def test_a_store_that_a_killed_process_had_set_aside_is_pointed_to(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    aside = tmp_path / f".a.ifm.{dead.pid}.old"
    aside.mkdir()
    with pytest.raises(InputError, match="No such file or directory") as error:
        inferometer.open(tmp_path / "a.ifm")
    assert f"What a killed process was about to replace is in {aside}: rename it." in str(error.value)
