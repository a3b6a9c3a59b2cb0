"""The call tree: what is a node, what it took, and that no time is lost."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.launched_by.test_attribution import call, frame, op, traces, work
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.call_tree import CallTreeTable, call_tree
from inferometer.analyses.launched_by.call_tree_nodes import FRAMES
from inferometer.errors import InputError
from inferometer.reports.views.view import remarks_of, sections_of


def outline(table: CallTreeTable) -> list[str]:
    """Names, indented by depth, with total time."""
    return [f"{'  ' * depth}{name} {ns}" for depth, name, ns in table.frame.select("depth", "name", "total_ns").rows()]


def model(layers: int) -> Trace:
    """A model of layers, each with an attention and an mlp; a helper frame in the attention calls two ops."""
    launches, calls, ops = [], [], []
    frames = [frame("train.py(1): main", 0, 10_000), frame("nn.Module: LlamaModel_0", 10, 9_000)]
    for layer in range(layers):
        at = 100 + 200 * layer
        frames += [
            frame(f"nn.Module: LlamaDecoderLayer_{layer}", at, 150),
            frame(f"nn.Module: LlamaAttention_{layer}", at + 1, 50),
            frame("llama.py(5): forward", at + 2, 48),
            frame("llama.py(9): rotate", at + 3, 40),
            frame(f"nn.Module: LlamaMLP_{layer}", at + 60, 50),
            frame("llama.py(20): forward", at + 61, 40),
        ]
        for i, (name, kernel, when) in enumerate(
            [("aten::neg", "neg", 5), ("aten::cat", "cat", 15), ("aten::linear", "mm", 65)]
        ):
            number = 10 * layer + i
            ops.append(op(name, at + when, 5))
            if name == "aten::linear":
                ops.append(op("aten::addmm", at + when + 1, 3))
            calls.append(call(number, at + when + 2))
            launches.append(work(number, 20_000 + number, 10 * (i + 1), kernel=kernel))
    return trace_of(launches, calls=calls, ops=ops, frames=frames)


def test_layers_are_one_node_or_each_its_own() -> None:
    found = attribute(model(2))
    assert outline(call_tree(found)) == [
        "model 120",
        "  layers.* 120",
        "    self_attn 60",
        "      llama.py(9): rotate 60",
        "        aten::cat 40",
        "          cat 40",
        "        aten::neg 20",
        "          neg 20",
        "    mlp 60",
        "      aten::linear 60",
        "        aten::addmm 60",
        "          mm 60",
    ]
    apart = outline(call_tree(found, layers="apart"))
    assert apart[:2] == ["model 120", "  layers.0 60"]
    assert "  layers.1 60" in apart


def test_frames_are_those_where_calls_part_or_none_or_all() -> None:
    found = attribute(model(1))
    names = {frames: call_tree(found, frames=frames).frame.filter(kind="frame")["name"].to_list() for frames in FRAMES}
    assert names["none"] == []
    assert names["auto"] == ["llama.py(9): rotate"]
    assert len(names["user"]) == len(names["all"]) == 4


def test_time_launched_right_at_a_node_is_told_apart_from_all_below_it() -> None:
    frame = call_tree(attribute(model(1))).frame
    direct = dict(frame.filter(kind="op").select("name", "direct_ns").rows())
    assert direct == {"aten::cat": 20, "aten::neg": 10, "aten::linear": 0, "aten::addmm": 30}


def test_ops_that_call_one_op_alone_stand_on_its_line() -> None:
    (section,) = sections_of(call_tree(attribute(model(1))))
    assert "      aten::linear > aten::addmm" in section.frame["indented"].to_list()


def test_ranges_that_differ_in_numbers_are_one_node_unless_layers_stand_apart() -> None:
    spans = [
        {"span": f"step {i}", "domain": "x", "process": 1, "thread": 2, "start_ns": 100 * i, "dur_ns": 90}
        for i in range(3)
    ]
    trace = trace_of([work(i, 1000 + i) for i in range(3)], calls=[call(i, 100 * i + 5) for i in range(3)], spans=spans)
    found = attribute(trace)
    assert outline(call_tree(found)) == ["step N 30", "  k 30"]
    assert len(outline(call_tree(found, layers="apart"))) == 6


def test_launches_of_unknown_origin_stand_at_the_top_with_the_reason() -> None:
    table = call_tree(attribute(trace_of([work(1, 10), work(2, 5)], calls=[call(1, 0)], ops=[])))
    tops = table.frame.filter(pl.col("parent").is_null())
    assert tops["kind"].unique().to_list() == ["unknown"]
    assert any("before the profiling window" in name for name in tops["name"])
    assert table.unattributed_ns == table.total_ns == 20


def test_depth_share_and_names_choose_what_is_shown_and_not_what_is_counted() -> None:
    found = attribute(model(2))
    assert call_tree(found, depth=2).shown["name"].to_list() == ["model", "layers.*"]
    assert call_tree(found, min_share=0.4).shown["total_ns"].min() == 60
    some = call_tree(found, match="^aten::neg$")
    assert some.shown["name"].to_list() == ["model", "layers.*", "self_attn", "llama.py(9): rotate", "aten::neg"]
    assert some.frame.height == call_tree(found).frame.height
    with pytest.raises(InputError, match="regular expression"):
        call_tree(found, match="(")


def test_an_empty_trace_has_an_empty_tree() -> None:
    table = call_tree(attribute(trace_of()))
    assert table.frame.is_empty()
    assert (table.total_ns, table.as_json()["nodes"]) == (0, [])
    assert "No launches in the file." in "\n".join(remarks_of(table))


@given(traces(), st.sampled_from(FRAMES), st.sampled_from(["pooled", "apart"]))
def test_a_nodes_time_is_its_own_and_its_callees(trace: Any, frames: Any, layers: Any) -> None:
    found = attribute(trace)
    table = call_tree(found, frames=frames, layers=layers)
    rows = table.frame
    below = rows.drop_nulls("parent").group_by("parent").agg(pl.col("total_ns").sum(), pl.col("count").sum())
    sums = {parent: (ns, count) for parent, ns, count in below.iter_rows()}
    for row in rows.iter_rows(named=True):
        ns, count = sums.get(row["node"], (0, row["count"]))
        assert row["total_ns"] == row["self_ns"] + ns
        assert row["count"] == count
        assert (row["kind"] == "kernel") == (row["node"] not in sums)
    tops = rows.filter(pl.col("parent").is_null())
    assert tops["total_ns"].sum() == table.total_ns == found.launches["dur_ns"].sum()
    assert tops["count"].sum() == table.launches
    assert tops.filter(kind="unknown")["total_ns"].sum() == table.unattributed_ns
