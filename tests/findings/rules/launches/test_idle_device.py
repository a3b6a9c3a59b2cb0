"""An idle device is laid at the door of what kept its next work waiting, and the advice fits that."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import (
    HOST,
    called,
    findings,
    frame,
    generated,
    launched,
    marked,
    only,
    op,
    said,
    trace_with,
)
from tests.traces import trace_of

RULE = "idle_device"
# Each millisecond 500 μs of work, then the host computes for 490 μs before it launches again.
LATE = [launched(1000 * i, 1000 * i + 5, 500) for i in range(10)]
FRAMES = [
    frame("engine/loop.py(1): run", -10, 20_000),
    *(frame("engine/penalties.py(31): rescore", 1000 * i + 20, 1000 * i + 995) for i in range(10)),
]


def test_the_code_that_ran_meanwhile_is_named_with_its_time_a_step() -> None:
    trace = trace_with(LATE, frames=FRAMES, spans=marked((1000 * i - 5 for i in range(10)), 990))
    finding = only(trace, RULE)
    assert finding.severity == "high"
    assert finding.title == (
        "gpu:0 waits 47.4 % of its time for the host, which is in engine/penalties.py(31): rescore"
    )
    assert finding.size_ns == finding.idle_ns == 9 * 500_000
    assert finding.share == pytest.approx(4.5 / 9.5)
    assert finding.parts == ("idle.host_late",)
    assert finding.evidence[0] == (
        "Idle for 4.500 ms of 9.500 ms in 9 gaps, the longest 500.000 μs, 450.000 μs per step over 10 steps, because "
        "the call for the next work returned only after the device had gone idle."
    )
    assert finding.evidence[1] == (
        "Of these 4.500 ms, the launching thread spent 4.464 ms (99.2 %) in Python outside of ops."
    )
    assert finding.evidence[2] == (
        "For 4.410 ms of these 4.500 ms (98.0 %) it was in engine/loop.py(1): run > engine/penalties.py(31): rescore."
    )
    assert finding.next.startswith("Queue the next work before engine/penalties.py(31): rescore")


def test_without_frames_what_it_launched_next_is_named_and_the_next_step_is_to_record_them() -> None:
    ops = [op("aten::mm", 1000 * i - 1, 1000 * i + 6) for i in range(10)]
    finding = only(trace_with(LATE, ops=ops), RULE)
    assert finding.title.endswith("for the host, mostly before it launches aten::mm")
    assert "with_stack=True" in finding.next


def test_a_frame_that_launches_the_work_itself_is_not_told_to_come_later() -> None:
    finding = only(trace_with(LATE, frames=FRAMES[:1]), RULE)
    assert "which is in" not in finding.title
    assert finding.next.startswith("See what engine/loop.py(1): run does between its launches: inferometer tree.")
    assert "CUDA graph" in finding.next


@pytest.mark.parametrize(
    ("api", "at_us", "title", "step"),
    [
        ("cudaMemcpyAsync", (510, 990), "which is mostly in cudaMemcpyAsync", "pinned memory"),
        (
            "cudaDeviceSynchronize",
            (510, 990),
            "which is mostly in cudaDeviceSynchronize",
            "cudaDeviceSynchronize waits for",
        ),
        ("cudaMalloc", (510, 990), "which is mostly in cudaMalloc", "Keep the memory"),
    ],
)
def test_a_call_that_holds_the_host_is_named_and_the_advice_fits(
    api: str, at_us: tuple[float, float], title: str, step: str
) -> None:
    rows = [launched(1000 * i, 1000 * i + 5, 500) for i in range(12)]
    calls = [called(api, 1000 * i + at_us[0], 1000 * i + at_us[1]) for i in range(12)]
    finding = only(trace_with(rows, calls=calls), RULE)
    assert title in finding.title
    assert f"{api} 5.280 ms in 11 calls" in said(finding)
    assert step in finding.next


def test_what_is_slow_only_at_the_first_call_is_a_warm_up() -> None:
    warm = [launched(9_020 + 9 * i, 9_025 + 9 * i, 10) for i in range(9)]
    rows = [launched(0, 5, 10), launched(9_000, 9_005, 10), *warm]
    slow = [called("cudaFree", 100, 5_100), called("cudaStreamCreate", 5_200, 8_200)]
    finding = only(trace_with(rows, calls=slow), RULE)
    assert finding.title.endswith("for the host, which is mostly in slow calls (cudaFree, …)")
    assert (
        "spent 8.000 ms (88.9 %) in calls of 1 ms or longer that neither wait nor copy: cudaFree 5.000 ms in 1 call, "
        "cudaStreamCreate 3.000 ms in 1 call"
    ) in said(finding)
    assert finding.next.startswith("Warm up before the profiler starts")


def test_a_compiler_is_a_warm_up_too() -> None:
    compiling = [
        frame("torch/_inductor/compile_fx.py(9): compile_fx_inner", 1000 * i + 20, 1000 * i + 990) for i in range(10)
    ]
    finding = only(trace_with(LATE, frames=compiling), RULE)
    assert finding.title.endswith("which is mostly in compilers and tuners")
    assert finding.next.startswith("Warm up")


def test_a_capture_is_no_run() -> None:
    capture = [called("hipStreamBeginCapture", 1520, 1522), called("hipStreamEndCapture", 4400, 4402)]
    finding = only(trace_with([*LATE[:2], *LATE[5:6]], calls=capture), RULE)
    assert finding.title.endswith("for the host, which captures a graph")
    assert "spent 2.882 ms (72.0 %) capturing a graph" in said(finding)
    assert "--capture" in finding.next


def test_work_that_was_queued_and_does_not_begin_is_a_finding_of_its_own() -> None:
    rows = [launched(0, 5, 100), launched(10, 1_105, 100, kernel="void waits()"), launched(20, 1_205, 100)]
    block = called("cudaDeviceSynchronize", 50, 1_100)
    finding = only(trace_with(rows, calls=[block]), RULE)
    assert finding.title == (
        "gpu:0 idles 76.9 % of its time with work queued that does not begin, while the host is in "
        "cudaDeviceSynchronize"
    )
    assert finding.evidence[0] == "Work had been queued and did not begin for 1.000 ms of 1.300 ms in 1 gap."
    assert finding.evidence[1] == "The most time is lost before waits (1.000 ms, 1 time)."
    assert finding.evidence[2] == (
        "For 995.000 μs of that (99.5 %) the host was in cudaDeviceSynchronize (1 call), which waited for the device, "
        "too."
    )
    assert finding.parts == ("idle.dependency",)
    assert finding.next.startswith("One gap is most of it: see what stands around it (inferometer timeline")


def test_a_long_call_that_is_no_wait_is_something_to_look_at() -> None:
    rows = [launched(0, 5, 100), launched(10, 1_105, 100, kernel="void waits()"), launched(20, 1_205, 100)]
    finding = only(trace_with(rows, calls=[called("cudaMallocAsync", 50, 1_100)]), RULE)
    assert "the host was in cudaMallocAsync (1 call)." in said(finding)
    assert "and what cudaMallocAsync does there" in finding.next


def test_the_usual_pauses_between_launches_are_told_apart() -> None:
    rows = [launched(0.1 * i, 10 + 13 * i, 10, call_us=0.1) for i in range(20)]  # 3 μs between queued neighbours
    finding = only(trace_with([*rows, launched(3, 320, 10)]), RULE)
    assert finding.evidence[0] == (
        "Work had been queued and did not begin for 110.000 μs of 320.000 μs in 20 gaps, the longest 53.000 μs. "
        "57.000 μs of it are 19 pauses of up to 5.000 μs."
    )


def test_pauses_between_queued_launches_are_called_so() -> None:
    finding = only(trace_with([launched(i, 1_000 + 10 * i, 6) for i in range(40)]), RULE)
    assert finding.title == "gpu:0 pauses for 39.4 % of its time between launches that were queued in time"
    assert finding.evidence[0] == (
        "It is idle for 156.000 μs of 396.000 μs in 39 gaps, the longest 4.000 μs. "
        "156.000 μs of it are 39 pauses of up to 5.000 μs."
    )
    assert finding.evidence[1].startswith("The median pause is 4.000 μs")
    assert "fewer launches" in finding.next


def test_gaps_between_what_one_call_launched_are_named() -> None:
    rows = [launched(0, 10 + 100 * k, 50, api="cudaGraphLaunch", correlation_id=1, graph_node_id=k) for k in range(10)]
    trace = trace_with([{**row, "call": {**row["call"], "correlation_id": 1}} for row in rows])
    finding = only(trace, RULE)
    assert finding.title == "gpu:0 idles 47.4 % of its time between the nodes of graph replays"
    assert finding.size_ns == 9 * 50_000


def test_several_small_reasons_are_told_together() -> None:
    late = [launched(1000 * i, 1000 * i + 5, 900) for i in range(10)]  # 95 μs late, of 1 ms
    held = launched(8_100, 10_500, 900)  # and once a queued kernel is late by 600 μs
    rows = [*late, held]
    finding = only(trace_with(rows), RULE)
    assert finding.title == "gpu:0 is idle 13.1 % of its time, for several reasons"
    assert "the host was late 900.000 μs; queued work did not begin 595.000 μs" in finding.evidence[0]
    assert finding.idle_ns == finding.size_ns


def test_without_calls_the_finding_says_what_to_record() -> None:
    finding = only(trace_of([{"start_ns": 1_000_000 * i, "dur_ns": 500_000} for i in range(9)]), RULE)
    assert finding.title == "gpu:0 is idle 47.1 % of its time, and the file doesn't tell why"
    assert finding.evidence[0].endswith("in 8 gaps, the longest 500.000 μs: the file has no calls of the host.")
    assert "ProfilerActivity.CPU" in finding.next


def test_other_devices_that_are_as_idle_are_counted_with_it() -> None:
    rows = [{**row, "work": row["work"] | {"device": f"gpu:{n}"}} for n in range(3) for row in LATE]
    finding = only(trace_with(rows), RULE)
    assert finding.evidence[-1] == "2 other devices are idle like this for 47.4 % to 47.4 % of their windows."
    assert finding.idle_ns == 3 * 9 * 500_000


def test_short_gaps_are_the_rhythm_of_launching() -> None:
    assert not findings(trace_with([launched(40 * i, 40 * i + 5, 3) for i in range(100)]), RULE)


def test_a_device_that_is_kept_busy_waits_for_nobody() -> None:
    ahead = [launched(i, 1_000 + 500 * i, 499) for i in range(20)]
    assert not findings(trace_with(ahead, frames=FRAMES), RULE)


def test_calls_of_another_process_leave_the_reason_unknown() -> None:
    rows: list[dict[str, Any]] = [{**row, "call": {**row["call"], "process": 9}} for row in LATE]
    assert "the file doesn't tell why" in only(trace_with(rows), RULE).title
    assert HOST["process"] != 9


def test_the_planted_wait_for_python_is_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="host-late"), RULE)
    assert finding.severity in ("medium", "high")
    assert "serving/penalties.py" in finding.title
    assert finding.size_ns is not None
    assert finding.size_ns > 5 * 2_900_000


def test_a_run_of_graphs_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=32), RULE)


def test_work_below_one_op_is_one_place_whatever_the_op_calls() -> None:
    rows = [launched(1000 * i, 1000 * i + 5, 500) for i in range(10)]
    ops = [op("aten::index_put_", 1000 * i - 1, 1000 * i + 10) for i in range(10)]
    inner = [op(f"aten::{'copy_' if i % 2 else 'sort'}", 1000 * i - 0.5, 1000 * i + 9) for i in range(10)]
    finding = only(trace_with(rows, ops=[*ops, *inner]), RULE)
    assert "The work that ended the gaps is launched by aten::index_put_ (4.500 ms)." in finding.evidence


def test_steps_that_the_recording_was_asked_to_leave_out_are_no_fault() -> None:
    rows = [launched(1000 * i, 1000 * i + 5, 500, device="cpu") for i in range(10)]
    left_out = {"metric": "ops_gap", "process": 1, "value": 480_000.0, "unit": "ns"}
    cuts = [{**left_out, "time_ns": (1000 * i + 510) * 1000} for i in range(9)]
    trace = trace_with(rows, frames=FRAMES, counters=cuts, facts={"format": "recording"})
    recorder = next(each for each in findings(trace, RULE) if each.parts == ("idle.recorder",))
    assert recorder.severity == "low"
    assert recorder.title == "cpu wasn't observed for 45.5 % of the time: that is the recorder's doing"


def test_a_recording_that_was_cut_is_told_as_the_recorder_s_doing_and_not_the_host_s() -> None:
    cut = {"metric": "profiler_gap", "process": 1, "value": 380_000.0, "unit": "ns"}
    cuts = [{**cut, "time_ns": (1000 * i + 600) * 1000} for i in range(1, 9)]
    trace = trace_with(LATE, frames=FRAMES, counters=cuts, facts={"format": "recording"})
    host, recorder = sorted(findings(trace, RULE), key=lambda each: each.parts)
    assert recorder.title == (
        "gpu:0 stands still for 32.0 % of its time while the recording is cut: that is the recorder's doing"
    )
    assert recorder.size_ns == 8 * 380_000
    assert host.size_ns == 9 * 500_000 - 8 * 380_000
    assert recorder.parts == ("idle.recorder",)
