"""Exports of Nsight Systems to tables, for `.sqlite` and parquetdir alike."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.nsys_files import (
    GLOBAL_PID,
    GLOBAL_TID,
    PID,
    TID,
    Rows,
    call,
    export,
    kernel,
    string,
    write_parquetdir,
    write_sqlite,
)
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.errors import FormatError
from inferometer.reports.views.view import remarks_of
from inferometer.trace.facts import Device, NamedId
from inferometer.trace.tables import ALL_TABLES

Open = Callable[..., Trace]
WRITERS: dict[str, Callable[[Path, Mapping[str, Rows]], Path]] = {
    "export.sqlite": write_sqlite,
    "export": write_parquetdir,
}


@pytest.fixture(params=WRITERS)
def open_export(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens an export of these tables: `open_export(KERNEL=[...], tables={"launches"})`."""

    def open_export(*, tables: Any = None, **of_export: Rows) -> Trace:
        return inferometer.open(WRITERS[request.param](tmp_path / request.param, export(**of_export)), tables)

    return open_export


def only_row(trace: Trace, table: str) -> dict[str, Any]:
    [row] = trace.tables[table].collect().to_dicts()
    return {column: value for column, value in row.items() if value is not None}


def test_a_kernel(open_export: Open) -> None:
    trace = open_export(KERNEL=[kernel(100, 25, graphNodeId=9, graphId=3)], RUNTIME=[call(90, 5)])
    assert only_row(trace, "launches") == {
        "kind": "kernel",
        "kernel": "gemm",
        "device": "gpu:0",
        "context": 1,
        "stream": 7,
        "process": PID,
        "start_ns": 100,
        "dur_ns": 25,
        "correlation_id": 1,
        "graph_id": 3,
        "graph_node_id": 9,
        "grid": [2, 2, 2],
        "block": [32, 32, 32],
        "registers": 64,
        "shared_bytes": 1040,
    }
    assert counted(trace) == {}
    assert trace.losses.seen == {"CUPTI_ACTIVITY_KIND_KERNEL": 1, "CUPTI_ACTIVITY_KIND_RUNTIME": 1}


def test_copies_sets_and_whole_graphs_are_launches_too(open_export: Open) -> None:
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 1, "globalPid": GLOBAL_PID}
    trace = open_export(
        MEMCPY=[
            {"start": 1, "end": 3, **where, "bytes": 512, "copyKind": 1},
            {"start": 4, "end": 5, **where, "bytes": 8, "copyKind": 99},
        ],
        MEMSET=[{"start": 7, "end": 9, **where, "bytes": 64, "value": 0}],
        GRAPH_TRACE=[{"start": 20, "end": 50, **where, "graphId": 5}],
        ENUM_CUDA_MEMCPY_OPER=[{"id": 1, "name": "CUDA_MEMCPY_KIND_HTOD", "label": "HtoD, by its label"}],
    )
    assert rows(trace, "launches", "kind", "kernel", "dur_ns", "bytes", "graph_id") == [
        ("memcpy", "[CUDA memcpy HtoD, by its label]", 2, 512, None),
        ("memcpy", "[CUDA memcpy Unknown]", 1, 8, None),
        ("memset", "[CUDA memset]", 2, 64, None),
        ("graph", "[CUDA graph 5]", 30, None, 5),
    ]


def test_a_call_is_unpacked_into_process_and_thread(open_export: Open) -> None:
    trace = open_export(RUNTIME=[call(90, 5, correlationId=17)])
    assert only_row(trace, "calls") == {
        "api": "cudaLaunchKernel_v7000",
        "process": PID,
        "thread": TID,
        "start_ns": 90,
        "dur_ns": 5,
        "correlation_id": 17,
    }


