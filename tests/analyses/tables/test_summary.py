"""The first look: where each device's time went, what the trace is, and that the parts make the whole."""

from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.hardware.traced_names import name_devices
from inferometer.analyses.tables.summary import DEVICE_COLUMNS, device_times, summarize
from inferometer.errors import InputError
from inferometer.reports.views.view import facts_of, remarks_of, sections_of
from inferometer.trace.facts import Device, Facts
from inferometer.trace.tables import TABLES

LAUNCH = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["kernel", "memcpy", "memset"]),
        "device": st.sampled_from(["gpu:0", "gpu:1", None]),
        "rank": st.sampled_from([0, None]),
        "start_ns": st.integers(0, 300),
        "dur_ns": st.integers(0, 60),
    }
)


def test_overlap_idle_and_busy_of_a_device() -> None:
    trace = trace_of(
        [
            {"start_ns": 100, "dur_ns": 50},
            {"start_ns": 120, "dur_ns": 50, "stream": 8},
            {"start_ns": 160, "dur_ns": 30, "kind": "memcpy"},
            {"start_ns": 290, "dur_ns": 10, "kind": "memset"},
        ],
        facts={"devices": (Device("gpu:0", "H100"),)},
    )
    assert device_times(trace).to_dicts() == [
        {
            "device": "gpu:0",
            "name": "H100",
            "launches": 4,
            "window_ns": 200,
            "busy_share": 0.5,
            "busy_ns": 100,
            "idle_ns": 100,
            "kernel_busy_ns": 70,
            "copy_busy_ns": 40,
            "overlap_ns": 10,
            "kernel_summed_ns": 100,
        }
    ]


def test_devices_and_ranks_have_rows_of_their_own() -> None:
    places = [("gpu:0", 0), ("gpu:0", 1), ("gpu:1", 1)]
    trace = trace_of([{"device": device, "rank": rank, "dur_ns": 5} for device, rank in places])
    assert device_times(trace).select("rank", "device", "busy_ns").rows() == [
        (0, "gpu:0", 5),
        (1, "gpu:0", 5),
        (1, "gpu:1", 5),
    ]
    assert "rank" not in device_times(trace_of([{}])).columns


def test_ranks_may_have_different_devices_of_one_number() -> None:
    devices = (Device("gpu:0", "H100", rank=0), Device("gpu:0", "A100", rank=1))
    summary = summarize(trace_of([{"rank": 0}, {"rank": 1}], facts={"devices": devices}))
    assert summary.devices.select("rank", "name").rows() == [(0, "H100"), (1, "A100")]
    assert dict(facts_of(summary))["Device"] == "H100 (gpu:0), A100 (gpu:0)"


def test_without_launches_there_are_no_devices() -> None:
    assert device_times(trace_of()).height == 0
    summary = summarize(trace_of())
    assert (summary.start_ns, summary.duration_ns) == (None, None)
    assert dict(facts_of(summary))["Rows"] == "none"


def test_a_window_of_no_length_has_no_share() -> None:
    assert device_times(trace_of([{"dur_ns": 0}])).select("window_ns", "busy_ns", "busy_share").rows() == [(0, 0, None)]


@given(st.lists(LAUNCH, max_size=30))
@examples(80)
def test_the_parts_make_the_whole(launches: list[dict[str, Any]]) -> None:
    times = device_times(trace_of(launches))
    assert times["launches"].sum() == len(launches)
    for row in times.iter_rows(named=True):
        mine = [each for each in launches if each["device"] == row["device"] and each["rank"] == row.get("rank")]
        open_ns = {
            kind: {
                t
                for each in mine
                if (each["kind"] == "kernel") == kind
                for t in range(each["start_ns"], each["start_ns"] + each["dur_ns"])
            }
            for kind in (True, False)
        }
        assert row["kernel_busy_ns"] == len(open_ns[True])
        assert row["copy_busy_ns"] == len(open_ns[False])
        assert row["overlap_ns"] == len(open_ns[True] & open_ns[False])
        assert row["busy_ns"] == len(open_ns[True] | open_ns[False])
        assert row["busy_ns"] + row["idle_ns"] == row["window_ns"]
        assert row["kernel_busy_ns"] + row["copy_busy_ns"] - row["overlap_ns"] == row["busy_ns"]
        assert row["kernel_busy_ns"] <= row["kernel_summed_ns"]
        assert row["busy_share"] is None or 0 <= row["busy_share"] <= 1


