"""The store: what is written is read, and nothing else is."""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import rows, trace_of

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Device, Facts
from inferometer.trace.store_writer import SCHEMA, StoreFolder, is_store, write_manifest
from inferometer.trace.tables import ALL_TABLES

Spoil = Callable[[dict[str, Any]], object]


def make_trace() -> Trace:
    return trace_of(
        [{"start_ns": i, "kernel": f"k{i}", "grid": [i, 1, 1], "occupancy": 0.5} for i in range(5)],
        ops=[{"op": "aten::mm", "start_ns": 1, "dur_ns": 2}],
        facts={"devices": (Device("gpu:0", "H100"),), "recorded": {"shapes": True}, "clock_base_ns": 17},
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_trace().save(tmp_path / "a.ifm")


def spoil(store: Path, change: Spoil) -> None:
    manifest = json.loads((store / "facts.json").read_text())
    change(manifest)
    (store / "facts.json").write_text(json.dumps(manifest))


def seal(store: Path) -> None:
    """Write the checksums that the files have now."""

    def seal_all(manifest: dict[str, Any]) -> None:
        for table in manifest["tables"].values():
            table["crc32"] = [zlib.crc32((store / name).read_bytes()) for name in table["files"]]

    spoil(store, seal_all)


def test_what_was_saved_is_opened(store: Path) -> None:
    trace, again = make_trace(), inferometer.open(store)
    assert is_store(store)
    assert (again.facts, again.losses, again.scope) == (trace.facts, trace.losses, trace.scope)
    for name, frame in trace.tables.items():
        assert again.tables[name].collect().equals(frame.collect())
        assert again.tables[name].collect_schema() == frame.collect_schema()
    assert again.count_rows()["launches"] == 5


def test_tables_that_were_not_read_are_not_stored(tmp_path: Path) -> None:
    store = trace_of([{}], tables={"launches"}).save(tmp_path / "a.ifm")
    assert inferometer.open(store).scope == {"launches"}
    with pytest.raises(InputError, match="made without the tables ops"):
        inferometer.open(store, {"launches", "ops"})


def test_tables_asked_for_are_the_scope_of_what_is_opened(store: Path) -> None:
    trace = inferometer.open(store, {"ops"})
    assert trace.scope == {"ops"}
    with pytest.raises(InputError, match="was not read"):
        _ = trace.launches


def test_a_part_of_a_store_that_is_saved_holds_no_other_table(store: Path, tmp_path: Path) -> None:
    part = inferometer.open(store, {"launches"}).save(tmp_path / "part.ifm")
    assert inferometer.open(part).scope == {"launches"}
    with pytest.raises(InputError, match="made without the tables ops"):
        inferometer.open(part, {"ops"})


def test_an_existing_store_is_replaced_only_by_force(store: Path) -> None:
    with pytest.raises(InputError, match="already exists"):
        trace_of().save(store)
    trace_of([{"kernel": "new"}]).save(store, force=True)
    assert rows(inferometer.open(store), "launches", "kernel") == ["new"]
    assert [path.name for path in store.parent.iterdir()] == ["a.ifm"]


def test_what_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("text")
    (tmp_path / "plain").write_text("text")
    for name in ("precious", "plain"):
        with pytest.raises(InputError, match="is not a store; it is not replaced"):
            trace_of().save(tmp_path / name, force=True)
    assert (tmp_path / "precious" / "file").read_text() == "text"


def test_a_store_onto_itself_is_the_same_store(store: Path) -> None:
    inferometer.import_trace(store, store, force=True)
    assert rows(inferometer.open(store), "launches", "kernel") == ["k0", "k1", "k2", "k3", "k4"]


def test_a_store_that_fails_leaves_nothing_behind(store: Path) -> None:
    folder = StoreFolder(store, force=True)
    (folder.__enter__() / "half").write_text("")
    folder.__exit__(ZeroDivisionError, None, None)
    assert [path.name for path in store.parent.iterdir()] == ["a.ifm"]
    assert rows(inferometer.open(store), "launches", "kernel")[0] == "k0"


@pytest.mark.parametrize("name", ["", ".", "..", "/", "no/such/folder.ifm", "a" * 300, "nul\0byte", "/proc/no.ifm"])
def test_a_place_where_no_store_can_be_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for force in (False, True):
        with pytest.raises(InputError):
            trace_of().save(name, force=force)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_store_is_opened_but_not_written_through(store: Path) -> None:
    link = store.parent / "link.ifm"
    link.symlink_to(store)
    assert rows(inferometer.open(link), "launches", "kernel")[0] == "k0"
    with pytest.raises(InputError, match="link"):
        trace_of().save(link, force=True)
    assert rows(inferometer.open(store), "launches", "kernel")[0] == "k0"


def test_a_link_to_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link.ifm").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="link"):
        trace_of().save(tmp_path / "link.ifm")


def test_names_of_folders_are_no_patterns(tmp_path: Path) -> None:
    odd = tmp_path / "a[1]*?=b"
    odd.mkdir()
    store = make_trace().save(odd / "s[0]=1.ifm")
    assert rows(inferometer.open(store), "launches", "kernel")[0] == "k0"


# Damage and malice


def test_a_newer_major_schema_is_refused(store: Path) -> None:
    spoil(store, lambda manifest: manifest.update(schema=[SCHEMA[0] + 1, 0], future=True))
    with pytest.raises(FormatError, match=r"schema 2\.0, this version reads up to 1\.x\n  Update inferometer"):
        inferometer.open(store)


def test_a_newer_minor_schema_is_read_without_what_is_new(store: Path) -> None:
    frame = pl.read_parquet(store / "launches-00000.parquet").with_columns(pl.lit(1).alias("new_column"))
    frame.write_parquet(store / "launches-00000.parquet")
    frame.write_parquet(store / "quarks-00000.parquet")

    def newer(manifest: dict[str, Any]) -> None:
        manifest["schema"] = [SCHEMA[0], SCHEMA[1] + 7]
        manifest["tables"]["quarks"] = {"rows": 5, "files": ["quarks-00000.parquet"], "sorted": True}
        manifest["losses"]["scope"].append("quarks")
        manifest["facts"]["new_fact"] = "yes"

    spoil(store, newer)
    seal(store)
    trace = inferometer.open(store)
    assert rows(trace, "launches", "kernel") == ["k0", "k1", "k2", "k3", "k4"]
    assert "new_column" not in trace.launches.collect_schema()
    assert "quarks" not in trace.tables


def test_an_older_store_lacks_columns_and_they_are_null(store: Path) -> None:
    pl.read_parquet(store / "launches-00000.parquet").drop("grid", "rank").write_parquet(
        store / "launches-00000.parquet"
    )
    seal(store)
    assert rows(inferometer.open(store), "launches", "grid", "rank") == [(None, None)] * 5


def older(manifest: dict[str, Any]) -> None:
    """A store of before there were nodes of graphs."""
    manifest["schema"] = [1, 4]
    manifest["losses"]["scope"].remove("graph_nodes")


def test_a_table_that_an_older_store_can_t_have_is_empty(store: Path) -> None:
    spoil(store, older)
    trace = inferometer.open(store)
    assert trace.scope == trace.losses.scope == ALL_TABLES
    assert (rows(trace, "graph_nodes"), len(rows(trace, "launches"))) == ([], 5)
    assert rows(inferometer.open(store, {"graph_nodes"}), "graph_nodes") == []


def before_collectives(manifest: dict[str, Any]) -> None:
    manifest["schema"] = [1, 5]
    manifest["losses"]["scope"].remove("collectives")


def test_a_store_of_before_there_were_collectives_has_none(store: Path) -> None:
    spoil(store, before_collectives)
    trace = inferometer.open(store)
    assert (trace.scope, rows(trace, "collectives")) == (ALL_TABLES, [])


def test_an_older_store_of_some_tables_has_no_others(tmp_path: Path) -> None:
    store = trace_of([{}], tables=ALL_TABLES - {"ops"}).save(tmp_path / "a.ifm")
    spoil(store, older)
    assert inferometer.open(store).scope == ALL_TABLES - {"ops", "graph_nodes"}
    with pytest.raises(InputError, match="made without the tables graph_nodes"):
        inferometer.open(store, {"launches", "graph_nodes"})


def test_a_store_of_today_without_the_table_was_made_so(tmp_path: Path) -> None:
    store = trace_of([{}], tables=ALL_TABLES - {"graph_nodes"}).save(tmp_path / "a.ifm")
    assert inferometer.open(store).scope == ALL_TABLES - {"graph_nodes"}


@pytest.mark.parametrize(
    "name",
    [
        "../secret.parquet",
        "/etc/passwd",
        "sub/launches-00000.parquet",
        "..",
        "",
        "launches-00000.parquet\n",
        "launches-*.parquet",
        "launches-00000.PARQUET",
        "C:\\launches-00000.parquet",
        "http://host/launches-00000.parquet",
    ],
)
def test_files_outside_the_store_are_never_read(name: str, store: Path) -> None:
    shutil.copy(store / "launches-00000.parquet", store.parent / "secret.parquet")
    spoil(store, lambda manifest: manifest["tables"]["launches"].update(files=[name]))
    with pytest.raises(FormatError, match=r"tables\.launches\.files: expected a plain name"):
        inferometer.open(store)


def test_a_link_in_a_store_is_not_followed(store: Path) -> None:
    (store / "launches-00000.parquet").rename(store.parent / "secret.parquet")
    (store / "launches-00000.parquet").symlink_to(store.parent / "secret.parquet")
    with pytest.raises(FormatError, match="expected a plain name"):
        inferometer.open(store)


def test_a_missing_file_is_named(store: Path) -> None:
    (store / "launches-00000.parquet").unlink()
    with pytest.raises(FormatError, match=r"launches-00000\.parquet: the store lacks this file"):
        inferometer.open(store)


@pytest.mark.parametrize("size", [0, 3, 100, -1])
def test_a_truncated_file_is_named(size: int, store: Path) -> None:
    path = store / "launches-00000.parquet"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FormatError, match=r"launches-00000\.parquet: not a readable Parquet file"):
        inferometer.open(store)