def test_equal_correlation_ids_of_two_processes_stay_apart(open_export: Open) -> None:
    other = {"globalPid": 1 << 56 | 5000 << 24}
    trace = open_export(
        KERNEL=[kernel(100, 25), kernel(200, 50, "void attn<128>(float*)", **other)],
        RUNTIME=[call(90, 5), call(190, 5, globalTid=1 << 56 | 5000 << 24 | 5000)],
    )
    joined = trace.launches.join(trace.calls, on=["process", "correlation_id"], suffix="_call").collect()
    assert sorted(joined.select("process", "dur_ns", "start_ns_call").rows()) == [(4000, 25, 90), (5000, 50, 190)]
    assert counted(trace) == {"correlation_in_several_processes": 1}


def test_a_call_of_another_process_is_not_the_one_of_a_launch(open_export: Open) -> None:
    trace = open_export(KERNEL=[kernel(100, 25)], RUNTIME=[call(90, 5, globalTid=1 << 56 | 5000 << 24 | 5000)])
    assert counted(trace) == {"launch_before_window": 1}


def test_a_device_is_the_physical_one_whatever_number_its_process_has_for_it(open_export: Open) -> None:
    trace = open_export(
        KERNEL=[kernel(0, 1), kernel(5, 1, globalPid=1 << 56 | 5000 << 24)],
        TARGET_INFO_CUDA_DEVICE=[{"gpuId": 6, "cudaId": 0, "pid": 5000}, {"gpuId": 3, "cudaId": 0, "pid": PID}],
        TARGET_INFO_GPU=[
            {"id": 3, "name": "NVIDIA H100", "totalMemory": 80, "smCount": 132, "computeMajor": 9, "computeMinor": 0}
        ],
    )
    assert rows(trace, "launches", "device") == ["gpu:3", "gpu:6"]
    assert trace.facts.devices == (Device("gpu:3", "NVIDIA H100", 80, 132, "9.0"),)


def test_old_exports_lack_columns_and_those_are_null(open_export: Open) -> None:
    old = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "shortName")
    trace = open_export(KERNEL=[{name: kernel(0, 5)[name] for name in old}], RUNTIME=[call(0, 1)])
    row = only_row(trace, "launches")
    assert (row["kernel"], row["device"], row["process"]) == ("gemm", "gpu:0", PID)  # the only process there is
    assert {"grid", "block", "registers", "shared_bytes", "graph_node_id"}.isdisjoint(row)


def test_ranges_and_marks_of_nvtx(open_export: Open) -> None:
    base = {"globalTid": GLOBAL_TID, "domainId": 0}
    trace = open_export(
        NVTX_EVENTS=[
            {"start": 10, "end": 30, "eventType": 59, "text": "decode", "textId": None, **base},
            {"start": 11, "end": 20, "eventType": 60, "text": None, "textId": string("step"), **base},
            {"start": 12, "end": None, "eventType": 34, "text": "here", "textId": None, **base},
            {"start": 13, "end": None, "eventType": 59, "text": "for ever", "textId": None, **base},
            {"start": 14, "end": 15, "eventType": 59, "text": None, "textId": None, **base, "domainId": 2},
            {"start": 1, "end": None, "eventType": 75, "text": "NCCL", "textId": None, **base, "domainId": 2},
        ]
    )
    assert rows(trace, "spans", "span", "domain", "process", "thread", "start_ns", "dur_ns") == [
        ("decode", "NVTX", PID, TID, 10, 20),
        ("step", "NVTX", PID, TID, 11, 9),
        ("here", "NVTX", PID, TID, 12, 0),
        ("[no message]", "NCCL", PID, TID, 14, 1),
    ]
    assert counted(trace) == {"begin_without_end": 1, "nvtx_naming_event": 1}
    assert trace.losses.seen["NVTX_EVENTS"] == 6


def test_synchronisation_is_on_the_track_of_its_device(open_export: Open) -> None:
    where = {"deviceId": 0, "correlationId": 4, "globalPid": GLOBAL_PID}
    trace = open_export(
        SYNCHRONIZATION=[
            {"start": 10, "end": 30, **where, "streamId": 7, "syncType": 3},
            {"start": 40, "end": 41, **where, "streamId": 2**32 - 1, "syncType": 4},
        ]
    )
    assert rows(trace, "spans", "span", "domain", "device", "stream", "thread", "dur_ns") == [
        ("Stream Sync", "cuda_sync", "gpu:0", 7, None, 20),
        ("Context Sync", "cuda_sync", "gpu:0", None, None, 1),
    ]


