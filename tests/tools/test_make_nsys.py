"""The generated exports are what they claim to be: every claim is counted again, by plain SQL and by our reader."""

from __future__ import annotations

import sqlite3
from ast import literal_eval
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.nsys_files import kernels_by_sql
from tests.traces import counted
from tools.make_nsys import Options, main, write_export

import inferometer
from inferometer.analyses.tables.kernels import kernel_table

SMALL = Options(kernels=1_000)
A_STEP = 384  # kernels
VARIANTS = {
    "eager": SMALL,
    "ranges of launches": replace(SMALL, nvtx="launches"),
    "no ranges": replace(SMALL, nvtx="none"),
    "graph": replace(SMALL, graph=True),
    "two devices": replace(SMALL, devices=2),
    "two devices, graph": replace(SMALL, devices=2, graph=True),
    "captured": replace(SMALL, graph=True, capture=True),
    "captured, no ranges": replace(SMALL, graph=True, capture=True, nvtx="none"),
    "two devices, captured": replace(SMALL, devices=2, graph=True, capture=True),
    "one kernel": replace(SMALL, kernels=1),
}
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
NODES = "CUDA_GRAPH_NODE_EVENTS"
WORK = f"""(
    SELECT start, "end", globalPid >> 24 AS process, correlationId FROM {KERNELS}
    UNION ALL SELECT start, "end", globalPid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_MEMCPY
)"""
CALLS = """(
    SELECT c.start, c."end", globalTid >> 24 AS process, correlationId, s.value AS api
    FROM CUPTI_ACTIVITY_KIND_RUNTIME c JOIN StringIds s ON s.id = c.nameId
)"""


class Export:
    """A generated export, what was asked for, and what the generator says of it."""

    def __init__(self, options: Options, path: Path) -> None:
        self.options, self.path = options, path
        self.truth = write_export(options, path)

    def ask(self, query: str) -> list[Any]:
        """The rows of a query in SQL."""
        database = sqlite3.connect(self.path)
        try:
            return database.execute(query).fetchall()
        finally:
            database.close()


@pytest.fixture(params=list(VARIANTS))
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Export:
    return Export(VARIANTS[request.param], tmp_path / "run.sqlite")


def dump(options: Options, path: Path) -> list[str]:
    write_export(options, path)
    database = sqlite3.connect(path)
    try:
        return list(database.iterdump())
    finally:
        database.close()


@pytest.mark.parametrize("options", [SMALL, VARIANTS["two devices, captured"]], ids=["eager", "captured"])
def test_the_same_arguments_give_the_same_rows(options: Options, tmp_path: Path) -> None:
    first = dump(options, tmp_path / "first.sqlite")
    assert dump(options, tmp_path / "second.sqlite") == first
    assert dump(replace(options, seed=8), tmp_path / "third.sqlite") != first


def test_the_truth_is_what_plain_sql_counts(export: Export) -> None:
    tables = [name for (name,) in export.ask("SELECT name FROM sqlite_master WHERE type = 'table'")]
    counts = {table: export.ask(f"SELECT count(*) FROM {table}")[0][0] for table in tables}
    assert export.truth["rows"] == {table: n for table, n in counts.items() if n}
    assert counts[KERNELS] == export.options.kernels
    by_sql = {name: [count, total] for name, (count, total, *_) in kernels_by_sql(export.path).items()}
    assert export.truth["kernels"] == by_sql


def test_opening_it_gives_the_truth(export: Export) -> None:
    trace, rows = inferometer.open(export.path), Counter(export.truth["rows"])
    assert {table: n for table, n in trace.count_rows().items() if n} == +Counter(
        launches=rows[KERNELS] + rows["CUPTI_ACTIVITY_KIND_MEMCPY"],
        calls=rows["CUPTI_ACTIVITY_KIND_RUNTIME"],
        spans=rows["NVTX_EVENTS"] + rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"],
        graph_nodes=rows[NODES],
    )
    found = kernel_table(trace, raw=True).frame.select("kernel", "count", "total_ns").rows()
    assert {kernel: [count, total] for kernel, count, total in found} == export.truth["kernels"]
    remarks = {"correlation_in_several_processes"} if export.options.devices > 1 else set()
    assert counted(trace).keys() == remarks
    devices = [f"gpu:{i}" for i in range(export.options.devices)]
    assert sorted(trace.launches.collect()["device"].unique()) == devices