def test_damage_in_the_second_file_of_a_table_is_found_on_opening(store: Path) -> None:
    shutil.copy(store / "launches-00000.parquet", store / "launches-00001.parquet")
    two = {"rows": 10, "files": ["launches-00000.parquet", "launches-00001.parquet"]}
    spoil(store, lambda manifest: manifest["tables"].update(launches=two))
    seal(store)
    assert inferometer.open(store).launches.collect().height == 10
    frame = pl.read_parquet(store / "launches-00001.parquet")
    frame.with_columns(pl.col("dur_ns").cast(pl.Float64)).write_parquet(store / "launches-00001.parquet")
    with pytest.raises(FormatError, match=r"launches-00001\.parquet: dur_ns: expected Int64, found Float64"):
        inferometer.open(store)
    (store / "launches-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(FormatError, match=r"launches-00001\.parquet: not a readable Parquet file"):
        inferometer.open(store)


def test_a_column_of_the_wrong_type_is_named(store: Path) -> None:
    frame = pl.read_parquet(store / "launches-00000.parquet")
    frame.with_columns(pl.col("kernel").hash()).write_parquet(store / "launches-00000.parquet")
    with pytest.raises(FormatError, match="kernel: expected String, found UInt64"):
        inferometer.open(store)


def test_damage_inside_a_file_is_an_input_error(store: Path) -> None:
    path = store / "launches-00000.parquet"
    data = bytearray(path.read_bytes())
    for i in range(4, len(data) // 3):
        data[i] ^= 0x5A
    path.write_bytes(bytes(data))
    with pytest.raises(InputError):
        inferometer.kernel_table(inferometer.open(store))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"mark": "other", "schema": [1, 0]}',
        '{"mark": "inferometer-trace", "schema": [1]}',
        '{"mark": "inferometer-trace", "schema": [1, 0]}',
        '{"mark": "inferometer-trace", "schema": "1.0"}',
        '{"name": "a web page\'s facts.json"}',
        "\xff\xfe",
        "[" * 100_000,
    ],
)
def test_a_facts_file_of_another_kind_is_no_store(text: str, store: Path) -> None:
    (store / "facts.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError):
        inferometer.open(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(losses={}),
        lambda m: m.update(losses=[]),
        lambda m: m["losses"].update(scope=5),
        lambda m: m["losses"].update(events={"kernel": "many"}),
        lambda m: m["losses"].update(entries=[{"name": "truncated"}]),
        lambda m: m["losses"].update(
            entries=[{"name": "x", "severity": "mild", "count": 1, "dropped": True, "category": None, "example": None}]
        ),
        lambda m: m["losses"].update(
            entries=[{"name": "x", "severity": "error", "count": "1", "dropped": True, "category": None, "example": 5}]
        ),
        lambda m: m.update(facts={"format": 5}),
        lambda m: m.update(tables={"launches": {"rows": "5", "files": []}}),
        lambda m: m["tables"]["launches"].update(files="launches-00000.parquet"),
    ],
)
def test_a_facts_file_with_wrong_types_is_refused_with_its_place(change: Spoil, store: Path) -> None:
    spoil(store, change)
    with pytest.raises(FormatError, match=r"facts\.json: "):
        inferometer.open(store)


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a store .* or a folder that a profiler made"):
        inferometer.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_that_may_not_be_read_is_an_input_error(store: Path) -> None:
    (store / "facts.json").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        inferometer.open(store)