def test_calls_into_libraries_and_the_system(open_export: Open) -> None:
    event = {"start": 1, "end": 4, "globalTid": GLOBAL_TID, "nameId": string("forward")}
    trace = open_export(CUBLAS_EVENTS=[event], OSRT_API=[event])
    assert rows(trace, "spans", "span", "domain", "thread", "dur_ns") == [("forward", "cuBLAS", TID, 3)]
    assert rows(trace, "host_events", "kind", "process", "dur_ns") == [("forward", PID, 3)]


def test_equal_call_chains_are_one_path_root_first(open_export: Open) -> None:
    def chain(number: int, *symbols: str) -> Rows:
        return [
            {"id": number, "symbol": string(symbol), "module": string("lib.so"), "stackDepth": depth}
            for depth, symbol in enumerate(symbols)  # 0 is the innermost frame
        ]

    trace = open_export(
        CUDA_CALLCHAINS=[*chain(1, "forward", "main"), *chain(2, "step", "main"), *chain(3, "forward", "main")],
        RUNTIME=[call(i, 1, callchainId=number) for i, number in enumerate((1, 2, 3, None, 77))],
    )
    columns = ("path_id", "parent_id", "name", "frame", "depth")
    assert rows(trace, "call_paths", *columns) == [
        (0, None, "main", "lib.so main", 0),
        (1, 0, "forward", "lib.so forward", 1),
        (2, 0, "step", "lib.so step", 1),
    ]
    assert rows(trace, "calls", "path_id") == [1, 2, 1, None, None]


def test_samples_of_the_device_are_counters(open_export: Open) -> None:
    trace = open_export(
        GPU_METRICS=[
            {"timestamp": 5, "typeId": 0x20001, "metricId": 2, "value": 97},
            {"timestamp": 6, "typeId": 0x20001, "metricId": 9, "value": 1},
        ],
        TARGET_INFO_GPU_METRICS=[{"typeId": 0x20001, "metricId": 2, "metricName": "SMs Active [Throughput %]"}],
    )
    assert rows(trace, "counters", "metric", "device", "time_ns", "value", "unit") == [
        ("SMs Active [Throughput %]", "gpu:1", 5, 97.0, "Throughput %"),
        ("metric 9", "gpu:1", 6, 1.0, None),
    ]


def test_what_the_profiler_warned_about_is_in_the_log(open_export: Open) -> None:
    trace = open_export(
        KERNEL=[kernel(0, 1)], DIAGNOSTIC_EVENT=[{"timestamp": 5, "severity": 2, "text": "Events lost"}]
    )
    assert rows(trace, "log", "line", "time_ns", "level", "kind", "text") == [
        (1, 5, "warning", "diagnostic", "Events lost")
    ]


def test_facts(open_export: Open) -> None:
    trace = open_export(
        KERNEL=[kernel(0, 1)],
        META_DATA_EXPORT=[{"name": "EXPORT_SCHEMA_VERSION", "value": "3.21.4"}],
        META_DATA_CAPTURE=[{"name": "PROFILER_VERSION", "value": "2025.5.1"}],
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": 1751410836000000000, "utcTime": "2025-07-01 23:00:36"}],
        TARGET_INFO_SYSTEM_ENV=[{"name": "Hostname", "value": "node7"}, {"name": "OS", "value": "Linux"}],
        PROCESSES=[{"globalPid": GLOBAL_PID, "pid": PID, "name": "python3"}],
        ThreadNames=[{"nameId": string("python"), "priority": 0, "globalTid": GLOBAL_TID}],
    )
    facts = trace.facts
    assert (facts.format, facts.tool, facts.tool_version) == ("nsys", "NVIDIA Nsight Systems", "2025.5.1")
    assert (facts.clock_base_ns, facts.versions) == (1751410836000000000, {"export_schema": "3.21.4"})
    assert facts.hosts == ("node7",)
    assert facts.processes == (NamedId(PID, name="python3"),)
    assert facts.threads == (NamedId(PID, TID, name="python"),)
    assert rows(trace, "launches", "host") == ["node7"]


