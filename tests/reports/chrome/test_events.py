"""Rows as events under PyTorch's names, also rows that no Kineto file could hold."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.traces import rows, trace_of

from inferometer import Trace
from inferometer.reports.chrome.document import write_chrome


def events(trace: Trace) -> list[dict[str, Any]]:
    return json.loads(document(trace))["traceEvents"]


def document(trace: Trace) -> bytes:
    file = io.BytesIO()
    write_chrome(trace, {None: file})
    return file.getvalue()


def test_a_launch_has_the_names_that_other_tools_read() -> None:
    launch = {
        "kernel": 'k<"é">',
        "start_ns": 1_500,
        "dur_ns": 20,
        "context": 1,
        "process": 9,
        "queued_ns": 5,
        "correlation_id": 3,
        "external_id": 4,
        "graph_id": 5,
        "graph_node_id": 6,
        "grid": [1, 2, 3],
        "block": [32, 1, 1],
        "registers": 40,
        "shared_bytes": 128,
        "occupancy": 0.57,
    }
    assert events(trace_of([launch])) == [
        {
            "ph": "X",
            "cat": "kernel",
            "name": 'k<"é">',
            "pid": 0,
            "tid": 7,
            "ts": 1.5,
            "dur": 0.02,
            "args": {
                "device": 0,
                "External id": 4,
                "queued": 5,
                "context": 1,
                "stream": 7,
                "correlation": 3,
                "registers per thread": 40,
                "shared memory": 128,
                "graph id": 5,
                "graph node id": 6,
                "grid": [1, 2, 3],
                "block": [32, 1, 1],
                "est. achieved occupancy %": 57,
            },
        }
    ]


@pytest.mark.parametrize(
    ("kind", "category"),
    [("kernel", "kernel"), ("memcpy", "gpu_memcpy"), ("memset", "gpu_memset"), ("graph", "kernel")],
)
def test_each_kind_of_launch_has_its_category(kind: str, category: str) -> None:
    assert [each["cat"] for each in events(trace_of([{"kind": kind}]))] == [category]


@pytest.mark.parametrize(
    ("api", "category"), [("cudaLaunchKernel", "cuda_runtime"), ("cuLaunchKernelEx", "cuda_driver"),
                          ("hipLaunchKernel", "cuda_runtime"), ("custom", "cuda_runtime")],
)  # fmt: skip
def test_driver_calls_are_told_by_their_name(api: str, category: str) -> None:
    assert [each["cat"] for each in events(trace_of(calls=[{"api": api, "start_ns": 1, "dur_ns": 1}]))] == [category]


def test_shapes_stay_as_they_are_and_what_is_no_json_becomes_a_text() -> None:
    ops = [{"op": "x", "start_ns": 0, "dur_ns": 1, "input_dims": dims} for dims in ("[[1, 2],[]]", "[[1", None)]
    assert [each["args"].get("Input Dims") for each in events(trace_of(ops=ops))] == [[[1, 2], []], "[[1", None]


@pytest.mark.parametrize(
    ("span", "category", "args"),
    [
        ({"domain": "NVTX", "process": 1, "thread": 2}, "user_annotation", {"domain": "NVTX"}),
        ({"domain": "trace", "process": 1, "thread": 2}, "Trace", {}),
        ({"domain": None, "process": 1, "thread": 2}, None, {}),
        ({"domain": "cuda_sync", "device": "gpu:1", "stream": 7}, "cuda_sync", {"device": 1, "stream": 7}),
        ({"domain": "NVTX", "device": "gpu:1"}, "gpu_user_annotation", {"device": 1, "domain": "NVTX"}),
    ],
)
def test_a_span_lies_on_its_thread_or_device(span: dict[str, Any], category: str | None, args: dict[str, Any]) -> None:
    (found,) = events(trace_of(spans=[{"span": "s", "start_ns": 1, "dur_ns": 2, **span}]))
    assert (found.get("cat"), found["args"]) == (category, args)


def test_counters_of_one_name_on_two_devices_are_apart() -> None:
    counters = [{"metric": "power", "device": f"gpu:{n}", "time_ns": 1, "value": 2.5} for n in (0, 1)]
    found = events(trace_of(counters=counters))
    assert [(each["name"], each["id"], each["args"]) for each in found] == [
        ("power", "gpu:0", {"value": 2.5}),
        ("power", "gpu:1", {"value": 2.5}),
    ]


def test_a_counter_without_a_number_has_no_event_but_the_allocators_has() -> None:
    sample = {"time_ns": 1, "device": "gpu:0"}
    lost = [{"metric": "power", "value": value, **sample} for value in (None, float("nan"), float("inf"))]
    memory = {"metric": "memory_allocated", "unit": "bytes", **sample}
    trace = trace_of(counters=[*lost, memory, memory | {"value": 0.5}])
    assert write_chrome(trace, {None: io.BytesIO()}) == {None: {"counters": 2}}
    assert [each["name"] for each in events(trace)] == ["[memory]", "memory_allocated"]


def test_absent_columns_stay_absent_through_a_round_trip(read: Callable[..., Trace]) -> None:
    trace = trace_of(
        [{"kernel": "", "device": None, "stream": None}, {"host": "node gpu17", "device": None}, {"host": "a"}],
        calls=[{"api": "x", "start_ns": 1, "dur_ns": 2}],
        frames=[{"frame": "f", "start_ns": 1, "dur_ns": 2}],
        spans=[{"span": "s", "start_ns": 1, "dur_ns": 0, "domain": "instant"}],
        counters=[{"metric": "m", "time_ns": 1, "value": 1}],
    )
    again = read(document(trace))
    for table in ("launches", "calls", "frames", "spans", "counters"):
        assert rows(again, table) == rows(trace, table)


def test_what_the_format_lacks_changes_as_the_docstring_says(read: Callable[..., Trace]) -> None:
    trace = trace_of(
        [{"kind": "graph", "device": "webgpu:0", "process": 3}],
        calls=[{"api": "x", "start_ns": 1, "dur_ns": 2, "process": process} for process in (3, 4)],
        spans=[{"span": "s", "domain": "NVTX", "start_ns": 1, "dur_ns": 2}],
        counters=[{"metric": "power", "device": "gpu:0", "unit": "W", "time_ns": 1, "value": 2}],
        steps=[{"step": 1, "start_ns": 1, "dur_ns": 2, "source": "recorded"}],
        host_events=[{"kind": "runq", "start_ns": 1, "dur_ns": 2}],
    )
    again = read(document(trace))
    assert rows(again, "launches", "kind", "device", "process") == [("kernel", None, None)]
    assert rows(again, "spans", "domain") == ["user_annotation"]
    assert rows(again, "counters", "metric", "device", "unit", "value") == [("power", None, None, 2.0)]
    assert again.losses.total("unknown_category") == 2