def test_in_a_graph_all_kernels_of_a_step_have_the_correlation_id_of_its_one_launch(tmp_path: Path) -> None:
    export = Export(VARIANTS["graph"], tmp_path / "graph.sqlite")
    replays = export.ask(f"SELECT correlationId, count(*), count(DISTINCT graphNodeId) FROM {KERNELS} GROUP BY 1")
    assert replays == [(1, A_STEP, A_STEP), (2, A_STEP, A_STEP), (3, 1_000 - 2 * A_STEP, 1_000 - 2 * A_STEP)]
    assert export.ask(f"SELECT correlationId FROM {CALLS} WHERE api LIKE 'cudaGraphLaunch%'") == [(1,), (2,), (3,)]
    kernels_of_a_node = f"SELECT count(DISTINCT demangledName) FROM {KERNELS} GROUP BY graphNodeId"
    assert set(export.ask(kernels_of_a_node)) == {(1,)}, "a node is the same kernel in every replay"
    assert not export.ask(f"SELECT 1 FROM {CALLS} WHERE api LIKE '%LaunchKernel%'")


@pytest.mark.parametrize("variant", ["captured", "two devices, captured"])
def test_a_captured_kernel_leads_back_to_the_module_that_launched_it(variant: str, tmp_path: Path) -> None:
    """By plain SQL: from the kernel's node to its original, to the ranges around that node's creation."""
    export = Export(VARIANTS[variant], tmp_path / "run.sqlite")
    ranges = export.ask(
        f"""
        SELECT clone.globalTid >> 24 & 0xFFFFFF, clone.graphNodeId, made.graphNodeId, made.start, n.text, max(n.start)
        FROM {NODES} clone
        JOIN {NODES} made ON made.graphNodeId = clone.originalGraphNodeId AND made.globalTid = clone.globalTid
        JOIN NVTX_EVENTS n
        ON n.globalTid = made.globalTid AND made.start >= n.start AND made.start < n."end" AND n.text GLOB '{{*'
        GROUP BY clone.globalTid, clone.graphNodeId
        """
    )
    truth: dict[str, dict[str, Any]] = {str(4000 + i): {} for i in range(export.options.devices)}
    for process, clone, original, created, text, _ in ranges:
        truth[str(process)][str(clone)] = (original, created, literal_eval(text)["Module"])
    assert export.truth["nodes"] == truth
    assert [len(nodes) for nodes in truth.values()] == [A_STEP] * export.options.devices
    replayed = export.ask(f"SELECT DISTINCT globalPid >> 24 & 0xFFFFFF, graphNodeId FROM {KERNELS}")
    assert {str(clone) for _, clone in replayed} == set(truth["4000"])


def test_a_node_is_created_in_its_call_and_cloned_when_the_graph_is_instantiated(tmp_path: Path) -> None:
    export = Export(VARIANTS["captured"], tmp_path / "run.sqlite")
    made = export.ask(f"""
        SELECT api, o.graphNodeId IS NULL, count(*), count(DISTINCT n.graphNodeId) FROM {NODES} n
        JOIN {CALLS} c ON n.start >= c.start AND n."end" < c."end"
        LEFT JOIN (SELECT graphNodeId FROM {NODES} WHERE originalGraphNodeId IS NOT NULL) o USING (graphNodeId)
        GROUP BY 1, 2
    """)
    launched, cloned = ("cudaLaunchKernel_v7000", 1), ("cudaGraphInstantiateWithFlags_v11040", 0)
    assert made == [(*cloned, 2 * A_STEP, A_STEP), (*launched, A_STEP, A_STEP)]
    assert not export.ask(f"SELECT 1 FROM {NODES} WHERE start > (SELECT min(start) FROM {KERNELS})")


def test_a_second_device_has_other_layers_under_equal_nodes(tmp_path: Path) -> None:
    nodes = Export(VARIANTS["two devices, captured"], tmp_path / "run.sqlite").truth["nodes"]
    assert nodes["4000"].keys() == nodes["4001"].keys()
    modules = [{module for _, _, module in each.values()} for each in nodes.values()]
    assert modules[0].isdisjoint(modules[1])
    assert "LlamaForCausalLM.model.layers.17.self_attn.qkv_proj" in modules[0]
    assert "LlamaForCausalLM.model.layers.63.mlp.down_proj" in modules[1]


def test_without_its_capture_a_graph_has_no_table_of_nodes(tmp_path: Path) -> None:
    export = Export(VARIANTS["graph"], tmp_path / "graph.sqlite")
    assert not export.ask(f"SELECT 1 FROM sqlite_master WHERE name = '{NODES}'")
    assert "nodes" not in export.truth
    assert export.ask(f"SELECT min(graphNodeId), max(graphNodeId) FROM {KERNELS}") == [(1, A_STEP)]