def test_no_damage_of_the_facts_file_raises_anything_else(store: Path) -> None:
    text = (store / "facts.json").read_bytes()
    for at in range(0, len(text), 11):
        for spoiled in (
            text[:at],
            text[:at] + b"\xff" + text[at + 1 :],
            text[:at] + b'"' + text[at:],
            text[:at] + b"9" + text[at:],
        ):
            (store / "facts.json").write_bytes(spoiled)
            with suppress(InputError):
                trace = inferometer.open(store)
                list(trace.losses)
                trace.launches.collect()


def test_parts_written_as_they_come_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.trace.builder._MERGE_BATCHES", 1)
    monkeypatch.setattr("inferometer.trace.builder.PART_BYTES", 1)
    with StoreFolder(tmp_path / "a.ifm") as folder:
        out = TraceBuilder(folder=folder)
        for i in range(3):
            out.add("launches", 2, {"kind": "kernel", "kernel": "k", "start_ns": [i, i], "dur_ns": 1})
        out.fill("launches", {"rank": 4}, first_row=3)
        trace = out.finish(Facts("x", "y"))
        write_manifest(folder, trace.facts, trace.losses, out.parts())
    assert rows(inferometer.open(tmp_path / "a.ifm"), "launches", "start_ns", "rank") == [
        (0, None), (0, None), (1, None), (1, 4), (2, 4), (2, 4)
    ]  # fmt: skip
    assert len(list((tmp_path / "a.ifm").glob("launches-*.parquet"))) == 3


def test_a_facts_file_that_nests_deeply_is_refused(store: Path) -> None:
    text = (store / "facts.json").read_text()
    for deep in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
        (store / "facts.json").write_text(text.rstrip()[:-1] + f', "new": {deep}}}')
        with pytest.raises(FormatError, match=r"facts\.json: "):
            inferometer.open(store)


def test_a_facts_file_of_gigabytes_is_not_read(store: Path) -> None:
    with (store / "facts.json").open("ab") as file:
        file.truncate(5 << 30)
    with pytest.raises(FormatError, match=r"facts\.json: expected at most 64 MiB"):
        inferometer.open(store)
