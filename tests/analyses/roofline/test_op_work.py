"""What ops must do: of a recorded pair of files, of plain sums by hand, and of nodes that make no tree."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from time import process_time
from typing import Any

import polars as pl
import pytest
from tests.formats.execution_trace.test_reader import ET, node, write
from tests.traces import trace_of

import inferometer
from inferometer.analyses.roofline.op_work import NEEDED, OpWork, op_work
from inferometer.errors import InputError
from inferometer.hardware.known import require_device
from inferometer.operators.framework.no_data import why_no_data
from inferometer.reports.views.view import remarks_of

PROFILE = ET.with_name("profile.json.gz")


def product(m: int, k: int, n: int) -> dict[str, Any]:
    sizes = [[m, k], [k, n]]
    return {"values": [[1], [2]], "shapes": sizes, "types": ["Tensor(float)"] * 2, "strides": [[k, 1], [n, 1]]}


def totals(found: OpWork) -> tuple[Any, ...]:
    return found.flops, found.bytes, found.bound_ns, found.counted, found.inside


def test_an_execution_trace_and_the_profile_of_its_run_say_the_same() -> None:
    """One has nesting by times, the other by the nodes' parents."""
    device = require_device("H200 SXM")
    of_nodes, of_ops = (op_work(inferometer.open(path, NEEDED), device=device) for path in (ET, PROFILE))
    assert totals(of_nodes) == pytest.approx(totals(of_ops))
    assert (of_nodes.has_times, of_ops.has_times) == (False, True)
    for found in (of_nodes, of_ops):
        assert (
            found.calls
            == found.counted + found.inside + found.without_data + found.unknown
            == found.frame["calls"].sum()
        )
        assert found.counted == found.frame["counted"].sum()
    known = pl.col("total_flops").fill_null(0) > 0
    columns = ("op", "input_dims", "input_dtypes", "calls", "counted", "total_flops", "total_bytes")
    frames = [found.frame.filter(known).select(columns).sort(columns) for found in (of_nodes, of_ops)]
    assert frames[0].equals(frames[1])


def test_products_of_a_recorded_trace_are_those_of_its_sizes() -> None:
    nodes = json.loads(gzip.decompress(ET.read_bytes()))["nodes"]
    frame = op_work(inferometer.open(ET, NEEDED)).frame
    by_sizes: dict[str, int] = {}
    for each in nodes:
        if each["name"] == "aten::mm":
            (m, k), (_, n) = each["inputs"]["shapes"][:2]
            by_sizes[json.dumps(each["inputs"]["shapes"])] = 2 * m * k * n
    found = dict(frame.filter(pl.col("op") == "aten::mm").select("input_dims", "flops").iter_rows())
    assert len(by_sizes) == 3
    assert found == by_sizes
    calls = dict(frame.group_by("op").agg(pl.col("calls").sum()).iter_rows())
    assert calls["aten::mm"] == sum(each["name"] == "aten::mm" for each in nodes)


def test_work_counts_once_at_the_outermost_call_whose_work_is_known(tmp_path: Path) -> None:
    linear = {"values": [[1], [2], "<None>"], "shapes": [[4, 8], [16, 8], []], "strides": [[8, 1], [8, 1], []],
              "types": ["Tensor(float)", "Tensor(float)", "None"]}  # fmt: skip
    nodes = [
        node(7, "aten::mm", parent=6, inputs=product(4, 8, 16)),
        node(6, "aten::linear", parent=5, inputs=linear),
        node(5, "my range"),
        node(8, "aten::mm", inputs=product(4, 8, 16)),
    ]
    found = op_work(inferometer.open(write(tmp_path / "et.json", nodes)))
    each = 2 * 4 * 8 * 16
    assert (found.calls, found.counted, found.inside, found.unknown, found.flops) == (4, 2, 1, 1, 2 * each)
    rows = {
        row["op"]: (row["calls"], row["counted"], row["flops"], row["total_flops"]) for row in found.frame.to_dicts()
    }
    assert rows == {
        "aten::mm": (2, 1, each, each),
        "aten::linear": (1, 1, each, each),
        "my range": (1, 0, None, None),
    }
    assert "Of all 4 calls, 2 count" in " ".join(remarks_of(found))
    assert "An execution trace has no times" in " ".join(remarks_of(found))


def test_the_least_time_is_that_of_the_device_for_each_call(tmp_path: Path) -> None:
    nodes = [node(n, "aten::mm", inputs=product(4096, 4096, 4096)) for n in (3, 4)]
    trace = inferometer.open(write(tmp_path / "et.json", nodes))
    device = require_device("H200 SXM")
    found = op_work(trace, device=device)
    [row] = found.frame.to_dicts()
    assert found.bound_ns == pytest.approx(2 * row["bound_ns"])
    assert row["bound_ns"] >= 1e9 * 3 * 4096**2 * 4 / 4.9e12  # memory of 4.8 TB/s can't be quicker
    assert op_work(trace).bound_ns is None


@pytest.mark.parametrize(
    "parents", [{3: 3, 4: 3}, {3: 4, 4: 3}, {3: 99, 4: 4}, {3: None, 4: None}], ids=["own", "circle", "lost", "none"]
)
def test_nodes_that_make_no_tree_are_each_a_call(tmp_path: Path, parents: dict[int, Any]) -> None:
    nodes = [{**node(n, "aten::mm", inputs=product(2, 2, 2)), "ctrl_deps": parent} for n, parent in parents.items()]
    found = op_work(inferometer.open(write(tmp_path / "et.json", nodes)))
    assert found.counted + found.inside == found.calls == 2