def test_eager_kernels_have_a_call_each_and_no_node(tmp_path: Path) -> None:
    export = Export(SMALL, tmp_path / "eager.sqlite")
    tied = f"SELECT count(*), count(graphNodeId) FROM {KERNELS} JOIN {CALLS} USING (correlationId)"
    assert export.ask(tied) == [(1_000, 0)]


def test_two_devices_are_two_processes_with_equal_correlation_ids(tmp_path: Path) -> None:
    export = Export(VARIANTS["two devices"], tmp_path / "two.sqlite")
    both = "SELECT correlationId, count(*), count(DISTINCT process) FROM {} GROUP BY 1"
    assert export.ask(both.format(WORK))[:500] == [(i, 2, 2) for i in range(1, 501)]
    assert export.ask(both.format(CALLS))[:500] == [(i, 2, 2) for i in range(1, 501)]
    assert export.ask(f"SELECT DISTINCT deviceId FROM {KERNELS}") == [(0,)], "each sees its own device as number 0"
    assert export.ask("SELECT gpuId, cudaId, pid FROM TARGET_INFO_CUDA_DEVICE") == [(0, 0, 4000), (1, 0, 4001)]


def test_work_begins_after_its_call_and_one_after_the_other(export: Export) -> None:
    late = f"SELECT count(*), min(w.start - c.start) FROM {WORK} w JOIN {CALLS} c USING (process, correlationId)"
    [(tied, delay)] = export.ask(late)
    assert tied == export.ask(f"SELECT count(*) FROM {WORK}")[0][0]
    assert delay > 0
    for rows in (WORK, CALLS):
        times = export.ask(f'SELECT process, start, "end" FROM {rows} ORDER BY 1, 2')
        assert all(start < end for _, start, end in times)
        assert all(a[2] <= b[1] for a, b in pairwise(times) if a[0] == b[0])


def test_ranges_nest(export: Export) -> None:
    open_ends: list[tuple[int, int]] = []
    for thread, start, end in export.ask('SELECT globalTid, start, "end" FROM NVTX_EVENTS ORDER BY 1, 2, 3 DESC'):
        while open_ends and (open_ends[-1][0] != thread or open_ends[-1][1] <= start):
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1][1]
        open_ends.append((thread, end))


@pytest.mark.parametrize(
    ("variant", "around"),
    [("eager", 2), ("ranges of launches", 3), ("two devices", 2), ("graph", 1), ("no ranges", 0)],
)
def test_the_ranges_around_a_call_that_launches(variant: str, around: int, tmp_path: Path) -> None:
    options = VARIANTS[variant]
    export = Export(replace(options, kernels=2 * A_STEP * options.devices), tmp_path / "run.sqlite")
    found = export.ask(
        "SELECT count(n.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME c LEFT JOIN NVTX_EVENTS n"
        ' ON n.globalTid = c.globalTid AND c.start >= n.start AND c."end" <= n."end"'
        " WHERE c.nameId IN (SELECT id FROM StringIds WHERE value GLOB 'cu*Launch*') GROUP BY c.rowid"
    )
    assert set(found) == {(around,)}


def test_the_command_writes_export_and_truth_and_replaces_neither_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, truth = tmp_path / "run.sqlite", tmp_path / "truth.json"
    arguments = ["--kernels", "10", "--out", str(out), "--truth", str(truth)]
    assert main(arguments) == 0
    assert "10 kernels" in capsys.readouterr().err
    assert truth.exists()
    for kept, removed in ((out, truth), (truth, out)):
        removed.unlink()
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert f"{kept} exists" in capsys.readouterr().err
        assert main([*arguments, "--force"]) == 0


def test_only_a_graph_has_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--capture", "--out", str(tmp_path / "run.sqlite")])
    assert "--capture needs --graph" in capsys.readouterr().err
    assert main(["--capture", "--graph", "--kernels", "10", "--out", str(tmp_path / "run.sqlite")]) == 0


@pytest.mark.parametrize("wrong", [["--kernels", "0"], ["--devices", "0"], ["--kernels", "1", "--devices", "2"]])
def test_a_device_needs_a_kernel(wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*wrong, "--out", str(tmp_path / "run.sqlite")])
    assert "a kernel for each" in capsys.readouterr().err
