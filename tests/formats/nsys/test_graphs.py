"""Nodes of graphs, for `.sqlite` and parquetdir alike: read as they are, counted where they can't be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.nsys_files import (
    GLOBAL_TID,
    PID,
    TID,
    Rows,
    call,
    export,
    kernel,
    node,
    string,
    write_parquetdir,
    write_sqlite,
)
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import InputError
from inferometer.formats.databases import sqlite as subject

NODES = "CUDA_GRAPH_NODE_EVENTS"
COLUMNS = ("graph_node_id", "original_node_id", "process", "thread", "start_ns", "name")
Open = Callable[..., Trace]
WRITERS: dict[str, Callable[[Path, Mapping[str, Rows]], Path]] = {
    "export.sqlite": write_sqlite,
    "export": write_parquetdir,
}


@pytest.fixture(params=WRITERS)
def open_nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens an export of these nodes: `open_nodes([node(5, 1)], tables={"graph_nodes"}, KERNEL=[...])`."""

    def open_nodes(nodes: Rows, *, tables: Any = None, **of_export: Rows) -> Trace:
        made = export(**{NODES: nodes}, **of_export)
        return inferometer.open(WRITERS[request.param](tmp_path / request.param, made), tables)

    return open_nodes


def without(row: dict[str, Any], *columns: str) -> dict[str, Any]:
    return {column: value for column, value in row.items() if column not in columns}


def test_a_captured_node_its_clone_and_the_kernel_that_replays_it(open_nodes: Open) -> None:
    captured, clone = 1 << 32 | 5, 2 << 32 | 5
    trace = open_nodes(
        [node(60, captured), node(80, clone), node(81, clone, captured)],
        KERNEL=[kernel(100, 25, graphNodeId=clone)],
        RUNTIME=[call(90, 5)],
    )
    assert rows(trace, "graph_nodes", *COLUMNS) == [
        (captured, None, PID, TID, 60, "Graph Node Creation"),
        (clone, None, PID, TID, 80, "Graph Node Creation"),
        (clone, captured, PID, TID, 81, "Graph Node Creation"),
    ]
    assert rows(trace, "launches", "graph_node_id") == [clone]
    assert rows(trace, "graph_nodes", "rank") == [None, None, None]
    assert (counted(trace), trace.losses.seen[NODES]) == ({}, 3)


def test_a_clone_of_a_clone_names_the_one_before_it(open_nodes: Open) -> None:
    trace = open_nodes([node(10, 1), node(20, 2, 1), node(30, 3, 2)])
    assert rows(trace, "graph_nodes", "graph_node_id", "original_node_id") == [(1, None), (2, 1), (3, 2)]


def test_equal_ids_of_two_processes_stay_apart(open_nodes: Open) -> None:
    other = 1 << 56 | 5000 << 24 | 5001
    trace = open_nodes([node(10, 1), node(11, 1, globalTid=other), node(20, 2, 1), node(21, 2, 1, globalTid=other)])
    assert rows(trace, "graph_nodes", "process", "thread", "graph_node_id", "original_node_id", "start_ns") == [
        *((PID, TID, 1, None, 10), (5000, 5001, 1, None, 11)),
        *((PID, TID, 2, 1, 20), (5000, 5001, 2, 1, 21)),
    ]


def test_rows_stay_in_the_file_s_order(open_nodes: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "BATCH_ROWS", 2)
    trace = open_nodes([node(start, i + 1) for i, start in enumerate((50, 40, 60, 10, 30))])
    assert rows(trace, "graph_nodes", "start_ns", "graph_node_id") == [(50, 1), (40, 2), (60, 3), (10, 4), (30, 5)]


@pytest.mark.parametrize(
    ("missing", "nulls"),
    [
        ("originalGraphNodeId", {"original_node_id"}),
        ("globalTid", {"process", "thread"}),
        ("nameId", {"name"}),
        ("end", set()),
        ("eventClass", set()),
    ],
)
def test_a_column_that_old_exports_lack_is_null(missing: str, nulls: set[str], open_nodes: Open) -> None:
    trace = open_nodes([without(node(10, 2, 1), missing)])
    [row] = trace.graph_nodes.collect().to_dicts()
    assert {column for column, value in row.items() if value is None} == nulls | {"rank"}
    assert counted(trace) == {}


@pytest.mark.parametrize("missing", ["graphNodeId", "start"])
def test_a_table_without_ids_or_times_has_no_rows_and_is_counted(missing: str, open_nodes: Open) -> None:
    trace = open_nodes([without(node(10, 1), missing), without(node(20, 2), missing)])
    assert rows(trace, "graph_nodes") == []
    [loss] = trace.losses
    assert (loss.name, loss.category, loss.count, loss.example) == ("unreadable_row", NODES, 2, f"no column {missing}")
    assert trace.losses.dropped(NODES) == trace.losses.seen[NODES] == 2


def test_an_empty_table_has_no_nodes(open_nodes: Open) -> None:
    trace = open_nodes([], KERNEL=[kernel(100, 25)])
    assert (rows(trace, "graph_nodes"), counted(trace)) == ([], {})


