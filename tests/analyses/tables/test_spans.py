"""Device time by named range: against looking at every range for every launch."""

from collections import defaultdict
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.tables import projection
from inferometer.analyses.tables.spans import NEEDED, SpanSortKey, SpanTable, span_table
from inferometer.errors import InputError, UnknownName
from inferometer.reports.views.view import json_of, remarks_of

SPAN = {"domain": "NVTX", "process": 1, "thread": 2, "device": None, "stream": None}
Row = dict[str, Any]


def trace_with(spans: list[Row], work: list[Row]) -> Trace:
    """`work`: launches, each with its call's `called_ns` and maybe `thread`."""
    calls, launches = [], []
    for i, each in enumerate(work):
        launch = {"process": 1, "correlation_id": i, **each}
        called_ns, thread = launch.pop("called_ns"), launch.pop("thread", 2)
        launches.append(launch)
        if called_ns is not None:
            where = {"process": 1, "thread": thread, "rank": launch.get("rank")}
            times = {"start_ns": called_ns, "dur_ns": 1}
            calls.append({"api": "cudaLaunchKernel", **where, **times, "correlation_id": i})
    return trace_of(launches, calls=calls, spans=[SPAN | span for span in spans])


A_STEP = trace_with(
    [
        {"span": "step", "start_ns": 0, "dur_ns": 100},
        {"span": "attention", "start_ns": 10, "dur_ns": 30},
        {"span": "attention", "start_ns": 50, "dur_ns": 10},
    ],
    [
        {"called_ns": 5, "start_ns": 20, "dur_ns": 10},
        {"called_ns": 10, "start_ns": 100, "dur_ns": 50},
        {"called_ns": 39, "start_ns": 120, "dur_ns": 50, "stream": 8},
        {"called_ns": 40, "start_ns": 170, "dur_ns": 5},
        {"called_ns": 50, "start_ns": 300, "dur_ns": 7},
        {"called_ns": 100, "start_ns": 400, "dur_ns": 3},
        {"called_ns": None, "start_ns": 0, "dur_ns": 2},
    ],
)  # fmt: skip