def test_the_summary_says_what_the_trace_is() -> None:
    trace = trace_of(
        [{"start_ns": 1_000, "dur_ns": 500}],
        ops=[{"op": "aten::mm", "start_ns": 0, "dur_ns": 100}],
        facts={
            "tool": "PyTorch profiler (Kineto)",
            "devices": (Device("gpu:0", "H100"), Device("gpu:1", "H100")),
            "ranks": (3,),
            "world_size": 8,
            "hosts": ("node1",),
        },
    )
    summary = summarize(trace)
    assert list(facts_of(summary)) == [
        ("File", "by hand"),
        ("Tool", "PyTorch profiler (Kineto)"),
        ("Device", "H100 (gpu:0; 1 of 2)"),
        ("Rank", "3 of 8"),
        ("Host", "node1"),
        ("Duration", "1.500 μs"),
        ("Rows", "1 launch, 1 op"),
    ]
    assert (summary.start_ns, summary.duration_ns) == (0, 1_500)
    assert [section.title for section in sections_of(summary)] == ["Devices", "Top kernels"]


@pytest.mark.parametrize(
    ("devices", "used", "names"),
    [
        ([Device("gpu:0", "A")], ["gpu:0"], {"gpu:0": "A"}),
        ([Device("gpu:0", "MI300X")], ["gpu:9"], {"gpu:9": "MI300X"}),
        ([Device("gpu:0", "A"), Device("gpu:1", "B")], ["gpu:9"], {"gpu:0": "A", "gpu:1": "B"}),
        ([Device("gpu:0", "A")], ["gpu:0", "gpu:1"], {"gpu:0": "A"}),
        ([Device("gpu:0", "A")], [None], {"gpu:0": "A"}),
        ([Device("gpu:0")], ["gpu:0"], {"gpu:0": None}),
        ([], ["gpu:0"], {}),
    ],
)
def test_a_lone_device_is_named_whatever_its_number(
    devices: list[Device], used: list[str | None], names: dict[str, str | None]
) -> None:
    assert name_devices(Facts("f", "s", devices=tuple(devices)), used) == names


@pytest.mark.parametrize("devices", [(), (Device("gpu:0"),), (Device("gpu:5", "H100"), Device("gpu:6", "H100"))])
def test_devices_without_a_name_are_summarized_too(devices: tuple[Device, ...]) -> None:
    summary = summarize(trace_of([{}, {"device": None}], facts={"devices": devices}))
    assert summary.devices["name"].to_list() == [None, None]
    assert dict(facts_of(summary))["Device"].startswith("unnamed (no number, gpu:0")


def test_json_holds_everything_exactly() -> None:
    trace = trace_of([{"kernel": f"k{i}", "start_ns": 10 * i, "dur_ns": i} for i in range(20)])
    summary = summarize(trace, top=3)
    data = msgspec.json.decode(msgspec.json.encode(summary.as_json()))
    assert list(data) == [
        *(
            "source",
            "facts",
            "start_ns",
            "duration_ns",
            "rows",
            "devices",
            "total_ns",
            "basis",
            "section",
            "top_kernels",
            "other_sections",
            "tests",
            "log",
            "remarks",
            "losses",
        ),
    ]
    assert data["total_ns"] == sum(range(20))
    assert [row["kernel"] for row in data["top_kernels"]] == ["k19", "k18", "k17"]
    assert set(data["devices"][0]) == {*DEVICE_COLUMNS, "kernel_summed_ns"}
    assert data["rows"] == dict.fromkeys(TABLES, 0) | {"launches": 20}
    assert (data["basis"], data["section"], data["other_sections"], data["log"]) == ("launches", None, [], [])
    assert data["remarks"] == list(remarks_of(summary))