def test_a_profile_without_shapes_says_why_nothing_is_known() -> None:
    op = {"op": "aten::mm", "process": 1, "thread": 1, "start_ns": 0, "dur_ns": 5}
    found = op_work(trace_of([], ops=[op]))
    assert (found.calls, found.counted, found.unknown) == (1, 0, 1)
    assert found.frame["reason"].to_list() == ["its shapes weren't recorded"]
    assert "The least time needs a device" in " ".join(remarks_of(found))


def test_views_and_allocations_are_not_called_unknown(tmp_path: Path) -> None:
    nodes = [
        node(3, "aten::reshape"),
        node(4, "aten::clone", parent=3),
        node(5, "aten::view"),
        node(6, "aten::empty"),
        node(7, "my_views::view"),
        node(8, "aten::linear_of_mine"),
    ]
    found = op_work(inferometer.open(write(tmp_path / "et.json", nodes)))
    reasons = dict(found.frame.select("op", "reason").iter_rows())
    assert (found.calls, found.counted, found.inside, found.without_data, found.unknown) == (6, 0, 0, 3, 3)
    assert reasons["aten::reshape"] == "what it moves, ops inside it do"
    assert reasons["aten::view"] == "it makes a view: no data moves"
    assert reasons["aten::empty"] == "it allocates memory: no data moves"
    assert reasons["my_views::view"] == "there is no model of this op"


@pytest.mark.parametrize("name", ["h100_vit", "mi300_qwen1.5-0.5b", "mi300_resnet_ddp", "rank0_sampled"])
def test_no_kernel_of_a_real_capture_is_launched_by_an_op_that_moves_no_data(shared_data: Path, name: str) -> None:
    """The innermost op around the call that launched it, in plain Python."""
    data = gzip.decompress((shared_data / "traces" / "kineto" / f"{name}.json.gz").read_bytes())
    events = [each for each in json.loads(data)["traceEvents"] if each.get("ph") == "X"]
    launched = {each["args"].get("correlation") for each in events if each.get("cat") in {"kernel", "gpu_memset"}}
    open_ops: dict[Any, list[Any]] = defaultdict(list)
    checked = 0
    for each in sorted(events, key=lambda each: (float(each["ts"]), -float(each["dur"]))):
        thread = open_ops[each["pid"], each["tid"]]
        if each.get("cat") == "cpu_op":
            thread.append(each)
        elif each.get("cat") in {"cuda_runtime", "cuda_driver"} and each["args"].get("correlation") in launched:
            while thread and float(thread[-1]["ts"]) + float(thread[-1]["dur"]) < float(each["ts"]):
                thread.pop()
            if thread:
                assert why_no_data(thread[-1]["name"]) is None, (thread[-1]["name"], each["name"])
                checked += 1
    assert checked > 100


def test_a_trace_without_ops_is_an_error() -> None:
    with pytest.raises(InputError, match="expected ops of a framework, found none"):
        op_work(trace_of([]))


def test_rows_shown_are_those_that_match() -> None:
    found = op_work(inferometer.open(ET, NEEDED), match="aten::.*mm$", top=2)
    assert found.shown.height == 2
    assert set(found.shown["op"]) <= {"aten::mm", "aten::addmm", "aten::bmm"}


def test_the_device_is_the_one_that_the_trace_names() -> None:
    found = op_work(inferometer.open(ET.parents[1] / "decode.json.gz", NEEDED))
    assert found.device == "H100 SXM"
    assert found.bound_ns == pytest.approx(sum(found.frame["total_bound_ns"].drop_nulls()))
    assert found.calls == found.counted + found.inside + found.without_data + found.unknown


def test_of_real_captures_calls_and_bytes_add_up(shared_data: Path) -> None:
    for path in sorted((shared_data / "traces" / "kineto").glob("*.json.gz")):
        trace = inferometer.open(path, NEEDED)
        found = op_work(trace)
        assert found.calls == trace.count_rows()["ops"] == found.frame["calls"].sum(), path.name
        assert found.calls == found.counted + found.inside + found.without_data + found.unknown, path.name
        each = found.frame.filter(pl.col("counted") > 0)
        assert found.bytes == (each["counted"] * (each["read_bytes"] + each["write_bytes"])).sum(), path.name


def test_nodes_nested_by_the_thousand_take_no_time_of_their_square(tmp_path: Path) -> None:
    n = 20_000
    names = ("aten::mm", "autograd::engine::evaluate_function: MmBackward0")
    nodes = [node(3 + at, names[at % 2], parent=2 + at, inputs=product(2, 2, 2)) for at in range(1, n + 1)]
    began = process_time()
    found = op_work(inferometer.open(write(tmp_path / "et.json", nodes)))
    assert process_time() - began < 30
    assert (found.calls, found.counted) == (n, 1)


def test_work_beyond_64_bits_is_summed_all_the_same(tmp_path: Path) -> None:
    m = 2**20
    nodes = [node(at, "aten::mm", inputs=product(m, m + at, m)) for at in range(3, 8)]
    found = op_work(inferometer.open(write(tmp_path / "et.json", nodes)))
    assert found.flops == sum(2 * m * m * (m + at) for at in range(3, 8)) > 2**63
