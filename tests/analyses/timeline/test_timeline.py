"""The time line against counting nanosecond by nanosecond: exposure, idle time, streams, the strip, windows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.strip import ASCII, BLOCKS, PARTS
from inferometer.analyses.timeline.timeline import Timeline, find_timeline
from inferometer.errors import InputError, UnknownName
from inferometer.reports.views.view import facts_of, remarks_of, sections_of
from inferometer.trace.trace import Trace

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMMUNICATION: dict[str, Any] = {"kernel": NCCL, "stream": 20}
COPY: dict[str, Any] = {"kind": "memcpy", "kernel": "Memcpy HtoD", "stream": 21}
OP = {"op": "whole", "start_ns": 0, "dur_ns": 400}

LAUNCH = st.builds(
    lambda what, device, stream, rank, start, dur: {
        **what,
        "device": device,
        "stream": stream,
        "rank": rank,
        "start_ns": start,
        "dur_ns": dur,
    },
    st.sampled_from([{"kernel": "gemm"}, COMMUNICATION, COPY, {"kind": "memset", "kernel": "Memset"}]),
    st.sampled_from(["gpu:0", "gpu:1", None]),
    st.sampled_from([7, 20, None]),
    st.sampled_from([0, None]),
    st.integers(0, 300),
    st.integers(0, 60),
)


def moments(launches: list[dict[str, Any]], *sorts: str) -> set[int]:
    """Every nanosecond during which work of one of these sorts runs."""
    sort = {"memcpy": "copy", "memset": "copy"}
    return {
        t
        for each in launches
        if sort.get(each.get("kind", "kernel"), "communication" if each["kernel"] == NCCL else "compute") in sorts
        for t in range(each["start_ns"], each["start_ns"] + each["dur_ns"])
    }


def test_each_moment_is_compute_exposed_communication_exposed_copy_or_idle() -> None:
    trace = trace_of(
        [
            {"start_ns": 100, "dur_ns": 100},  # compute until 200
            {**COMMUNICATION, "start_ns": 150, "dur_ns": 100},  # 50 hidden, 50 exposed until 250
            {**COPY, "start_ns": 220, "dur_ns": 60},  # 30 behind communication, 30 exposed until 280
            {"start_ns": 380, "dur_ns": 20},  # after 100 of nothing
        ]
    )
    assert find_timeline(trace).devices.to_dicts() == [
        {
            "rank": None,
            "device": "gpu:0",
            "launches": 4,
            "from_ns": 100,
            "window_ns": 300,
            "busy_share": pytest.approx(200 / 300),
            "busy_ns": 200,
            "idle_ns": 100,
            "compute_busy_ns": 120,
            "communication_busy_ns": 100,
            "exposed_communication_ns": 50,
            "hidden_communication_share": 0.5,
            "copy_busy_ns": 60,
            "exposed_copy_ns": 30,
            "concurrent_ns": 80,
            "summed_ns": 280,
        }
    ]


def test_streams_say_what_mostly_runs_on_them_and_their_longest_gap() -> None:
    trace = trace_of(
        [
            {"start_ns": 0, "dur_ns": 40},
            {"start_ns": 60, "dur_ns": 10},
            {**COPY, "stream": 7, "start_ns": 75, "dur_ns": 25},
            {**COMMUNICATION, "start_ns": 10, "dur_ns": 30},
        ]
    )
    assert find_timeline(trace).streams.drop("rank", "device").to_dicts() == [
        {
            "stream": 7,
            "mostly": "compute",
            "launches": 3,
            "busy_share": 0.75,
            "busy_ns": 75,
            "summed_ns": 75,
            "longest_gap_ns": 20,
        },
        {
            "stream": 20,
            "mostly": "communication",
            "launches": 1,
            "busy_share": 0.3,
            "busy_ns": 30,
            "summed_ns": 30,
            "longest_gap_ns": None,
        },
    ]


@given(st.lists(LAUNCH, min_size=1, max_size=25), st.none() | st.tuples(st.integers(0, 399), st.integers(1, 400)))
@examples(80)
def test_any_launches_are_what_counting_says(launches: list[dict[str, Any]], window: tuple[int, int] | None) -> None:
    if window and window[0] >= window[1]:
        window = (window[1] - 1, window[0] + 1)
    trace = trace_of(launches, ops=[OP])
    found = find_timeline(trace, Selection(between_ns=window), width=7, top=1000)
    for row in found.devices.iter_rows(named=True):
        mine = [each for each in launches if (each["rank"], each["device"]) == (row["rank"], row["device"])]
        first = window[0] if window else min(each["start_ns"] for each in mine)
        last = window[1] if window else max(each["start_ns"] + each["dur_ns"] for each in mine)
        inside = set(range(first, min(last, 400)))
        compute = moments(mine, "compute") & inside
        communication = moments(mine, "communication") & inside
        copies = moments(mine, "copy") & inside
        assert row["window_ns"] == len(inside)
        assert row["compute_busy_ns"] == len(compute)
        assert row["communication_busy_ns"] == len(communication)
        assert row["copy_busy_ns"] == len(copies)
        assert row["exposed_communication_ns"] == len(communication - compute)
        assert row["exposed_copy_ns"] == len(copies - compute - communication)
        assert row["idle_ns"] == len(inside - compute - communication - copies)
        parts = ("compute_busy_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["window_ns"]
        twice = [t for each in mine for t in range(each["start_ns"], each["start_ns"] + each["dur_ns"]) if t in inside]
        assert row["summed_ns"] == len(twice)
        assert row["concurrent_ns"] == sum(twice.count(t) > 1 for t in set(twice))
        place = [pl.col(name).eq_missing(pl.lit(row[name])) for name in ("rank", "device")]
        gaps, causes = found.gaps.filter(place), found.causes.filter(place)
        idle = [t for gap, length in gaps.select("gap_start_ns", "gap_ns").rows() for t in range(gap, gap + length)]
        assert sorted(idle) == sorted(inside - compute - communication - copies)
        assert causes["idle_ns"].sum() == row["idle_ns"]
        streams = found.streams.filter(place)
        assert streams["launches"].sum() == row["launches"]
        assert streams["summed_ns"].sum() == row["summed_ns"]
    check_strip(found, launches)


def check_strip(found: Timeline, launches: list[dict[str, Any]]) -> None:
    """Slices against counting."""
    edges = found.strip.edges_ns
    for lane in found.strip.lanes.iter_rows(named=True):
        mine = [each for each in launches if (each["rank"], each["device"]) == (lane["rank"], lane["device"])]
        mine = [each for each in mine if lane["whole"] or each["stream"] == lane["stream"]]
        compute, communication = moments(mine, "compute"), moments(mine, "communication")
        sets = {
            "compute_ns": compute,
            "exposed_communication_ns": communication - compute,
            "exposed_copy_ns": moments(mine, "copy") - compute - communication,
        }
        for i in range(len(edges) - 1):
            inside = set(range(edges[i], edges[i + 1]))
            assert {part: lane[part][i] for part in PARTS} == {part: len(sets[part] & inside) for part in PARTS}
        assert sum(sum(lane[part]) for part in (*PARTS, "idle_ns")) == edges[-1] - edges[0]


def test_a_window_cuts_what_reaches_into_it() -> None:
    trace = trace_of([{"start_ns": 0, "dur_ns": 100}, {"start_ns": 150, "dur_ns": 100}], ops=[OP])
    found = find_timeline(trace, Selection(between_ns=(50, 200)))
    assert found.devices.select("launches", "from_ns", "window_ns", "busy_ns", "idle_ns").rows() == [
        (2, 50, 150, 100, 50)
    ]
    assert found.strip.edges_ns[0] == 50
    assert dict(facts_of(found))["Only"] == "from 50 ns to 200 ns"


def test_a_window_beyond_the_recording_is_no_idle_time() -> None:
    trace = trace_of([{"start_ns": 0, "dur_ns": 100}], ops=[OP])
    found = find_timeline(trace, Selection(between_ns=(-5, 10**9)))
    assert found.devices.select("from_ns", "window_ns", "idle_ns").rows() == [(0, 400, 300)]


def test_a_device_with_nothing_in_the_window_is_idle_there() -> None:
    trace = trace_of([{"dur_ns": 10}, {"device": "gpu:1", "start_ns": 300, "dur_ns": 10}], ops=[OP])
    found = find_timeline(trace, Selection(between_ns=(100, 200)))
    assert found.devices.select("device", "launches", "idle_ns", "busy_share").rows() == [
        ("gpu:0", 0, 100, 0.0),
        ("gpu:1", 0, 100, 0.0),
    ]
    assert found.streams.is_empty()


def test_one_stream_is_idle_while_others_run() -> None:
    trace = trace_of([{"dur_ns": 10}, {"start_ns": 20, "dur_ns": 10}, {"stream": 8, "dur_ns": 30}])
    found = find_timeline(trace, Selection(stream=7))
    assert found.devices["idle_ns"].to_list() == [10]
    assert dict(facts_of(found))["Only"] == "stream 7, what runs on other streams counts as idle"


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UnknownName, match="gpu:3"):
        find_timeline(trace_of([{}]), Selection(device="3"))
    with pytest.raises(InputError, match="was not read"):
        find_timeline(trace_of([{}], tables={"launches"}))
    with pytest.raises(InputError, match="only 400 ns long"):
        find_timeline(trace_of([{}], ops=[OP]), Selection(between_ns=(401, 500)))


@pytest.mark.parametrize(
    ("trace", "remark"),
    [
        (trace_of(), "No launches in the file."),
        (
            trace_of(totals=[{"section": 0, "kernel": "k", "total_ns": 5}]),
            "No launches: the file holds times already summed by kernel, which have no time line.",
        ),
    ],
)
def test_without_launches_there_is_no_time_line(trace: Trace, remark: str) -> None:
    found = find_timeline(trace)
    assert list(remarks_of(found)) == [remark]
    assert [section.title for section in sections_of(found)] == ["Devices"]
    data = found.as_json()
    assert (data["devices"], data["origin_ns"], data["strip"]) == ([], 0, {"edges_ns": [], "lanes": []})


def test_a_selection_that_is_empty_is_told_from_a_trace_that_is() -> None:
    trace = trace_of([{"stream": 7}, {"device": "gpu:1", "stream": 8}])
    assert list(remarks_of(find_timeline(trace, Selection(device="0", stream=8)))) == [
        "No device work in the selection."
    ]


@pytest.mark.parametrize("launch", [{"dur_ns": 0}, {"dur_ns": 1}, {"device": None, "stream": None}])
def test_the_smallest_traces_have_a_time_line(launch: dict[str, Any]) -> None:
    found = find_timeline(trace_of([launch]))
    assert found.devices["idle_ns"].to_list() == [0]
    assert list(remarks_of(found)) == ["No device is idle for more than 1 % of its window."]
    msgspec.json.encode(found.as_json())


def test_json_holds_everything_exactly() -> None:
    trace = trace_of([{"start_ns": 100, "dur_ns": 50}, {"start_ns": 250, "dur_ns": 50, "rank": None}], ops=[OP])
    found = find_timeline(trace, width=4)
    data = msgspec.json.decode(msgspec.json.encode(found.as_json()))
    assert list(data) == [
        *("source", "origin_ns", "launch_gap_limit_ns", "devices", "streams", "idle_causes", "gap_count"),
        *("gaps", "ranks", "messages", "compute_imbalance", "collectives", "strip", "remarks", "losses"),
    ]
    assert (data["source"], data["origin_ns"], data["losses"]["entries"]) == ("by hand", 0, [])
    assert [(row["stream"], row["busy_ns"], row["longest_gap_ns"]) for row in data["streams"]] == [(7, 100, 100)]
    assert [(row["cause"], row["idle_ns"], row["count"]) for row in data["idle_causes"]] == [("unknown", 100, 1)]
    assert (data["messages"], data["collectives"]) == ([], [])
    assert data["remarks"] == [
        (
            "gpu:0 is idle 50.0 % of its window (100 ns of 200 ns). "
            "For 100.0 % of that the call for the next work isn't in the file."
        )
    ]
    assert [gap["at_ns"] for gap in data["gaps"]] == [150]
    assert data["strip"] == {
        "edges_ns": [100, 150, 200, 250, 300],
        "lanes": [
            {
                "rank": None,
                "device": "gpu:0",
                "stream": None,
                "whole": True,
                "compute_ns": [50, 0, 0, 50],
                "exposed_communication_ns": [0, 0, 0, 0],
                "exposed_copy_ns": [0, 0, 0, 0],
                "idle_ns": [0, 50, 50, 0],
            }
        ],
    }


def test_json_tells_the_limit_of_launch_gaps_and_the_imbalance_of_compute() -> None:
    """The largest compute time over the mean, minus 1: 300 of 200."""
    ranks = [{"rank": rank, "device": f"gpu:{rank}", "dur_ns": dur_ns} for rank, dur_ns in ((0, 300), (1, 100))]
    data = find_timeline(trace_of(ranks)).as_json()
    assert (data["launch_gap_limit_ns"], data["compute_imbalance"]) == (5_000, 0.5)
    assert [(row["rank"], row["compute_busy_ns"], row["against_mean"]) for row in data["ranks"]] == [
        (0, 300, 0.5),
        (1, 100, -0.5),
    ]
    alone = find_timeline(trace_of([{"dur_ns": 100}])).as_json()
    assert alone["compute_imbalance"] is None


def test_the_longest_gaps_come_first_and_equal_ones_in_time() -> None:
    launches = [{"start_ns": start, "dur_ns": 10} for start in (100, 150, 190, 280, 320)]  # idle 40, 30, 80, 30
    called = {"api": "a", "start_ns": 215, "dur_ns": 15, "correlation_id": 5}
    trace = trace_of([each | {"correlation_id": i + 2} for i, each in enumerate(launches)], calls=[called], ops=[OP])
    found = find_timeline(trace, top=3).as_json()["gaps"]
    assert [(gap["at_ns"], gap["gap_ns"], gap["called_after_ns"], gap["call_ns"]) for gap in found] == [
        (200, 80, 15, 15),
        (110, 40, None, None),
        (160, 30, None, None),
    ]


def test_equal_gaps_of_several_devices_come_device_by_device_ten_of_them_at_most() -> None:
    launches = [{"device": f"gpu:{i}", "start_ns": start} for start in range(0, 40, 10) for i in (1, 0)]
    trace = trace_of(launches)
    assert find_timeline(trace, top=4).gaps.select("device", "at_ns").rows() == [
        *(("gpu:0", at_ns) for at_ns in (1, 11, 21)),
        ("gpu:1", 1),
    ]
    assert find_timeline(trace_of([{"start_ns": start} for start in range(0, 120, 10)])).gaps.height == 10


def test_a_window_is_reported_from_the_trace_s_earliest_time() -> None:
    trace = trace_of([{"start_ns": 1_050, "dur_ns": 100}], ops=[OP | {"start_ns": 1_000}])
    found = find_timeline(trace, Selection(between_ns=(100, 300)))
    assert facts_of(found)[1] == ("Only", "from 100 ns to 300 ns")


def test_what_was_selected_is_said() -> None:
    trace = trace_of([{"rank": 2, "dur_ns": 400}], ops=[OP | {"rank": 2}])
    assert list(facts_of(find_timeline(trace))) == [("File", "by hand")]
    chosen = Selection(device="gpu:0", stream=7, rank=2, between_ns=(100, 300))
    assert facts_of(find_timeline(trace, chosen))[1] == (
        "Only",
        "device gpu:0, stream 7, rank 2, from 100 ns to 300 ns, what runs on other streams counts as idle",
    )
    assert facts_of(find_timeline(trace, Selection(rank=2)))[1] == ("Only", "rank 2")


def drawn(launches: list[dict[str, Any]], width: int, glyphs: Any = BLOCKS) -> list[str]:
    return find_timeline(trace_of(launches), width=width).strip.drawn(glyphs)


def test_cells_show_the_sort_of_work_and_how_busy_it_is() -> None:
    launches = [
        {"start_ns": 0, "dur_ns": 80},
        {"start_ns": 80, "dur_ns": 1},
        {**COMMUNICATION, "stream": 7, "start_ns": 160, "dur_ns": 60},
        {**COMMUNICATION, "stream": 7, "start_ns": 240, "dur_ns": 20},
        {**COPY, "stream": 7, "start_ns": 320, "dur_ns": 80},
        {**COPY, "stream": 7, "start_ns": 420, "dur_ns": 10},
        {"start_ns": 559, "dur_ns": 1},
    ]
    assert drawn(launches, 7) == ["█▁XxMm▁"]
    assert drawn(launches, 7, ASCII) == ["#-XxMm-"]
    assert drawn([{"dur_ns": 10}, {"start_ns": 90, "dur_ns": 10}], 10) == ["█········█"]


def test_names_are_readable_in_tables_and_as_recorded_in_json() -> None:
    launches: list[dict[str, Any]] = [
        {"dur_ns": 1},
        {"kernel": "_ZN2at6native11fill_kernelEv", "start_ns": 9, "correlation_id": 5},
    ]
    calls = [{"api": "cudaLaunchKernel_v7000", "start_ns": 5, "dur_ns": 1, "correlation_id": 5}]
    found = find_timeline(trace_of(launches, calls=calls))
    (shown,) = (section for section in sections_of(found) if section.title == "Longest gaps")
    assert shown.frame.select("kernel", "api").rows() == [("at::native::fill_kernel()", "cudaLaunchKernel")]
    (gap,) = found.as_json()["gaps"]
    assert (gap["kernel"], gap["api"]) == ("_ZN2at6native11fill_kernelEv", "cudaLaunchKernel_v7000")


def test_hidden_work_shows_on_its_own_stream_only() -> None:
    launches = [{"dur_ns": 40}, {**COMMUNICATION, "dur_ns": 40}]
    found = find_timeline(trace_of(launches), width=4)
    assert found.strip.lanes.select("whole", "stream").rows() == [(True, None), (False, 7), (False, 20)]
    assert found.strip.drawn(BLOCKS) == ["████", "████", "XXXX"]


def test_more_streams_than_a_screen_holds_are_not_drawn() -> None:
    found = find_timeline(trace_of([{"stream": stream, "dur_ns": 10} for stream in range(40)]), width=4)
    assert found.strip.lanes.height == 41
    (section,) = (section for section in sections_of(found) if section.title == "Time line")
    assert section.frame.select("stream", "cells").rows() == [("all", "████")]
    assert section.notes[1] == "Streams are too many to draw: choose a device, or --json."


def test_a_strip_has_no_more_cells_than_nanoseconds() -> None:
    assert drawn([{"dur_ns": 3}], 60) == ["███"]
    assert drawn([{"dur_ns": 0}], 60) == []


@pytest.mark.parametrize("width", [1, 5, 12, 20, 40, 60, 200])
def test_the_axis_is_as_wide_as_the_cells_where_its_times_fit(width: int) -> None:
    strip = find_timeline(trace_of([{"start_ns": 7_000, "dur_ns": 12_345_678}]), width=width).strip
    axis = strip.axis(0)
    assert axis.startswith("7.000 μs")
    assert axis.endswith("12.353 ms")
    assert len(axis) == max(width, 18)
    assert ("'6.180 ms" in axis) is (width >= 40)
    if width >= 40:
        assert axis.index("'") == width // 2


def test_remarks_put_idle_time_first_then_exposure() -> None:
    launches = [
        {"start_ns": 0, "dur_ns": 1_000, "process": 1, "correlation_id": 1},
        {**COMMUNICATION, "start_ns": 1_000, "dur_ns": 500, "process": 1, "correlation_id": 2},
        {"start_ns": 9_500, "dur_ns": 500, "process": 1, "correlation_id": 3},
    ]
    calls = [
        {"api": "cudaLaunchKernel", "process": 1, "thread": 1, "start_ns": start, "dur_ns": 50, "correlation_id": i + 1}
        for i, start in enumerate((-100, -50, 9_000))
    ]
    assert list(remarks_of(find_timeline(trace_of(launches, calls=calls)))) == [
        (
            "gpu:0 is idle 80.0 % of its window (8.000 μs of 10.000 μs). For 100.0 % of that the host was late: "
            "its call for the next work returned only after the device had gone idle."
        ),
        "Communication is exposed for 500 ns on gpu:0: 5.0 % of its window, 100.0 % of its communication.",
    ]


def test_copies_that_nothing_hides_are_remarked() -> None:
    (_, remark) = remarks_of(find_timeline(trace_of([{"dur_ns": 90}, {**COPY, "start_ns": 80, "dur_ns": 20}])))
    assert remark == "Copies are exposed for 10 ns on gpu:0: 10.0 % of its window, 50.0 % of its copies."


def test_of_many_idle_devices_the_idlest_are_named() -> None:
    launches = [
        {"device": f"gpu:{i}", "start_ns": start, "dur_ns": dur}
        for i in range(5)
        for start, dur in ((0, 50 - i), (99, 1))
    ]
    first, *_, last = remarks_of(find_timeline(trace_of(launches)))
    assert first.startswith("gpu:4 is idle 53.0 % of its window (53 ns of 100 ns). For 100.0 % of that the call")
    assert "2 more: idle for at least 49.0 % of their windows." in remarks_of(find_timeline(trace_of(launches)))
    assert last.startswith("Compute is uneven: gpu:0 computes for 51 ns")


def test_the_sample_is_idle_since_the_host_waits_and_then_works(golden: Callable[[str, str], None]) -> None:
    sample = Path(__file__).parents[3] / "samples" / "decode.json.gz"
    found = replace(find_timeline(inferometer.open(sample), top=4), source="samples/decode.json.gz")
    golden("timeline.md", inferometer.render_markdown(found))


@pytest.mark.parametrize("name", ["a100_simple_add", "h100_qwen1.5-0.5b", "mi300_sglang_qwen3-8b_decode", "cpu_only"])
def test_time_is_conserved_in_real_captures(name: str, shared_data: Path) -> None:
    found = find_timeline(inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz"), width=101)
    for row in found.devices.iter_rows(named=True):
        parts = ("compute_busy_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["window_ns"]
    assert found.causes["idle_ns"].sum() == found.devices["idle_ns"].sum()
    for lane in found.strip.lanes.iter_rows(named=True):
        assert (
            sum(sum(lane[part]) for part in (*PARTS, "idle_ns")) == found.strip.edges_ns[-1] - found.strip.edges_ns[0]
        )