def rows(table: SpanTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select("span", *columns).rows()


def said(table: SpanTable) -> str:
    return "\n".join(remarks_of(table))


def test_a_range_has_the_device_time_that_it_queued() -> None:
    table = span_table(A_STEP)
    assert rows(table, "launches", "summed_ns", "busy_ns", "projected_ns") == [
        ("step", 5, 122, 92, 287),  # from 20 to 307
        ("attention", 3, 107, 77, 77),  # 100 to 170, and 300 to 307
    ]
    assert rows(table, "own_launches", "own_summed_ns") == [("step", 2, 15), ("attention", 3, 107)]
    assert rows(table, "instances", "host_total_ns", "host_mean_ns") == [
        ("step", 1, 100, 100.0),
        ("attention", 2, 40, 20.0),
    ]
    assert table.frame["share"].to_list() == pytest.approx([122 / 127, 107 / 127])


def test_what_is_in_no_range_and_what_has_no_call_are_rows_of_their_own() -> None:
    table = span_table(A_STEP)
    shown = table.to_polars().select("span", "launches", "own_summed_ns").rows()
    assert shown[2:] == [("(in no range)", 1, 3), ("(call not in the file)", 1, 2)]
    assert (table.launches, table.summed_ns) == (7, 127)
    assert "Launches in no range: 1 of 7, 2.4 % of the device time." in said(table)
    assert "Launches without a call in the file: 1 of 7." in said(table)


def test_a_name_nested_in_itself_takes_a_launch_once() -> None:
    spans = [{"span": "f", "start_ns": 0, "dur_ns": 10}, {"span": "f", "start_ns": 2, "dur_ns": 5}]
    table = span_table(trace_with(spans, [{"called_ns": 3, "dur_ns": 4}]))
    assert rows(table, "instances", "launches", "summed_ns", "own_launches", "projected_ns") == [("f", 2, 1, 4, 1, 8)]


def test_names_are_apart_by_domain_and_joined_by_folding_their_numbers() -> None:
    spans: list[Row] = [
        {"span": "execute_context_0(0)_generation_64(64)", "start_ns": 0, "dur_ns": 10},
        {"span": "execute_context_1(16)_generation_3(3)", "start_ns": 20, "dur_ns": 10},
        {"span": "step 7", "domain": "a", "start_ns": 40, "dur_ns": 10},
        {"span": "step 7", "domain": None, "start_ns": 60, "dur_ns": 10},
    ]
    trace = trace_with(spans, [{"called_ns": 5}, {"called_ns": 25}])
    assert [row[0] for row in rows(span_table(trace, sort="name"))] == [
        "execute_context_0(0)_generation_64(64)",
        "execute_context_1(16)_generation_3(3)",
        "step 7",
        "step 7",
    ]
    assert rows(span_table(trace, sort="name", fold=True), "domain", "launches", "instances") == [
        ("execute_context_N(N)_generation_N(N)", "NVTX", 2, 2),
        ("step N", "a", 0, 1),
        ("step N", None, 0, 1),
    ]


def test_spans_on_devices_and_marks_are_no_ranges() -> None:
    track = {"process": None, "thread": None, "device": "gpu:0", "stream": 7}
    spans: list[Row] = [
        {"span": "step", "domain": "gpu_user_annotation", **track},
        {"span": "Context Sync", "domain": "cuda_sync", "thread": None},
        {"span": "mark", "dur_ns": 0},
        {"span": "step"},
    ]
    table = span_table(trace_with([{"start_ns": 0, "dur_ns": 9} | span for span in spans], []))
    assert (rows(table, "instances"), table.on_device, table.marks) == ([("step", 1)], 2, 1)
    assert "Spans on device tracks: 2, left out" in said(table)


def test_a_range_holds_what_its_own_thread_queued() -> None:
    table = span_table(trace_with([{"span": "backward", "start_ns": 0, "dur_ns": 9}], [{"called_ns": 3, "thread": 5}]))
    assert rows(table, "launches") == [("backward", 0)]
    assert "No range is on a thread that queued device work" in said(table)


def test_busy_time_is_a_union_on_each_device() -> None:
    work: list[Row] = [
        {"called_ns": 1, "start_ns": 0, "dur_ns": 10},
        {"called_ns": 2, "start_ns": 5, "dur_ns": 10, "stream": 8},
        {"called_ns": 3, "start_ns": 5, "dur_ns": 10, "device": "gpu:1"},
        {"called_ns": 4, "start_ns": 5, "dur_ns": 10, "device": None},
    ]
    table = span_table(trace_with([{"span": "a", "start_ns": 0, "dur_ns": 9}], work))
    assert rows(table, "summed_ns", "busy_ns", "projected_ns") == [("a", 40, 15 + 10 + 10, 15)]


def test_launches_that_take_no_time_count() -> None:
    table = span_table(trace_with([{"span": "a", "start_ns": 0, "dur_ns": 9}], [{"called_ns": 1, "dur_ns": 0}]))
    assert rows(table, "launches", "busy_ns", "own_launches") == [("a", 1, 0, 1)]


def test_no_ranges_and_no_calls_are_said_with_how_to_record_them() -> None:
    table = span_table(trace_of([{"dur_ns": 5}]))
    assert (table.frame.height, table.rest["summed_ns"].to_list()) == (0, [0, 5])
    assert "record_function" in said(table)
    assert "--trace=cuda,nvtx" in said(table)
    assert "No launch can be tied to a host call" in said(table)
    assert "No ranges" in said(span_table(trace_of()))


@pytest.mark.parametrize("sort", get_args(SpanSortKey))
def test_rows_stand_as_asked(sort: SpanSortKey) -> None:
    spans = [{"span": f"r{i % 4}", "start_ns": 10 * i, "dur_ns": 1 + (i * 5) % 9} for i in range(30)]
    work = [{"called_ns": 5 * i, "start_ns": 20 * i, "dur_ns": 1 + (i * 7) % 50} for i in range(60)]
    table = span_table(trace_with(spans, work), sort=sort)
    column = {
        "name": "span",
        "launches": "launches",
        "instances": "instances",
        "host": "host_total_ns",
        "mean": "host_mean_ns",
    }
    values = table.frame[column.get(sort, f"{sort}_ns")].to_list()
    assert values == sorted(values, reverse=sort != "name")


def test_matching_and_the_top_pick_rows_and_change_none() -> None:
    whole = span_table(A_STEP)
    assert span_table(A_STEP, match="^att").frame.equals(whole.frame[1:])
    assert span_table(A_STEP, top=1).frame.equals(whole.frame[:1])
    assert "1 of 2 ranges shown." in said(span_table(A_STEP, top=1))
    assert span_table(A_STEP, top=1).rest.equals(whole.rest)
    with pytest.raises(InputError, match="match: expected a regular expression"):
        span_table(A_STEP, match="(")


def test_a_rank_is_chosen_and_an_unknown_one_refused() -> None:
    spans = [{"span": f"of {rank}", "rank": rank, "start_ns": 0, "dur_ns": 9} for rank in (0, 1)]
    trace = trace_with(spans, [{"called_ns": 1, "rank": rank, "dur_ns": rank + 1} for rank in (0, 1)])
    assert rows(span_table(trace, rank=1), "launches", "share") == [("of 1", 1, 1.0)]
    assert rows(span_table(trace), "launches") == [("of 1", 1), ("of 0", 1)]
    with pytest.raises(UnknownName, match='unknown rank "2"'):
        span_table(trace, rank=2)


def test_json_is_complete_and_named_as_promised() -> None:
    data = json_of(span_table(A_STEP, top=1))
    assert list(data) == [
        *("schema", "source", "ranges", "launches", "summed_ns", "rows", "in_no_range", "without_call"),
        "spans_on_devices",
        *("marks", "remarks", "losses"),
    ]
    assert data["in_no_range"] == {"launches": 1, "summed_ns": 3, "busy_ns": 3}
    assert data["without_call"] == {"launches": 1, "summed_ns": 2, "busy_ns": 2}
    assert data["rows"] == [
        {
            "span": "step",
            "domain": "NVTX",
            "share": pytest.approx(122 / 127),
            "busy_ns": 92,
            "summed_ns": 122,
            "projected_ns": 287,
            "launches": 5,
            "own_launches": 2,
            "own_summed_ns": 15,
            "instances": 1,
            "host_total_ns": 100,
            "host_mean_ns": 100.0,
        }
    ]


SPANS = st.fixed_dictionaries(
    {
        "span": st.sampled_from(["a", "b", "c"]),
        "domain": st.sampled_from([None, "NVTX"]),
        "thread": st.sampled_from([None, 2]),
        "start_ns": st.integers(0, 30),
        "dur_ns": st.integers(0, 20),
    }
)
WORK = st.fixed_dictionaries(
    {
        "called_ns": st.none() | st.integers(-2, 45),
        "thread": st.sampled_from([None, 2]),
        "device": st.sampled_from([None, "gpu:0"]),
        "start_ns": st.integers(0, 60),
        "dur_ns": st.integers(0, 12),
    }
)


@given(st.lists(SPANS, max_size=12), st.lists(WORK, max_size=12), st.integers(1, 8))
@examples(120)
def test_any_ranges_get_what_looking_at_every_one_gives(spans: list[Row], work: list[Row], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "_CHUNK", chunk)
        table = span_table(trace_with(spans, work))
    own: dict[Any, list[int]] = defaultdict(list)
    held: dict[Any, set[int]] = defaultdict(set)
    extents: dict[Any, int] = defaultdict(int)
    for i, each in enumerate(work):
        around = [(j, span) for j, span in enumerate(spans) if holds(span, each)]
        for _, span in around:
            held[span["span"], span["domain"]].add(i)
        inner = max(around, key=lambda at: (at[1]["start_ns"], -at[1]["dur_ns"], at[0]), default=(0, None))[1]
        own[(inner["span"], inner["domain"]) if inner else each["called_ns"] is None].append(each["dur_ns"])
    for span in spans:
        inside = [each for each in work if holds(span, each)]
        if inside:
            ends = [each["start_ns"] + each["dur_ns"] for each in inside]
            extents[span["span"], span["domain"]] += max(ends) - min(each["start_ns"] for each in inside)
    for row in table.frame.iter_rows(named=True):
        name = row["span"], row["domain"]
        inside = [work[i] for i in held[name]]
        busy = {
            (each["device"], t) for each in inside for t in range(each["start_ns"], each["start_ns"] + each["dur_ns"])
        }
        assert (row["launches"], row["summed_ns"]) == (len(inside), sum(each["dur_ns"] for each in inside))
        assert row["busy_ns"] == len(busy)
        assert row["projected_ns"] == extents[name]
        assert row["own_launches"] == len(own[name])
    assert table.rest["launches"].to_list() == [len(own[False]), len(own[True])]
    shown = table.to_polars()
    assert shown["own_launches"].sum() == len(work) == table.launches
    assert shown["own_summed_ns"].sum() == sum(each["dur_ns"] for each in work) == table.summed_ns
    assert table.frame["instances"].sum() + table.marks == len(spans)


def holds(span: Row, launch: Row) -> bool:
    called_ns = launch["called_ns"]
    if called_ns is None or span["thread"] != launch["thread"]:
        return False
    return bool(0 <= called_ns - span["start_ns"] < span["dur_ns"])


@pytest.mark.parametrize("name", ["h100_qwen1.5-0.5b", "mi300_sglang_qwen3-8b_decode", "rank0_sampled", "cpu_only"])
def test_real_captures_keep_every_launch(name: str, shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / f"{name}.json.gz"
    table = span_table(inferometer.open(path, NEEDED))
    launches = inferometer.open(path).launches.collect()
    shown = table.to_polars()
    assert shown["own_launches"].sum() == launches.height
    assert shown["own_summed_ns"].sum() == launches["dur_ns"].sum()
    assert (shown["busy_ns"] <= shown["summed_ns"]).all()
