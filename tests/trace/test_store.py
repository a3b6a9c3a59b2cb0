"""The store: what is written is read, and nothing else is."""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from tests.traces import rows, trace_of

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.trace import store as store_module
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Device, Facts
from inferometer.trace.store import read_store
from inferometer.trace.store_writer import (
    MOST_FILES,
    SCHEMA,
    StoreFolder,
    checksum_of,
    is_store,
    replace_manifest,
    write_manifest,
    write_store,
)
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


def test_a_store_is_a_file_for_each_table_with_rows_and_one_of_facts(store: Path) -> None:
    names = ["launches-00000.parquet", "ops-00000.parquet"]
    assert sorted(path.name for path in store.iterdir()) == ["facts.json", *names]
    text = (store / "facts.json").read_text()
    assert text.startswith('{\n "mark": "inferometer-trace",\n "schema": [\n  1,\n  12\n ],\n "facts": {')
    tables = json.loads(text)["tables"]
    assert {name: (table["rows"], table["files"]) for name, table in tables.items()} == {
        "launches": (5, names[:1]),
        "ops": (1, names[1:]),
    }


@pytest.mark.parametrize(
    ("source", "stored"), [("/home/somebody/run.json", "run.json"), ("runs/run.json", "runs/run.json")]
)
def test_a_store_names_the_file_that_it_is_of_but_not_its_folder(source: str, stored: str, tmp_path: Path) -> None:
    assert inferometer.open(trace_of(facts={"source": source}).save(tmp_path / "a.ifm")).facts.source == stored


def test_numbers_of_files_have_five_digits() -> None:
    assert f"{MOST_FILES - 1:05}" == "99999"


def test_facts_are_replaced_by_a_file_that_is_whole(tmp_path: Path) -> None:
    for text in (b"{}", b"[]"):
        replace_manifest(tmp_path, text)
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("facts.json", text)]


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
    with pytest.raises(InputError, match="already exists"):
        StoreFolder(store)
    with pytest.raises(InputError, match="already exists"):
        write_store(store, trace_of().facts, {}, trace_of().losses)
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


def test_what_a_process_that_was_killed_left_is_not_in_the_store(tmp_path: Path) -> None:
    left = tmp_path / f".a.ifm.{os.getpid()}.part"
    left.mkdir()
    (left / "half").write_text("")
    store = make_trace().save(tmp_path / "a.ifm")
    assert list(tmp_path.iterdir()) == [store]
    assert not (store / "half").exists()


def test_a_store_whose_folder_vanished_still_reports_what_went_wrong(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), StoreFolder(tmp_path / "a.ifm") as folder:  # noqa: PT012
        folder.rmdir()
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.ifm", "{path}: already exists\n  Give another name, or --force to replace it."),
        ("link.ifm", "{path}: is a link; it is not replaced\n  Give another name."),
        ("a" * 300, "{path}: no store can be made there: File name too long\n  Give another name."),
        ("no/a.ifm", "{path.parent}: no such folder\n  Make it first."),
        ("b\udce4.ifm", "{text!r}: a store's name must be text in UTF-8\n  Give another name."),
    ],
)
def test_why_a_store_can_t_be_made_and_what_to_do(name: str, message: str, store: Path) -> None:
    path = store.parent / name
    (store.parent / "link.ifm").symlink_to(store)
    with pytest.raises(InputError) as error, StoreFolder(path):
        pass
    assert str(error.value) == message.format(path=path, text=str(path))