def test_a_secret_in_what_an_export_says_of_the_capture_is_counted_with_its_place(open_export: Open) -> None:
    trace = open_export(
        KERNEL=[kernel(0, 1)],
        META_DATA_CAPTURE=[{"name": "COMMAND", "value": "serve --api-key s3cr3t-w0rd"}],
        TARGET_INFO_SYSTEM_ENV=[{"name": "Hostname", "value": "node7"}],
    )
    assert [loss.category for loss in trace.losses if loss.name == "secret"] == [
        "value of an option or variable named as a secret in META_DATA_CAPTURE.COMMAND"
    ]
    assert trace.names.hosts == {"node7"}


@pytest.mark.parametrize(
    ("spoiled", "loss"),
    [
        ({"start": None}, "without_timestamp"),
        ({"end": None}, "without_duration"),
        ({"end": 50}, "negative_duration"),
        ({"end": 2**60}, "time_out_of_range"),
        ({"start": -(2**62) - 5, "end": -(2**62)}, "time_out_of_range"),
    ],
)
def test_a_row_without_usable_times_is_counted(spoiled: dict[str, Any], loss: str, open_export: Open) -> None:
    trace = open_export(KERNEL=[kernel(100, 25), kernel(100, 25) | spoiled, kernel(200, 5)])
    assert rows(trace, "launches", "start_ns") == [100, 200]
    assert trace.losses.dropped("CUPTI_ACTIVITY_KIND_KERNEL") == trace.losses.total(loss) == 1


def test_a_kernel_without_a_name_keeps_its_time(open_export: Open) -> None:
    trace = open_export(KERNEL=[kernel(0, 5, demangledName=999), kernel(9, 5, demangledName=None)])
    assert rows(trace, "launches", "kernel") == ["[string 999]", "[string null]"]
    assert counted(trace) == {"without_string": 2}


def test_tables_without_a_table_of_ours_are_counted_by_name(open_export: Open) -> None:
    trace = open_export(
        KERNEL=[kernel(0, 1)], SCHED_EVENTS=[{"start": 1, "cpu": 2, "isSchedIn": 1, "globalTid": 4}] * 3
    )
    assert trace.losses.dropped("SCHED_EVENTS") == trace.losses.seen["SCHED_EVENTS"] == 3
    assert {loss.name for loss in trace.losses} == {"unknown_category"}


def test_the_columns_asked_for_are_the_only_ones_there(open_export: Open) -> None:
    trace = open_export(tables={"launches": ["kernel", "dur_ns", "kind"]}, KERNEL=[kernel(0, 5), kernel(9, 2)])
    assert trace.launches.collect().to_dicts() == [
        {"kind": "kernel", "kernel": "gemm", "dur_ns": 5},
        {"kind": "kernel", "kernel": "gemm", "dur_ns": 2},
    ]
    assert kernel_table(trace).total_ns == 7


def test_an_export_without_device_work_is_a_trace_without_launches_and_says_why(open_export: Open) -> None:
    trace = open_export(RUNTIME=[call(0, 1)], tables=ALL_TABLES)
    assert (rows(trace, "launches"), len(rows(trace, "calls"))) == ([], 1)
    [note] = trace.facts.notes
    assert "no table CUPTI_ACTIVITY_KIND_KERNEL: no kernels were recorded" in note
    assert note in remarks_of(kernel_table(trace))


def test_an_empty_table_of_kernels_is_said(open_export: Open) -> None:
    trace = open_export(KERNEL=[], RUNTIME=[call(0, 1)])
    assert trace.facts.notes == ("The table CUPTI_ACTIVITY_KIND_KERNEL is empty: no kernels were recorded.",)


def test_kernels_without_start_and_end_are_refused(open_export: Open) -> None:
    with pytest.raises(
        FormatError, match="CUPTI_ACTIVITY_KIND_KERNEL: expected the columns start and end, found deviceId"
    ):
        open_export(KERNEL=[{"deviceId": 0}])