@pytest.mark.parametrize("name", WRITERS)
def test_an_export_without_the_table_has_no_nodes(name: str, tmp_path: Path) -> None:
    trace = inferometer.open(WRITERS[name](tmp_path / name, export(KERNEL=[kernel(100, 25)], RUNTIME=[call(90, 5)])))
    assert (rows(trace, "graph_nodes"), counted(trace), NODES in trace.losses.seen) == ([], {}, False)


@pytest.mark.parametrize(
    ("spoiled", "loss"),
    [
        ({"graphNodeId": None}, "unreadable_row"),
        ({"graphNodeId": 0}, "unreadable_row"),
        ({"start": None}, "without_timestamp"),
        ({"start": -(2**63)}, "time_out_of_range"),
        ({"start": 2**63 - 1}, "time_out_of_range"),
    ],
)
def test_a_row_without_an_id_or_a_usable_time_is_counted(spoiled: dict[str, Any], loss: str, open_nodes: Open) -> None:
    trace = open_nodes([node(10, 1), node(20, 2, 1) | spoiled, node(30, 3, 1)])
    assert rows(trace, "graph_nodes", "graph_node_id") == [1, 3]
    assert counted(trace) == {loss: 1}
    assert (trace.losses.dropped(NODES), trace.losses.seen[NODES]) == (1, 3)


def test_what_may_be_missing_is_null(open_nodes: Open) -> None:
    trace = open_nodes([node(10, 1, 0), node(20, 2, None, globalTid=None, nameId=None)])
    assert rows(trace, "graph_nodes", *COLUMNS) == [
        (1, None, PID, TID, 10, "Graph Node Creation"),
        (2, None, None, None, 20, None),
    ]
    assert counted(trace) == {}


def test_a_name_that_isn_t_in_the_file_is_its_number_and_counted(open_nodes: Open) -> None:
    trace = open_nodes([node(10, 1, nameId=999), node(20, 2, nameId=None), node(30, 3, nameId=string("forward"))])
    assert rows(trace, "graph_nodes", "name") == ["[string 999]", None, "forward"]
    assert counted(trace) == {"without_string": 1}


@pytest.mark.parametrize(
    ("column", "kept"), [("graphNodeId", []), ("originalGraphNodeId", [(2, None)]), ("globalTid", [(2, 1)])]
)
def test_a_column_of_another_type_is_null_and_counted(column: str, kept: list[Any], open_nodes: Open) -> None:
    trace = open_nodes([node(20, 2, 1) | {column: "two"}])
    assert rows(trace, "graph_nodes", "graph_node_id", "original_node_id") == kept
    assert counted(trace)["wrong_type"] == 1
    assert trace.losses.dropped(NODES) == 1 - len(kept)


def test_the_table_alone_can_be_asked_for_and_is_refused_when_it_was_not(open_nodes: Open) -> None:
    nodes = [node(10, 1), node(20, 2, 1)]
    alone = open_nodes(nodes, tables={"graph_nodes": ["graph_node_id", "start_ns"]}, KERNEL=[kernel(100, 25)])
    assert rows(alone, "graph_nodes", "graph_node_id", "start_ns") == [(1, 10), (2, 20)]
    assert alone.losses.seen == {NODES: 2}


@pytest.mark.parametrize("name", WRITERS)
def test_nodes_that_nobody_asked_for_are_not_read(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path / name, export(**{NODES: [node(10, 1)]}, KERNEL=[kernel(100, 25)]))
    trace = inferometer.open(path, {"launches"})
    assert NODES not in trace.losses.seen
    with pytest.raises(InputError, match="the table 'graph_nodes' was not read"):
        _ = trace.graph_nodes


def test_ranks_of_a_folder_keep_their_ids_and_share_a_clock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in (0, 1):
        clock = [{"utcEpochNs": 10**18 + 1_000 * rank}]
        made = export(KERNEL=[kernel(100, 5)], TARGET_INFO_SESSION_START_TIME=clock, **{NODES: [node(10, 2, 1)]})
        write_sqlite(folder / f"rank{rank}.sqlite", made)
    trace = inferometer.open(folder)
    columns = ("rank", "process", "graph_node_id", "original_node_id", "start_ns")
    assert rows(trace, "graph_nodes", *columns) == [(0, PID, 2, 1, 10), (1, PID, 2, 1, 1_010)]


@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_a_store_and_an_export_hold_the_nodes(to: str, open_nodes: Open, tmp_path: Path) -> None:
    trace = open_nodes([node(10, 1 << 32), node(20, 2 << 32, 1 << 32, nameId=None)])
    stored = inferometer.open(trace.save(tmp_path / "a.ifm"))
    assert stored.graph_nodes.collect().equals(trace.graph_nodes.collect())
    inferometer.export(trace, tmp_path / "out", to=to)
    read = pl.read_parquet if to == "parquet" else pl.read_csv
    exported = read(tmp_path / "out" / f"graph_nodes.{to}")
    columns = ("graph_node_id", "original_node_id", "start_ns")
    assert exported.select(columns).rows() == [(1 << 32, None, 10), (2 << 32, 1 << 32, 20)]


def test_only_nodes_are_an_export_too(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "nodes.sqlite", {NODES: [without(node(10, 1, globalTid=GLOBAL_TID), "nameId")]})
    assert rows(inferometer.open(path), "graph_nodes", "process") == [PID]
