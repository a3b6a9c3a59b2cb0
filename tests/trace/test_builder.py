"""Batches of columns to a trace: in memory, spilled, or straight into a store."""

import gc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.errors import InputError
from inferometer.trace import builder
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts
from inferometer.trace.tables import LAUNCHES, OPS

FACTS = Facts("by-hand", "by hand")


def add_launches(out: TraceBuilder, start: int, count: int) -> None:
    times = np.arange(start, start + count, dtype=np.int64)
    names = [f"kernel {i % 7}" for i in range(start, start + count)]
    out.add("launches", count, {"kind": "kernel", "kernel": names, "start_ns": times, "dur_ns": 1, "rank": None})


def test_a_single_value_fills_its_column_and_a_missing_column_is_null() -> None:
    out = TraceBuilder()
    out.add("ops", 2, {"op": ["a", "b"], "start_ns": 5, "dur_ns": np.array([1, 2]), "process": None})
    frame = out.finish(FACTS).ops.collect()
    assert frame.schema == OPS.schema
    assert frame.select("op", "start_ns", "dur_ns", "process", "thread").rows() == [
        ("a", 5, 1, None, None),
        ("b", 5, 2, None, None),
    ]


def test_batches_with_different_columns_stand_in_their_order() -> None:
    out = TraceBuilder()
    out.add("ops", 1, {"op": "a", "start_ns": 1, "dur_ns": 1, "thread": 7})
    out.add("ops", 1, {"op": "b", "start_ns": 2, "dur_ns": 1, "process": 9})
    assert out.finish(FACTS).ops.select("op", "thread", "process").collect().rows() == [("a", 7, None), ("b", None, 9)]


def test_values_that_the_type_cannot_hold_become_null_and_are_counted() -> None:
    out = TraceBuilder()
    given = [1, 2**63, "7", "x", 3.0, 3.5, True, None, -(2**63)]
    out.add("ops", len(given), {"op": "o", "start_ns": 0, "dur_ns": 0, "process": given})
    trace = out.finish(FACTS)
    assert trace.ops.select("process").collect().to_series().to_list() == [
        1,
        None,
        7,
        None,
        3,
        None,
        None,
        None,
        -(2**63),
    ]
    assert trace.losses.total("number_out_of_range", category="ops.process") + trace.losses.total("wrong_type") == 4


def test_a_table_outside_the_scope_is_ignored_and_refused() -> None:
    out = TraceBuilder({"ops"})
    add_launches(out, 0, 3)
    assert (out.wants("ops"), out.wants("launches"), out.wants("launches", "ops")) == (True, False, True)
    trace = out.finish(FACTS)
    assert list(trace.tables) == ["ops"]
    with pytest.raises(InputError, match="the table 'launches' was not read"):
        _ = trace.launches


@pytest.mark.parametrize("memory_bytes", [1 << 30, 20_000, 0])
def test_any_memory_budget_gives_the_same_trace(memory_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 3)
    out = TraceBuilder(memory_bytes=memory_bytes)
    for i in range(50):
        add_launches(out, 10 * i, 10)
        out.add("ops", 1, {"op": "o", "start_ns": i, "dur_ns": 1})
    out.fill("launches", {"rank": 3}, first_row=120)
    trace = out.finish(FACTS)
    frame = trace.launches.collect()
    assert frame.schema == LAUNCHES.schema
    assert frame["start_ns"].to_list() == list(range(500))
    assert frame["rank"].to_list() == [None] * 120 + [3] * 380
    assert trace.ops.collect().height == 50
    trace.close()


def test_no_more_is_held_than_the_budget_and_the_batches_being_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 4)
    out = TraceBuilder(memory_bytes=50_000)
    for i in range(400):
        add_launches(out, 100 * i, 100)
        out.add("ops", 10, {"op": "o", "start_ns": i, "dur_ns": 1})
        held = sum(pending.merged_bytes for pending in out._pending.values())
        assert held <= 50_000 + 40_000
        assert out._held_bytes == held
    out.finish(FACTS).close()


