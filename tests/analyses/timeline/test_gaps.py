"""Why a device was idle: each cause from the smallest trace that shows it, and nothing claimed beyond that."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.gaps import CAUSES, find_gaps, longest_gaps, sum_causes
from inferometer.analyses.timeline.work import find_work
from inferometer.trace.trace import Trace

KINETO = SHARED_DATA / "traces" / "kineto"
FIRST = {"kernel": "first", "start_ns": 0, "dur_ns": 100_000, "process": 1, "correlation_id": 1}
NEXT = {"kernel": "next", "start_ns": 200_000, "dur_ns": 1_000, "process": 1, "correlation_id": 2}
TO_HOST = {"kind": "memcpy", "kernel": "Memcpy DtoH (Device -> Pageable)"}


def call(start_ns: int, end_ns: int, api: str = "cudaLaunchKernel", **more: Any) -> dict[str, Any]:
    times = {"start_ns": start_ns, "dur_ns": end_ns - start_ns}
    return {"api": api, "process": 1, "thread": 1, "correlation_id": 2} | times | more


def waiting(start_ns: int, end_ns: int, api: str = "cudaStreamSynchronize", **more: Any) -> dict[str, Any]:
    return call(start_ns, end_ns, api, **({"correlation_id": 99} | more))


def gaps(trace: Trace, selection: Selection | None = None) -> list[tuple[str, int, int]]:
    """Cause, start and length of each gap."""
    return find_gaps(trace, find_work(trace, selection)).select("cause", "gap_start_ns", "gap_ns").rows()


def causes_of(*calls: dict[str, Any], first: Any = FIRST, then: Any = NEXT) -> list[tuple[str, int]]:
    return [(cause, length) for cause, _, length in gaps(trace_of([first, then], calls=calls))]


@pytest.mark.parametrize(
    ("calls", "causes"),
    [
        pytest.param([call(190_000, 196_000)], ["host_late"], id="called after the device ran dry"),
        pytest.param([call(90_000, 196_000)], ["host_late"], id="called before, but not done by then"),
        pytest.param([call(90_000, 100_001), call(1, 2, correlation_id=9)], ["host_late", "dependency"], id="parted"),
        pytest.param([call(90_000, 100_000)], ["dependency"], id="queued just in time"),
        pytest.param([call(1_000, 2_000)], ["dependency"], id="queued long before"),
        pytest.param([], ["unknown"], id="no call"),
        pytest.param([call(1_000, 2_000, process=2)], ["unknown"], id="a call of another process"),
        pytest.param([call(1_000, 2_000, rank=0)], ["unknown"], id="a call of another rank"),
        pytest.param([call(1_000, 2_000, correlation_id=None)], ["unknown"], id="a call without an id"),
        pytest.param([waiting(50_000, 193_000), call(195_000, 196_000)], ["sync"], id="waited, then queued"),
        pytest.param(
            [waiting(50_000, 110_000), call(190_000, 196_000)], ["sync", "host_late"], id="waited, then took long"
        ),
        pytest.param([waiting(50_000, 196_500), call(190_000, 196_000)], ["host_late"], id="waited beyond the call"),
        pytest.param([waiting(50_000, 190_000), call(190_000, 196_000)], ["sync"], id="queued as the wait ended"),
        pytest.param([waiting(50_000, 100_000), call(190_000, 196_000)], ["host_late"], id="wait over when dry"),
        pytest.param([waiting(100_001, 110_000), call(190_000, 196_000)], ["host_late"], id="waited after dry"),
        pytest.param([waiting(50_000, 110_000, thread=2), call(190_000, 196_000)], ["host_late"], id="other thread"),
        pytest.param([waiting(50_000, 110_000, process=2), call(190_000, 196_000)], ["host_late"], id="other process"),
        pytest.param([waiting(50_000, 110_000), call(1_000, 2_000)], ["dependency"], id="waited, but had queued"),
        pytest.param(
            [waiting(50_000, 193_000), waiting(55_000, 60_000), waiting(62_000, 70_000), call(195_000, 196_000)],
            ["sync"],
            id="nested waits",
        ),
        pytest.param(
            [waiting(50_000, 110_000, "cudaStreamWaitEvent"), call(190_000, 196_000)], ["host_late"], id="no host wait"
        ),
    ],
)
def test_the_cause_is_told_from_the_call_that_queued_the_next_work(
    calls: list[dict[str, Any]], causes: list[str]
) -> None:
    found = causes_of(*calls)
    assert [cause for cause, _ in found] == causes
    assert sum(length for _, length in found) == 100_000


@pytest.mark.parametrize(
    "api",
    [
        *("cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"),
        *("hipStreamSynchronize", "hipDeviceSynchronize", "hipEventSynchronize", "cudaStreamSynchronize_v3020"),
        *("cudaMemcpy", "hipMemcpyWithStream", "cuMemcpyDtoH_v2"),
    ],
)
def test_calls_that_wait_for_the_device_are_known(api: str) -> None:
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 110_000, api), call(190_000, 196_000)])
    gap, rest = find_gaps(trace, find_work(trace)).to_dicts()
    assert (gap["cause"], gap["gap_ns"], gap["wait_end_ns"]) == ("sync", 10_000, 110_000)
    assert (rest["cause"], rest["gap_ns"]) == ("host_late", 90_000)
    assert gap["waited_in"] == rest["waited_in"] == api.removesuffix("_v3020").removesuffix("_v2")


@pytest.mark.parametrize(
    ("first", "returned_ns", "cause"),
    [
        pytest.param(TO_HOST, 101_000, "sync", id="returned when the copy was done"),
        pytest.param({**TO_HOST, "kernel": "Memcpy HtoD (Pageable -> Device)"}, 101_000, "sync", id="to the device"),
        pytest.param(TO_HOST, 99_000, "host_late", id="returned before"),
        pytest.param({"kernel": "gemm"}, 101_000, "host_late", id="no copy"),
    ],
)
def test_an_asynchronous_copy_that_outlasts_its_copy_waits(first: dict[str, Any], returned_ns: int, cause: str) -> None:
    copying = call(0, returned_ns, "cudaMemcpyAsync", correlation_id=1)
    found = causes_of(copying, call(190_000, 196_000), first={**FIRST, **first})
    late = [("host_late", 99_000)]
    assert found == ([(cause, 1_000), *late] if cause == "sync" else [(cause, 100_000)])


def test_a_late_call_whose_work_then_waits_is_two_gaps() -> None:
    trace = trace_of([FIRST, NEXT], calls=[call(110_000, 120_000)])
    assert gaps(trace) == [("host_late", 100_000, 20_000), ("dependency", 120_000, 80_000)]
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 105_000), call(110_000, 120_000)])
    assert gaps(trace) == [("sync", 100_000, 20_000), ("dependency", 120_000, 80_000)]
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 105_000), call(115_000, 120_000)])
    assert gaps(trace) == [("sync", 100_000, 5_000), ("host_late", 105_000, 15_000), ("dependency", 120_000, 80_000)]


def test_what_the_work_of_a_late_call_takes_to_begin_is_part_of_its_lateness() -> None:
    """On MI300 per launch onto an idle device begins 16 μs after its call has returned."""
    trace = trace_of([FIRST, NEXT], calls=[call(110_000, 150_000)])
    assert gaps(trace) == [("host_late", 100_000, 100_000)]
    trace = trace_of([FIRST, NEXT], calls=[call(110_000, 149_999)])
    assert gaps(trace) == [("host_late", 100_000, 49_999), ("dependency", 149_999, 50_001)]


@pytest.mark.parametrize(("gap_ns", "cause"), [(5_000, "launch_gap"), (5_001, "dependency")])
def test_queued_neighbours_a_few_us_apart_are_the_devices_own_cost(gap_ns: int, cause: str) -> None:
    assert causes_of(call(1_000, 2_000), then={**NEXT, "start_ns": 100_000 + gap_ns}) == [(cause, gap_ns)]


@pytest.mark.parametrize("calls", [[], [call(0, 150_000, "cudaGraphLaunch", correlation_id=1)]])
def test_between_the_nodes_of_one_graph_launch_no_host_is_late(calls: list[dict[str, Any]]) -> None:
    assert causes_of(*calls, then={**NEXT, "correlation_id": 1}) == [("graph", 100_000)]


def test_a_graph_that_was_under_way_on_another_stream_is_one_too() -> None:
    nodes = [{**FIRST, "stream": 8}, {**NEXT, "correlation_id": 1, "stream": 7}]
    trace = trace_of([*nodes, {"start_ns": 0, "dur_ns": 10, "stream": 7}], calls=[call(0, 90_000, correlation_id=1)])
    assert gaps(trace, Selection(stream=7)) == [("graph", 10, 199_990)]


def test_a_graph_that_begins_when_the_device_runs_dry_is_one_too() -> None:
    node = {"start_ns": 100_000, "dur_ns": 0, "process": 1, "correlation_id": 2}
    assert gaps(trace_of([FIRST, node, NEXT])) == [("graph", 100_000, 100_000)]


def test_ids_of_several_processes_are_no_graph() -> None:
    assert causes_of(then={**NEXT, "correlation_id": 1, "process": 2}) == [("unknown", 100_000)]


def test_the_id_0_that_tools_write_for_none_is_no_graph() -> None:
    assert causes_of(first={**FIRST, "correlation_id": 0}, then={**NEXT, "correlation_id": 0}) == [("unknown", 100_000)]


def test_work_without_ids_is_no_graph() -> None:
    nothing: dict[str, Any] = {"correlation_id": None, "process": None}
    assert causes_of(call(1, 2, **nothing), first=FIRST | nothing, then=NEXT | nothing) == [("unknown", 100_000)]


def test_ranks_processes_and_threads_may_be_unknown() -> None:
    nowhere: dict[str, Any] = {"process": None, "thread": None}
    calls = [waiting(50_000, 110_000, **nowhere), call(190_000, 196_000, **nowhere)]
    found = causes_of(*calls, first={**FIRST, "process": None}, then={**NEXT, "process": None})
    assert found == [("sync", 10_000), ("host_late", 90_000)]


def test_a_gap_names_what_stands_at_its_ends_and_who_called() -> None:
    trace = trace_of([FIRST, NEXT, {"stream": 9, "dur_ns": 10, "kernel": "short"}], calls=[call(190_000, 196_000)])
    assert find_gaps(trace, find_work(trace)).to_dicts() == [
        {
            "place": 0,
            "rank": None,
            "device": "gpu:0",
            "gap_start_ns": 100_000,
            "gap_ns": 100_000,
            "cause": "host_late",
            "kernel": "next",
            "stream": 7,
            "after": "first",
            "api": "cudaLaunchKernel",
            "called_ns": 190_000,
            "call_end_ns": 196_000,
            "waited_in": None,
            "wait_end_ns": None,
        }
    ]


def test_each_gap_names_the_work_right_before_and_after_it() -> None:
    trace = trace_of(
        [{"kernel": kernel, "start_ns": start} for start, kernel in enumerate("abbcd")] + [{"start_ns": 9}]
    )
    assert find_gaps(trace, find_work(trace)).select("after", "kernel", "gap_ns").rows() == [("d", "k", 4)]
    trace = trace_of([{"kernel": kernel, "start_ns": 10 * i} for i, kernel in enumerate("abcd")])
    assert find_gaps(trace, find_work(trace)).select("after", "kernel").rows() == [("a", "b"), ("b", "c"), ("c", "d")]


def test_a_window_s_edges_name_the_first_work_and_the_last() -> None:
    launches = [
        {"kernel": kernel, "stream": stream, "start_ns": 10 * stream} for kernel, stream in (("a", 1), ("b", 2))
    ]
    trace = trace_of(launches, ops=[{"op": "o", "start_ns": 0, "dur_ns": 30}])
    found = find_gaps(trace, find_work(trace, Selection(between_ns=(0, 30))))
    assert found.select("gap_start_ns", "kernel", "stream", "after").rows() == [
        (0, "a", 1, None),
        (11, "b", 2, "a"),
        (21, None, None, None),
    ]


def test_both_parts_of_a_gap_stand_before_the_next_gap() -> None:
    trace = trace_of([FIRST, NEXT, {"start_ns": 300_000}], calls=[call(110_000, 120_000)])
    assert gaps(trace) == [
        ("host_late", 100_000, 20_000),
        ("dependency", 120_000, 80_000),
        ("unknown", 201_000, 99_000),
    ]


def test_of_waits_that_end_at_once_the_outer_is_named() -> None:
    waits = [waiting(50_000, 110_000, "cudaDeviceSynchronize"), waiting(60_000, 110_000)]
    trace = trace_of([FIRST, NEXT], calls=[*waits, call(111_000, 196_000)])
    assert find_gaps(trace, find_work(trace))["waited_in"].to_list() == ["cudaDeviceSynchronize"]


def test_what_lies_outside_the_first_and_last_work_is_unknown() -> None:
    trace = trace_of([FIRST, NEXT], calls=[call(190_000, 196_000), call(-50_000, 300_000)])
    assert gaps(trace, Selection(between_ns=(0, 10**6))) == [
        ("unknown", -50_000, 50_000),
        ("host_late", 100_000, 100_000),
        ("unknown", 201_000, 99_000),
    ]


def test_a_window_keeps_the_cause_of_what_it_cuts() -> None:
    """The gap is late from its true start, although the window begins after the call."""
    trace = trace_of([FIRST, NEXT], calls=[call(110_000, 120_000)], ops=[{"op": "o", "start_ns": 0, "dur_ns": 10**6}])
    assert gaps(trace, Selection(between_ns=(115_000, 130_000))) == [
        ("host_late", 115_000, 5_000),
        ("dependency", 120_000, 10_000),
    ]
    assert gaps(trace, Selection(between_ns=(150_000, 160_000))) == [("dependency", 150_000, 10_000)]


def test_causes_are_summed_by_device_the_largest_first() -> None:
    later = [{**NEXT, "start_ns": start, "correlation_id": 3} for start in (204_000, 210_000, 213_000)]
    trace = trace_of([FIRST, NEXT, *later, {**FIRST, "device": "gpu:1"}], calls=[call(190_000, 196_000)])
    found = sum_causes(find_gaps(trace, find_work(trace)))
    assert found.drop("rank", "share").rows() == [
        ("gpu:0", "host_late", 100_000, 1, 100_000),
        ("gpu:0", "graph", 7_000, 2, 5_000),
        ("gpu:0", "unknown", 3_000, 1, 3_000),
    ]
    assert found["share"].to_list() == pytest.approx([100 / 110, 7 / 110, 3 / 110])


def test_equal_causes_are_in_the_order_of_their_names_and_devices_apart() -> None:
    gap: dict[str, Any] = {"rank": 0, "gap_ns": 5}
    gaps = [gap | {"place": place, "device": f"gpu:{place}", "cause": cause} for place in (1, 0) for cause in CAUSES]
    found = sum_causes(pl.DataFrame(gaps, schema_overrides={"cause": pl.Enum(CAUSES)}))
    assert found["device"].to_list() == ["gpu:0"] * len(CAUSES) + ["gpu:1"] * len(CAUSES)
    assert found["cause"].to_list() == list(CAUSES) * 2
    assert found["share"].to_list() == pytest.approx([1 / len(CAUSES)] * 2 * len(CAUSES))


def test_a_host_that_calls_5_us_after_its_wait_is_not_late() -> None:
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 105_000), call(110_000, 196_000)])
    assert gaps(trace) == [("sync", 100_000, 100_000)]
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 105_000), call(110_001, 196_000)])
    assert gaps(trace) == [("sync", 100_000, 5_000), ("host_late", 105_000, 95_000)]


def test_the_part_of_a_gap_that_no_wait_explains_names_none() -> None:
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, 105_000), call(110_000, 120_000)])
    found = find_gaps(trace, find_work(trace))
    assert found.select("cause", "waited_in", "wait_end_ns").rows() == [
        ("sync", "cudaStreamSynchronize", 105_000),
        ("dependency", None, None),
    ]


@pytest.mark.parametrize("ends_ns", [200_000, 230_000])
def test_a_wait_that_seems_to_end_after_the_gap_has_all_of_it(ends_ns: int) -> None:
    trace = trace_of([FIRST, NEXT], calls=[waiting(50_000, ends_ns), call(260_000, 270_000)])
    assert gaps(trace) == [("sync", 100_000, 100_000)]


def test_the_cause_names_are_as_documented() -> None:
    import inferometer.analyses.timeline.gaps as module

    assert CAUSES == ("host_late", "sync", "dependency", "launch_gap", "graph", "unknown", "recorder")
    assert all(f"- `{cause}`:" in (module.__doc__ or "") for cause in CAUSES)


IDS = st.sampled_from([1, 2, 3, None])
PROCESS = st.sampled_from([1, None])
LAUNCH = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["kernel", "memcpy"]),
        "kernel": st.just("Memcpy DtoH"),
        "device": st.sampled_from(["gpu:0", None]),
        "process": PROCESS,
        "correlation_id": IDS,
        "start_ns": st.integers(0, 40_000) | st.integers(0, 150_000),
        "dur_ns": st.integers(0, 9_000),
    }
)
CALL = st.fixed_dictionaries(
    {
        "api": st.sampled_from(["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMemcpy"]),
        "process": PROCESS,
        "thread": st.sampled_from([1, 2, None]),
        "correlation_id": IDS,
        "start_ns": st.integers(-5_000, 40_000),
        "dur_ns": st.integers(0, 9_000),
    }
)


@given(st.lists(LAUNCH, max_size=12), st.lists(CALL, max_size=12))
@examples(100)
def test_any_gaps_agree_with_a_search_one_by_one(launches: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    trace = trace_of(launches, calls=calls)
    found = find_gaps(trace, find_work(trace))
    expected = [gap for device in (None, "gpu:0") for gap in slow_gaps(launches, calls, device)]
    assert found.select("device", "gap_start_ns", "gap_ns", "cause").rows() == expected


def slow_gaps(launches: list[dict[str, Any]], calls: list[dict[str, Any]], device: Any) -> list[tuple[Any, ...]]:
    """The definitions, word by word."""
    found: list[tuple[Any, ...]] = []
    mine = sorted((each for each in launches if each["device"] == device), key=lambda each: each["start_ns"])
    for i, launch in enumerate(mine[1:], start=1):
        dry, start = max(each["start_ns"] + each["dur_ns"] for each in mine[:i]), launch["start_ns"]
        if start <= dry:
            continue
        key = (launch["process"], launch["correlation_id"])
        same = [each["start_ns"] for each in launches if key == (each["process"], each["correlation_id"])]
        if key[1] is not None and min(same) <= dry:
            found.append((device, dry, start - dry, "graph"))
            continue
        of = [each for each in calls if key[1] is not None and key == (each["process"], each["correlation_id"])]
        if not of:
            found.append((device, dry, start - dry, "unknown"))
            continue
        call = min(of, key=lambda each: each["start_ns"])
        end = call["start_ns"] + call["dur_ns"]
        if end <= dry:
            found.append((device, dry, start - dry, "launch_gap" if start - dry <= 5_000 else "dependency"))
            continue
        waits = [each for each in calls if slow_wait(each, call, launches) and each["start_ns"] <= dry]
        last = max((each["start_ns"] + each["dur_ns"] for each in waits), default=dry)
        late = "sync" if dry < last <= call["start_ns"] else "host_late"
        if late == "sync" and call["start_ns"] - last > 5_000 and last < start:
            found.append((device, dry, last - dry, late))
            dry, late = last, "host_late"
        if start - end > 50_000:
            found += [(device, dry, end - dry, late), (device, end, start - end, "dependency")]
        else:
            found.append((device, dry, start - dry, late))
    return found


def slow_wait(wait: dict[str, Any], call: dict[str, Any], launches: list[dict[str, Any]]) -> bool:
    """Whether `wait`, on the thread of `call`, returns when the device has finished something."""
    if (wait["process"], wait["thread"]) != (call["process"], call["thread"]):
        return False
    if not wait["api"].startswith("cudaMemcpy"):
        return bool(wait["api"] != "cudaLaunchKernel")
    key = (wait["process"], wait["correlation_id"])
    copies = [
        each for each in launches if each["kind"] == "memcpy" and key == (each["process"], each["correlation_id"])
    ]
    if not copies or key[1] is None:
        return bool(wait["api"] == "cudaMemcpy")
    return max(each["start_ns"] + each["dur_ns"] for each in copies) <= wait["start_ns"] + wait["dur_ns"]


TIMES = st.integers(0, 400_000)


@given(
    st.lists(st.tuples(TIMES, st.integers(0, 60_000), st.integers(1, 3)), min_size=1, max_size=12),
    st.lists(st.tuples(TIMES, st.integers(0, 90_000), st.integers(1, 12), st.booleans()), max_size=12),
    st.integers(1, 6),
    st.booleans(),
)
@examples(60)
def test_the_longest_gaps_are_those_of_all_gaps(
    works: list[tuple[int, int, int]], called: list[tuple[int, int, int, bool]], count: int, is_window: bool
) -> None:
    """Rows sorted in plain Python; ids that occur again, waits, calls that nothing has, and windows among them."""
    launches = [
        {"start_ns": start, "dur_ns": dur, "device": f"gpu:{i % 2}", "process": 1, "correlation_id": at}
        for i, (start, dur, at) in enumerate(
            [(0, 3, 1), *works]
        )  # a window needs a trace that is longer than it begins
    ]
    calls = [
        call(start, start + dur, "cudaStreamSynchronize" if waits else "cudaLaunchKernel", correlation_id=at)
        for start, dur, at, waits in called
    ]
    trace = trace_of(launches, calls=calls)
    work = find_work(trace, Selection(between_ns=(1, 150_000)) if is_window else None)
    every = find_gaps(trace, work).to_dicts()
    every.sort(key=lambda gap: (-gap["gap_ns"], gap["place"], gap["gap_start_ns"]))
    assert longest_gaps(trace, work, count).to_dicts() == every[:count]


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
@pytest.mark.parametrize("name", ["a100_nccl", "v100_graph_branches"])
def test_the_longest_gaps_of_a_real_trace_are_its_own(name: str) -> None:
    trace = inferometer.open(KINETO / f"{name}.json.gz")
    work = find_work(trace)
    every = find_gaps(trace, work).to_dicts()
    every.sort(key=lambda gap: (-gap["gap_ns"], gap["place"], gap["gap_start_ns"]))
    assert longest_gaps(trace, work, 10).to_dicts() == every[:10]
    assert len(every) > 10