def test_a_summary_needs_all_tables() -> None:
    with pytest.raises(InputError, match="was not read"):
        summarize(trace_of([{}], tables={"launches"}))


def test_results_convert_to_frames() -> None:
    summary = summarize(trace_of([{}]))
    assert summary.to_polars().equals(summary.devices)
    pandas = pytest.importorskip("pandas", reason="needs the extra `notebook`")
    assert isinstance(summary.to_pandas(), pandas.DataFrame)
    assert isinstance(summary.kernels.to_polars(), pl.DataFrame)
    assert summary._repr_html_().startswith('<div class="inferometer">')


def test_printed_sums_are_summed_up_without_a_word_of_devices() -> None:
    trace = trace_of(
        totals=[
            {"section": 0, "kernel": "gemm", "count": 192, "total_ns": 900},
            {"section": 0, "kernel": "norm", "count": 3, "total_ns": 100},
            {"section": 1, "kernel": "clamp", "total_ns": 7},
        ],
        call_paths=[
            {"path_id": 0, "name": "main", "frame": "a.py:1 main", "depth": 0, "rank": 2},
            {"path_id": 1, "parent_id": 0, "name": "step", "frame": "a.py:9 step", "depth": 1, "rank": 2},
        ],
        log=[
            {"line": 1, "kind": "remark", "text": "gemm", "fields": '{"kernels":["gemm"]}'},
            {"line": 2, "kind": "remark", "text": "more"},
        ],
        facts={"framework": "PyTorch", "notes": ("Section 9 is a header without rows.",)},
    )
    summary = summarize(trace, top=1)
    assert dict(facts_of(summary))["Rows"] == "2 call_paths, 3 totals, 2 log"
    assert [(section.title, section.frame.height) for section in sections_of(summary)] == [
        ("Top kernels, section 0", 1),
        ("Kernels, section 1", 1),
    ]
    assert remarks_of(summary) == (
        "gemm takes 90.0 % of the kernel time in 192 launches.",
        "These are sums as the source printed them: it holds no single launches.",
        (
            "The source has 2 tables. They may count the same time, so they are never added up, "
            "and a share is of its own table."
        ),
        "A call stack of rank 2, 2 deep, ends at a.py:9 step.",
        "One line of text names kernels of the tables: --json has the lines with the names in full, under log.",
        "Section 9 is a header without rows.",
    )
    data = msgspec.json.decode(msgspec.json.encode(summary.as_json()))
    assert (data["basis"], data["section"], [each["section"] for each in data["other_sections"]]) == ("totals", 0, [1])
    assert data["log"] == [
        {"line": 1, "kind": "remark", "text": "gemm", "fields": '{"kernels":["gemm"]}'},
        {"line": 2, "kind": "remark", "text": "more", "fields": None},
    ]


@pytest.mark.parametrize("row", [{"total_ns": 5}, {"count": 5}, {}])
def test_printed_sums_with_gaps_are_summed_up(row: dict[str, Any]) -> None:
    summary = summarize(trace_of(totals=[{"section": 0, "kernel": name, **row} for name in "ab"]))
    assert sections_of(summary)[0].title == "Top kernels"
    assert remarks_of(summary)
    assert summary._repr_html_()


def test_many_call_stacks_are_counted() -> None:
    paths = [{"path_id": i, "name": f"f{i}", "depth": 0} for i in range(9)]
    remarks = remarks_of(summarize(trace_of(totals=[{"section": 0, "kernel": "k"}], call_paths=paths)))
    assert "A call stack, 1 deep, ends at f0." in remarks
    assert "6 more call stacks are in the table call_paths." in remarks