def test_spilled_parts_go_with_the_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 1)
    out = TraceBuilder(memory_bytes=0)
    add_launches(out, 0, 10)
    trace = out.finish(FACTS)
    assert len(list(tmp_path.rglob("launches-*.parquet"))) == 1
    assert trace.launches.collect().height == 10
    trace.close()
    assert list(tmp_path.iterdir()) == []
    out = TraceBuilder(memory_bytes=0)
    add_launches(out, 0, 10)
    trace = out.finish(FACTS)
    del trace, out
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_spilled_part_has_no_columns_without_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 1)
    out = TraceBuilder(memory_bytes=0)
    grid = pl.Series([[1, 2, 3], [4, 5, 6]], dtype=pl.Array(pl.Int64, 3))
    add_launches(out, 0, 2)
    out.add("launches", 2, {"kind": "memcpy", "kernel": ["a", None], "start_ns": 2, "grid": grid, "host": "h"})
    out.add("launches", 1, {"queue": None})  # nothing at all
    paths = sorted(tmp_path.rglob("launches-*.parquet"))
    assert [pl.read_parquet_schema(path).keys() & {"grid", "host", "queue"} for path in paths[:2]] == [
        set(),
        {"grid", "host"},
    ]
    assert len(pl.read_parquet_schema(paths[2])) == 1
    with out.finish(FACTS) as trace:
        rows = trace.launches.collect()
        assert rows.schema == LAUNCHES.schema
        assert rows["grid"].to_list() == [None, None, [1, 2, 3], [4, 5, 6], None]
        assert rows["host"].to_list() == [None, None, "h", "h", None]
        assert rows["start_ns"].to_list() == [0, 1, 2, 2, None]
        assert trace.launches.select("queue").slice(1, 3).collect().to_series().to_list() == [None] * 3
        assert trace.launches.select(pl.len()).collect().item() == 5


def test_names_of_temporary_folders_are_no_patterns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / "a[1]*?"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 1)
    out = TraceBuilder(memory_bytes=0)
    add_launches(out, 0, 10)
    out.fill("launches", {"rank": 1})
    with out.finish(FACTS) as trace:
        assert trace.launches.select("rank").collect().to_series().to_list() == [1] * 10


def test_a_reset_forgets_rows_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_MERGE_BATCHES", 1)
    for memory_bytes in (0, 1 << 30):
        out = TraceBuilder(memory_bytes=memory_bytes)
        add_launches(out, 0, 10)
        out.losses.count("truncated")
        out.reset()
        add_launches(out, 5, 1)
        trace = out.finish(FACTS)
        assert trace.launches.select("start_ns").collect().to_series().to_list() == [5]
        assert len(trace.losses) == 0


def test_filling_touches_nulls_from_a_row_on() -> None:
    out = TraceBuilder()
    out.add("launches", 3, {"kind": "kernel", "kernel": "k", "start_ns": 0, "dur_ns": 0, "rank": [None, 7, None]})
    out.fill("launches", {"rank": 1, "process": 5}, first_row=1)
    out.fill("launches", {})
    out.fill("ops", {"process": 1})
    frame = out.frame("launches").select("rank", "process").collect()
    assert frame.rows() == [(None, None), (7, 5), (1, 5)]
    assert (out.rows("launches"), out.rows("ops")) == (3, 0)


@given(sizes=st.lists(st.integers(0, 40), max_size=12), budget=st.integers(0, 20_000), merge=st.integers(1, 5))
@examples(30)
def test_however_rows_come_they_stay_in_order(sizes: list[int], budget: int, merge: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "_MERGE_BATCHES", merge)
        out = TraceBuilder(memory_bytes=budget)
        for start, size in zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False):
            add_launches(out, start, size)
        with out.finish(FACTS) as trace:
            assert trace.launches.select(pl.col("start_ns")).collect().to_series().to_list() == list(range(sum(sizes)))


def parts_of(out: TraceBuilder) -> list[Path]:
    paths = [out.work / f"made-elsewhere-{start}" for start in (10, 20)]
    for path, start in zip(paths, (10, 20), strict=True):
        other = TraceBuilder()
        add_launches(other, start, 3)
        other.frame("launches").collect().write_parquet(path)
    return paths


def test_files_made_elsewhere_are_rows_in_the_order_they_are_taken() -> None:
    out = TraceBuilder()
    add_launches(out, 0, 2)
    for path in parts_of(out):
        out.take_part("launches", path, 3)
    assert out.rows("launches") == 8
    work = out.work
    out.load()
    assert not work.exists()
    out.fill("launches", {"rank": 7})
    launches = out.finish(FACTS).launches.collect()
    assert launches["start_ns"].to_list() == [0, 1, 10, 11, 12, 20, 21, 22]
    assert launches["rank"].unique().to_list() == [7]


def test_files_that_memory_has_no_room_for_stay_on_disk() -> None:
    out = TraceBuilder(memory_bytes=100)
    for path in parts_of(out):
        out.take_part("launches", path, 3)
    out.load()
    assert len([*out.work.iterdir()]) == 2
    with out.finish(FACTS) as trace:
        assert trace.launches.collect()["start_ns"].to_list() == [10, 11, 12, 20, 21, 22]


def test_files_made_elsewhere_become_parts_of_a_store(tmp_path: Path) -> None:
    out = TraceBuilder(folder=tmp_path)
    assert out.is_stored
    for path in parts_of(out):
        out.take_part("launches", path, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["launches-00000.parquet", "launches-00001.parquet"]
    assert out.finish(FACTS).launches.collect().height == 6


def test_what_is_forgotten_leaves_no_files() -> None:
    out = TraceBuilder()
    for path in parts_of(out):
        out.take_part("launches", path, 3)
    work = out.work
    out.reset()
    assert not work.exists()
    assert out.rows("launches") == 0
