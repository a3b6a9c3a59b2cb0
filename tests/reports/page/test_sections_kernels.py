"""The sections about kernels: table, areas, durations, groups and bounds say what the analyses say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.findings.rule import Evidence
from inferometer.reports.page.blocks import Block, Chart, Grid, Points
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sections import bounds, groups, histogram, kernels
from inferometer.trace.trace import Trace

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HOSTILE = "<script>alert('k')</script>\x1b[31m" + "é" * 300


def charts(block: Block | None) -> list[Chart]:
    assert block is not None
    found = [part for part in block.parts if isinstance(part, Chart)]
    for chart in found:
        json.dumps([chart.data, chart.layout], allow_nan=False)
        assert chart.alt
    return found


def grids(block: Block | None) -> list[Grid]:
    assert block is not None
    return [part for part in block.parts if isinstance(part, Grid)]


def launches(times: dict[str, list[int]]) -> Trace:
    """Launches of each kernel, one after the other."""
    rows, start = [], 0
    for name, durations in times.items():
        for dur_ns in durations:
            rows.append({"kernel": name, "start_ns": start, "dur_ns": dur_ns})
            start += dur_ns + 10
    return trace_of(rows)


def build(section: Any, trace: Trace) -> Block:
    block = section.SECTION.build(RunData(trace))
    assert isinstance(block, Block)
    return block


def test_few_kernels_are_bars_with_the_tables_times() -> None:
    block = build(kernels, launches({"triton_poi_fused_add_0": [3_000_000, 1_000_000], "nccl_x": [500_000]}))
    (chart,) = charts(block)
    (bars,) = chart.data
    assert bars["type"] == "bar"
    assert bars["x"] == [4, 0.5]
    assert bars["customdata"] == ["triton_poi_fused_add_0", "nccl_x"]
    assert bars["text"] == ["88.9 %", "11.1 %"]
    assert chart.layout["xaxis"]["title"]["text"] == "Kernel time, ms"
    assert "triton_poi_fused_add_0 takes 88.9 % of 4.500 ms" in chart.alt


def test_the_areas_of_many_kernels_add_up_to_all_kernel_time() -> None:
    trace = launches({f"kernel_{i}": [1_000 + i] * 2 for i in range(200)})
    block = build(kernels, trace)
    (tree,) = charts(block)[0].data
    assert tree["type"] == "icicle"
    times = dict(zip(tree["ids"], tree["values"], strict=True))
    total_ns = kernel_table(trace).total_ns
    for parent, below_ns in (("all", total_ns), ("f0", times["f0"])):
        children = [times[box] for box, above in zip(tree["ids"], tree["parents"], strict=True) if above == parent]
        assert sum(children) == times[parent] == below_ns
    assert f"other {200 - kernels.LEAVES:,} kernels" in tree["labels"]
    assert len(set(tree["ids"])) == len(tree["ids"])
    assert set(tree["parents"]) <= {"", *tree["ids"]}


def test_the_table_has_all_kernels_with_what_their_names_tell() -> None:
    name = "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT"
    (grid,) = grids(build(kernels, launches({name: [10, 20], "unheard_of": [5]})))
    assert grid.group == "family"
    rows = grid.section.frame.select("kernel", "total_ns", "count", "family", "library").rows()
    assert rows == [(name, 30, 2, "gemm", "cublas"), ("unheard_of", 5, 1, "other", "other")]
    assert {"family", "library", "dtype"} <= {field.column for field in grid.section.fields}


def test_printed_tables_are_shown_each_for_itself() -> None:
    rows = [
        {"section": section, "kernel": f"k{section}", "count": 1, "total_ns": 100 * (section + 1)}
        for section in range(3)
    ]
    block = build(kernels, trace_of(totals=rows))
    assert [sum(chart.data[0]["x"]) for chart in charts(block)] == [0.1, 0.2, 0.3]
    assert [grid.section.title for grid in grids(block)] == [f"Kernels, section {i}" for i in range(3)]


def test_without_kernels_it_says_what_is_lacking() -> None:
    empty = trace_of()
    assert "launches of kernels" in build(kernels, empty).lacking
    assert "single launches" in build(histogram, empty).lacking
    assert "launches with" in build(groups, empty).lacking
    assert "step by step" in build(bounds, empty).lacking


def test_a_histogram_holds_every_launch_and_marks_median_and_p99() -> None:
    times = [1_000] * 50 + [2_000] * 30 + [50_000] * 20
    chart = charts(build(histogram, launches({"k": times})))[-1]
    bars, median, p99 = chart.data
    assert sum(bars["y"][:-1]) == 100
    assert (bars["x"][0], bars["x"][-1]) == (1, 50)
    assert median["x"] == [float(np.median(times)) / 1_000] * 2
    assert p99["x"] == [float(np.quantile(times, 0.99)) / 1_000] * 2
    assert "100 launches of k: median 1.500 μs, 99th percentile 50.000 μs" in chart.alt
    assert "updatemenus" not in chart.layout


def test_a_menu_chooses_the_kernel_and_one_is_seen_at_first() -> None:
    trace = launches({f"k{i}": [1_000 * (i + 1), 3_000 * (i + 1)] for i in range(20)})
    spread, chart = charts(build(histogram, trace))
    (menu,) = chart.layout["updatemenus"]
    assert len(menu["buttons"]) == histogram.KERNELS
    assert [button["label"] for button in menu["buttons"]][:2] == ["k19", "k18"]
    for position, button in enumerate(menu["buttons"]):
        shown = [trace["name"] for trace, seen in zip(chart.data, button["args"][0]["visible"], strict=True) if seen]
        assert shown == [f"k{19 - position}", "median", "99th percentile"]
    assert [trace["name"] for trace in chart.data if trace["visible"]] == ["k19", "median", "99th percentile"]
    (box,) = spread.data
    medians = kernel_table(trace).frame.head(histogram.KERNELS)["median_ns"]
    assert box["median"] == [median / 1_000 for median in medians]


def test_mangled_and_plain_spellings_of_a_name_are_one_kernel() -> None:
    trace = launches({"_Z3foof": [100, 200], "foo(float)": [300, 400]})
    table = kernel_table(trace)
    assert table.kernels == 1
    bars, *_ = charts(build(histogram, trace))[-1].data
    assert sum(bars["y"][:-1]) == 4


def test_names_of_files_stand_in_data_only() -> None:
    trace = launches({HOSTILE: [100, 200], "k": [300, 400]})
    for section in (kernels, histogram):
        for chart in charts(build(section, trace)):
            templates = [trace.get("hovertemplate", "") for trace in chart.data]
            titles = {key: value for key, value in chart.layout.items() if key != "updatemenus"}
            assert "script" not in json.dumps([templates, titles])


def test_groups_tell_the_call_with_its_evidence() -> None:
    look = RunData(inferometer.open(SAMPLES / "decode.json.gz"))
    block = groups.SECTION.build(look)
    every, members = grids(block)
    assert block is not None
    said, refused = [part for part in block.parts if isinstance(part, Points)]
    found = look.groups.groups
    assert every.section.frame["total_ns"].to_list() == [group.total_ns for group in found]
    assert members.section.frame.height == sum(len(member.parts) for group in found for member in group.members)
    assert all((group.call or "no rule") in point.text for group, point in zip(found, said.points, strict=True))
    assert all(set(group.evidence) <= set(point.detail) for group, point in zip(found, said.points, strict=True))
    assert len(refused.points) == 1
    assert len(refused.points[0].detail) == len(look.groups.refused)


def test_s_of_each_class_is_that_of_the_bounds() -> None:
    trace = inferometer.open(SAMPLES / "webgpu.log.gz")
    found = Evidence(trace).bounds
    assert found is not None
    drawn: dict[tuple[Any, ...], float] = {}
    for chart in charts(bounds.SECTION.build(RunData(trace))):
        phase = chart.title.rpartition(" ")[2]
        for trace_ in chart.data:
            rate = float(trace_["name"].split()[0]) * 1e9
            drawn |= {(phase, kernel, rate): s for kernel, s in zip(trace_["customdata"], trace_["x"], strict=True)}
    columns = ("phase", "kernel", "bandwidth_bytes_per_s", "sol_fraction")
    rows = found.bounds.drop_nulls("sol_fraction").select(columns).rows()
    assert len(drawn) == len(rows)
    for *key, s in rows:
        assert drawn[tuple(key)] == pytest.approx(s, rel=1e-3)


def test_a_log_of_an_unknown_model_says_what_to_give() -> None:
    step = {"step": 0, "phase": "decode", "decode_tokens": 1, "context_len": 5, "source": "recorded"}
    row = {"section": 0, "step": 0, "kernel": "gemm:L0.wq", "total_ns": 1_000}
    block = build(bounds, trace_of(facts={"model": "nobody-knows-it"}, steps=[step], totals=[row]))
    assert "--model-config" in block.lacking