def test_what_is_no_store_is_not_replaced_even_by_force(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        StoreFolder(tmp_path, force=True)
    assert str(error.value) == f"{tmp_path}: exists and is not a store; it is not replaced\n  Give another name."


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


@pytest.mark.parametrize("name", ["graph_nodes", "collectives"])
def test_a_store_of_today_without_the_table_was_made_so(name: str, tmp_path: Path) -> None:
    store = trace_of([{}], tables=ALL_TABLES - {name}).save(tmp_path / "a.ifm")
    assert inferometer.open(store).scope == ALL_TABLES - {name}


def test_a_store_of_before_there_were_collectives_could_have_nodes_of_graphs(tmp_path: Path) -> None:
    some = ALL_TABLES - {"graph_nodes", "collectives"}
    store = trace_of([{}], tables=some).save(tmp_path / "a.ifm")
    spoil(store, lambda manifest: manifest.update(schema=[1, 5]))
    assert inferometer.open(store).scope == some


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


DAMAGED = "The store is damaged: import the original file again."
UPDATE = "Update inferometer, or import the original file again."
PLAIN = "The store was tampered with or damaged: import the original file again."


def set_launches(**fields: Any) -> Spoil:
    return lambda manifest: manifest["tables"]["launches"].update(fields)


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (lambda m: m.update(mark="other"), "/facts.json",
         "expected mark 'inferometer-trace', found 'other'\n  This is not a store."),
        (lambda m: m.pop("facts"), "/facts.json", f"Object missing required field `facts`\n  {DAMAGED}"),
        (lambda m: m.update(schema=[2, 0]), "",
         f"the store has schema 2.0, this version reads up to 1.x\n  {UPDATE}"),
        (set_launches(files=[".."]), "/facts.json",
         f"tables.launches.files: expected a plain name like launches-00000.parquet, found '..'\n  {PLAIN}"),
        (set_launches(files=["launches-00007.parquet"]), "/launches-00007.parquet",
         "the store lacks this file\n  Import the original file again."),
        (set_launches(crc32=[0]), "/launches-00000.parquet",
         f"expected the checksum that facts.json holds, found another\n  {DAMAGED}"),
        (set_launches(crc32=[]), "/launches-00000.parquet",
         f"expected the checksum that facts.json holds, found another\n  {DAMAGED}"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_store_and_what_to_do(change: Spoil, place: str, message: str, store: Path) -> None:
    spoil(store, change)
    with pytest.raises(FormatError) as error:
        inferometer.open(store)
    assert str(error.value) == f"{store}{place}: {message}"


def test_a_checksum_of_no_file_is_damage(store: Path) -> None:
    spoil(store, lambda manifest: manifest["tables"]["launches"]["crc32"].append(0))
    with pytest.raises(FormatError) as error:
        inferometer.open(store)
    assert str(error.value) == f"{store}: expected the checksum that facts.json holds, found another\n  {DAMAGED}"


def test_tables_that_a_store_lacks_are_named(tmp_path: Path) -> None:
    store = trace_of([{}], tables={"launches"}).save(tmp_path / "a.ifm")
    with pytest.raises(InputError) as error:
        inferometer.open(store, {"ops", "calls", "launches"})
    assert str(error.value) == (
        f"{store}: the store was made without the tables calls, ops\n"
        "  Import the original file again to get all tables."
    )


def test_a_file_whose_checksum_can_t_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        checksum_of(tmp_path / "none")
    assert str(error.value) == f"{tmp_path}/none: No such file or directory\n  Check its permissions."


def test_headers_are_looked_at_before_polars_takes_them_at_their_word(store: Path) -> None:
    (store / "launches-00000.parquet").write_bytes(b"")
    with pytest.raises(FormatError) as error:
        inferometer.open(store)
    assert str(error.value) == (
        f"{store}/launches-00000.parquet: not a readable Parquet file (the file is empty)\n  {DAMAGED}"
    )


def test_a_store_without_facts_or_with_a_name_that_is_no_text_is_not_read(store: Path) -> None:
    with pytest.raises(InputError, match="a store's name must be text in UTF-8"):
        read_store(store.parent / "b\udce4.ifm")
    (store / "facts.json").unlink()
    with pytest.raises(FormatError) as error:
        read_store(store)
    assert str(error.value) == f"{store}: not a store: facts.json can't be read (No such file or directory)"


def test_a_facts_file_may_be_as_large_as_the_limit(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (store / "facts.json").stat().st_size
    monkeypatch.setattr(store_module, "_MOST_MANIFEST_BYTES", size)
    assert len(rows(inferometer.open(store), "launches")) == 5
    monkeypatch.setattr(store_module, "_MOST_MANIFEST_BYTES", size - 1)
    with pytest.raises(FormatError) as error:
        inferometer.open(store)
    assert str(error.value) == f"{store}/facts.json: expected at most 0 MiB, found more\n  {DAMAGED}"


# Of a recording


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    return trace_of([{"kernel": "k"}], facts={"recorded": {"finished": False}}).save(tmp_path / "run.ifm")


def test_a_store_that_is_still_being_written_says_so_once(unfinished: Path) -> None:
    for _ in range(2):
        trace = inferometer.open(unfinished)
        assert [(loss.name, loss.count, loss.example) for loss in trace.losses] == [
            (
                "recording_ended_early",
                1,
                "it is still being written, or its process ended without closing it",
            )
        ]
        unfinished = trace.save(unfinished, force=True)


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_rows_of_a_recording_outlive_its_files(
    small_bytes: int, unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_SMALL_BYTES", small_bytes)
    trace = inferometer.open(unfinished)
    (unfinished / "launches-00000.parquet").unlink()
    assert rows(trace, "launches", "kernel") == ["k"]


def test_files_that_a_recording_merged_meanwhile_are_read_from_its_newer_facts(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = store_module.read_manifest(store)
    launches = msgspec.structs.replace(now.tables["launches"], files=["launches-00007.parquet"])
    before = msgspec.structs.replace(now, tables=now.tables | {"launches": launches})
    for facts in ([before, now], [before, before]):
        found = iter(facts)
        monkeypatch.setattr(store_module, "read_manifest", lambda path, found=found: next(found))
        if facts[-1] is now:
            assert len(rows(read_store(store), "launches")) == 5
        else:
            with pytest.raises(FormatError, match="the store lacks this file"):
                read_store(store)
