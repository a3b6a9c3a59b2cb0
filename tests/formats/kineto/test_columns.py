"""One event of each category, and every column of its row."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.kineto_files import call, kernel, write_file
from tests.traces import counted, rows

from inferometer import Trace
from inferometer.trace.facts import NamedId

Read = Callable[..., Trace]


def only_row(trace: Trace, table: str) -> dict[str, Any]:
    return trace.tables[table].collect().row(0, named=True)


KERNEL = """{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "void gemm<128>(float*)", "pid": 2, "tid": 20,
   "ts": 1428625731622.25, "dur": 18.112, "args": {"External id": 41, "queued": 5, "device": 2,
     "context": 1, "stream": 20, "correlation": 77,
     "registers per thread": 32, "shared memory": 1024, "blocks per SM": 1.0, "grid": [4, 2, 1], "block": [128, 1, 1],
     "est. achieved occupancy %": 31, "graph id": 9, "graph node id": 38654705664}}]}"""


def test_a_kernel(read: Read) -> None:
    assert only_row(read(KERNEL), "launches") == {
        "kind": "kernel",
        "kernel": "void gemm<128>(float*)",
        "device": "gpu:2",
        "context": 1,
        "stream": 20,
        "rank": 3,
        "host": None,
        "process": None,
        "start_ns": 1_428_625_731_622_250,
        "dur_ns": 18_112,
        "queued_ns": 5,
        "correlation_id": 77,
        "external_id": 41,
        "graph_id": 9,
        "graph_node_id": 38654705664,
        "grid": [4, 2, 1],
        "block": [128, 1, 1],
        "registers": 32,
        "shared_bytes": 1024,
        "bytes": None,
        "occupancy": 0.31,
        **dict.fromkeys(("queue", "accum_registers", "scalar_registers", "scratch_bytes")),
    }


COLLECTIVE = """{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "plain", "pid": 2, "tid": 20, "ts": 1, "dur": 1, "args": {"device": 2}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 2, "tid": 20, "ts": 5.25, "dur": 18,
   "args": {"External id": 41, "device": 2, "stream": 20, "Collective name": "all_to_allv", "In msg nelems": 96,
     "Out msg nelems": 128, "Group size": 4, "dtype": "BFloat16", "In split size": "[64, 32]", "Out split size": "[]",
     "Process Group Name": "7", "Process Group Description": "EP", "Process Group Ranks": "[0, 1, 2, 3]",
     "Src Rank": 1, "Dst Rank": 2, "Seq": 90}}]}"""


def test_a_kernel_that_communicates(read: Read) -> None:
    trace = read(COLLECTIVE)
    assert rows(trace, "launches", "kernel") == ["plain", "ncclDevKernel_SendRecv"]
    assert only_row(trace, "collectives") == {
        "kernel": "ncclDevKernel_SendRecv",
        "device": "gpu:2",
        "stream": 20,
        "rank": 3,
        "start_ns": 5_250,
        "collective": "all_to_allv",
        "dtype": "BFloat16",
        "elements_in": 96,
        "elements_out": 128,
        "group": "7",
        "group_description": "EP",
        "group_size": 4,
        "group_ranks": "[0, 1, 2, 3]",
        "splits_in": "[64, 32]",
        "splits_out": "[]",
        "source_rank": 1,
        "destination_rank": 2,
        "sequence_number": 90,
    }


def test_a_wrong_type_in_a_collective_is_null_and_counted(read: Read) -> None:
    trace = read(COLLECTIVE.replace('"In msg nelems": 96', '"In msg nelems": "many"'))
    assert only_row(trace, "collectives")["elements_in"] is None
    assert only_row(trace, "collectives")["elements_out"] == 128
    assert counted(trace)["wrong_type"] == 1


@pytest.mark.parametrize(("cat", "kind"), [("gpu_memcpy", "memcpy"), ("gpu_memset", "memset")])
def test_a_copy_and_a_set(cat: str, kind: str, read: Read) -> None:
    row = only_row(
        read(
            f"""{{"traceEvents": [
  {{"ph": "X", "cat": "{cat}", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": 100, "dur": 2.368,
   "args": {{"External id": 18, "device": 0, "context": 1, "stream": 7, "correlation": 68, "bytes": 4096}}}}]}}"""
        ),
        "launches",
    )
    assert {key: value for key, value in row.items() if value is not None} == {
        "kind": kind,
        "kernel": "Memcpy DtoH (Device -> Pinned)",
        "device": "gpu:0",
        "context": 1,
        "stream": 7,
        "start_ns": 100_000,
        "dur_ns": 2_368,
        "correlation_id": 68,
        "external_id": 18,
        "bytes": 4096,
    }


@pytest.mark.parametrize("cat", ["cuda_runtime", "cuda_driver", "hip_runtime"])
def test_a_call(cat: str, read: Read) -> None:
    text = f"""{{"traceEvents": [
  {{"ph": "X", "cat": "{cat}", "name": "hipLaunchKernel", "pid": 251, "tid": 252, "ts": 10.5, "dur": 4.657,
   "args": {{"External id": 5, "kernel": "elementwise", "grid": [8, 1, 1], "block": [64, 1, 1], "stream": "0x0",
     "size": "2560", "cid": 1, "correlation": 92}}}}]}}"""
    assert only_row(read(text), "calls") == {
        "api": "hipLaunchKernel",
        "rank": None,
        "process": 251,
        "thread": 252,
        "start_ns": 10_500,
        "dur_ns": 4_657,
        "correlation_id": 92,
        "external_id": 5,
        "path_id": None,
        "kernel": "elementwise",
        "grid": [8, 1, 1],
        "block": [64, 1, 1],
        "stream": None,  # a handle, not a number of a stream
        "bytes": 2560,
    }


def test_an_op_keeps_its_shapes_as_recorded(read: Read) -> None:
    text = """{"traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10, "dur": 4,
   "args": {"External id": 5, "Record function id": 7, "Concrete Inputs": ["", "1.0"],
     "Input type": ["float", "Scalar"], "Input Strides": [[1024, 1], []],
     "Input Dims": [[16, 1024], []], "Sequence number": 12, "Fwd thread id": 0,
     "kernel_file": "/tmp/t.py", "kernel_hash": "cafe", "kernel_backend": "triton", "Ev Idx": 3}}]}"""
    assert only_row(read(text), "ops") == {
        "op": "aten::mm",
        "rank": None,
        "process": 1,
        "thread": 2,
        "start_ns": 10_000,
        "dur_ns": 4_000,
        "external_id": 5,
        "record_function_id": 7,
        "parent": None,
        "input_dims": "[[16, 1024], []]",
        "input_dtypes": '["float", "Scalar"]',
        "input_strides": "[[1024, 1], []]",
        "scalars": '["", "1.0"]',
        "input_storages": None,
        "written_storages": None,
        "sequence_number": 12,
        "kernel_file": "/tmp/t.py",
        "kernel_hash": "cafe",
        "kernel_backend": "triton",
    }


@pytest.mark.parametrize(
    ("name", "module"),
    [("model.py(12): forward", None), ("nn.Module: Linear_3", "Linear_3"), ("<built-in method>", None)],
)
def test_a_frame(name: str, module: str | None, read: Read) -> None:
    text = f"""{{"traceEvents": [
  {{"ph": "X", "cat": "python_function", "name": "{name}", "pid": 1, "tid": 2, "ts": 10, "dur": 4,
   "args": {{"Python parent id": 8, "Python id": 9, "Python module id": 0, "Ev Idx": 3}}}}]}}"""
    assert only_row(read(text), "frames") == {
        "frame": name,
        "module": module,
        "rank": None,
        "process": 1,
        "thread": 2,
        "start_ns": 10_000,
        "dur_ns": 4_000,
        "frame_id": 9,
        "parent": 8,
    }


@pytest.mark.parametrize(
    ("cat", "domain"), [("user_annotation", "user_annotation"), ("Trace", "trace"), ("overhead", "overhead")]
)
def test_a_range_on_a_host_thread(cat: str, domain: str, read: Read) -> None:
    text = f"""{{"traceEvents": [
  {{"ph": "X", "cat": "{cat}", "name": "ProfilerStep#3", "pid": 1, "tid": 2, "ts": 10, "dur": 4, "args": {{}}}}]}}"""
    host = {"rank": None, "process": 1, "thread": 2, "device": None, "stream": None}
    assert only_row(read(text), "spans") == {
        "span": "ProfilerStep#3",
        "domain": domain,
        **host,
        "start_ns": 10_000,
        "dur_ns": 4_000,
        "input_dims": None,
        "input_dtypes": None,
    }


def test_a_range_has_the_shapes_of_what_it_was_given_where_they_are_recorded(read: Read) -> None:
    trace = read("""{"traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 1, "tid": 2, "ts": 10, "dur": 4,
   "args": {"External id": 7, "Input Dims": [[366336]], "Input type": ["float"]}},
  {"ph": "X", "cat": "user_annotation", "name": "forward", "pid": 1, "tid": 2, "ts": 20, "dur": 4, "args": {}}]}""")
    assert rows(trace, "spans", "span", "input_dims", "input_dtypes") == [
        ("nccl:all_reduce", "[[366336]]", '["float"]'),
        ("forward", None, None),
    ]


@pytest.mark.parametrize("cat", ["gpu_user_annotation", "cuda_sync"])
def test_a_range_on_a_device(cat: str, read: Read) -> None:
    text = f"""{{"traceEvents": [
  {{"ph": "X", "cat": "{cat}", "name": "Stream Sync", "pid": 1, "tid": 7, "ts": 10, "dur": 4,
   "args": {{"stream": 7, "correlation": 15, "device": 1, "context": 1}}}}]}}"""
    place = {"rank": None, "process": None, "thread": None, "device": "gpu:1", "stream": 7}
    assert only_row(read(text), "spans") == {
        "span": "Stream Sync",
        "domain": cat,
        **place,
        "start_ns": 10_000,
        "dur_ns": 4_000,
        "input_dims": None,
        "input_dtypes": None,
    }


def test_a_memory_record_is_a_counter_of_its_device(read: Read) -> None:
    text = """{"traceEvents": [
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 5, "ts": 7.5,
   "args": {"Total Reserved": 4, "Total Allocated": 1003059712, "Bytes": 18, "Device Id": 3, "Device Type": 1}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 5, "ts": 8,
   "args": {"Total Allocated": 7, "Bytes": 7, "Device Id": -1, "Device Type": 0}}]}"""
    assert rows(read(text), "counters", "metric", "device", "process", "time_ns", "value", "unit") == [
        ("memory_allocated", "gpu:3", 5, 7_500, 1003059712.0, "bytes"),
        ("memory_allocated", "cpu", 5, 8_000, 7.0, "bytes"),
    ]


def test_a_counter_has_a_row_for_each_series(read: Read) -> None:
    text = """[
  {"ph": "C", "name": "clock", "pid": 0, "ts": 1, "args": {"value": 1980}},
  {"ph": "C", "name": "clock", "pid": 0, "ts": 2, "args": {"clock": 1.5}},
  {"ph": "C", "name": "queue", "pid": 0, "ts": 3, "args": {"running": 3, "waiting": 0, "note": "text"}},
  {"ph": "C", "name": "", "pid": "host(9)", "ts": 4, "args": {"running": -1}}]"""
    assert rows(read(text), "counters", "metric", "process", "time_ns", "value") == [
        ("clock", 0, 1_000, 1980.0),
        ("clock", 0, 2_000, 1.5),
        ("queue.running", 0, 3_000, 3.0),
        ("queue.waiting", 0, 3_000, 0.0),
        (".running", 9, 4_000, -1.0),
    ]


@pytest.mark.parametrize("args", ['{"value": NaN}', '{"value": "x"}', "{}", "[1]", '{"value": 1e400}', "null"])
def test_a_counter_without_a_number_is_counted(args: str, read: Read) -> None:
    trace = read(f'[{{"ph": "C", "name": "clock", "pid": 0, "ts": 1, "args": {args}}}]')
    assert rows(trace, "counters") == []
    assert trace.losses.dropped("ph C") == trace.losses.seen["ph C"] == 1


def test_a_profiled_range_has_a_row_for_each_metric_and_no_time(read: Read) -> None:
    text = """{"traceEvents": [
  {"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": 0, "ts": 1, "dur": 5,
   "args": {"dram__bytes_read.sum": 64, "sm__warps_active.avg.pct_of_peak_sustained_active": 12.5}},
  {"ph": "X", "cat": "cuda_profiler_range", "name": "__missing__", "pid": 0, "tid": 0, "ts": 6, "dur": 5,
   "args": {"dram__bytes_read.sum": 32}}]}"""
    trace = read(text)
    assert rows(trace, "kernel_counters", "launch", "kernel", "process", "metric", "value", "unit") == [
        (0, "gemm", 0, "dram__bytes_read.sum", 64.0, None),
        (0, "gemm", 0, "sm__warps_active.avg.pct_of_peak_sustained_active", 12.5, None),
        (1, "__missing__", 0, "dram__bytes_read.sum", 32.0, None),
    ]
    assert rows(trace, "launches") == rows(trace, "spans") == []


@pytest.mark.parametrize("args", ['{"m": NaN}', '{"m": "x"}', "{}", "[1]", '{"m": 1e400}', "null"])
def test_a_profiled_range_without_a_number_is_counted(args: str, read: Read) -> None:
    event = '"ph": "X", "cat": "cuda_profiler_range", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 5'
    trace = read(f'{{"traceEvents": [{{{event}, "args": {args}}}]}}')
    assert rows(trace, "kernel_counters") == []
    assert trace.losses.dropped("cuda_profiler_range") == trace.losses.seen["cuda_profiler_range"] == 1


def test_an_instant_is_a_span_of_no_length(read: Read) -> None:
    trace = read('[{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": 3, "ts": 1.5}]')
    assert rows(trace, "spans", "span", "domain", "process", "thread", "start_ns", "dur_ns") == [
        ("Record Window End", "instant", None, 3, 1_500, 0)
    ]


def test_names_of_processes_and_threads_go_to_the_facts(read: Read) -> None:
    trace = read("""[
  {"ph": "M", "name": "process_name", "pid": 4, "tid": 0, "ts": 0, "args": {"name": "python"}},
  {"ph": "M", "name": "process_labels", "pid": 4, "tid": 0, "ts": 0, "args": {"labels": "GPU 4"}},
  {"ph": "M", "name": "process_sort_index", "pid": 4, "tid": 0, "ts": 0, "args": {"sort_index": 5}},
  {"ph": "M", "name": "thread_name", "pid": 4, "tid": 7, "ts": 0, "args": {"name": "stream 7"}}]""")
    assert trace.facts.processes == (NamedId(4, name="python", label="GPU 4"),)
    assert trace.facts.threads == (NamedId(4, 7, name="stream 7"),)
    assert trace.losses.dropped("ph M") == 4


@pytest.mark.parametrize(
    ("given", "device", "stream"),
    [
        ({"device": None, "stream": None}, "gpu:0", 7),  # from the event's own pid and tid
        ({"device": "gpu 3", "stream": "stream 9"}, "gpu:3", 9),
        ({"device": "3", "stream": "9"}, "gpu:3", 9),
        ({"device": -1, "stream": "0x0"}, None, None),
    ],
)
def test_device_and_stream_of_a_launch(
    given: dict[str, Any], device: str | None, stream: int | None, read: Read
) -> None:
    trace = read(write_file([kernel(**given)]))
    assert rows(trace, "launches", "device", "stream") == [(device, stream)]


def test_the_launches_of_a_file_with_one_host_process_are_of_that_process(read: Read) -> None:
    trace = read(write_file([kernel(), call(pid=31), call(pid=31)]))
    assert rows(trace, "launches", "process") == [31]


def test_the_launches_of_a_file_with_several_host_processes_are_of_none(read: Read) -> None:
    trace = read(write_file([kernel(), call(pid=31), call(pid=32)]))
    assert rows(trace, "launches", "process") == [None]
    assert counted(trace) == {"correlation_in_several_processes": 1}


@pytest.mark.parametrize(
    ("field", "column", "value"),
    [
        ('"registers per thread": "32"', "registers", 32),
        ('"registers per thread": 32.0', "registers", 32),
        ('"grid": [1, 2]', "grid", None),
        ('"grid": [1, 2, 1e400]', "grid", None),
        ('"correlation": "none"', "correlation_id", None),
        ('"correlation": 1.5', "correlation_id", None),
        (f'"correlation": {2**70}', "correlation_id", None),
        (f'"correlation": {"9" * 5000}', "correlation_id", None),
        ('"est. achieved occupancy %": 1e400', "occupancy", None),
        (f'"grid": [{2**70}, 1, 1]', "grid", None),
    ],
)
def test_an_argument_of_the_wrong_type_is_null_and_counted(field: str, column: str, value: Any, read: Read) -> None:
    text = f"""{{"traceEvents": [
  {{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
    "args": {{"context": 4, {field}}}}},
  {{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 4, "dur": 2,
    "args": {{"registers per thread": 8}}}}]}}"""
    trace = read(text)
    assert rows(trace, "launches", "kernel", "context", column)[0] == ("a", 4, value)
    assert rows(trace, "launches", "kernel", "registers")[1] == ("b", 8)
    assert (trace.losses.total("wrong_type") + trace.losses.total("number_out_of_range")) == (value is None)


def test_arguments_that_are_no_object_are_counted_and_the_row_stays(read: Read) -> None:
    trace = read('[{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": [1]}]')
    assert rows(trace, "launches", "kernel", "device", "stream") == [("a", "gpu:0", 7)]
    assert counted(trace)["wrong_type"] == 1


@pytest.mark.parametrize("args", ["", ', "args": null', ', "args": {}'])
def test_arguments_may_be_missing(args: str, read: Read) -> None:
    trace = read(f'[{{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 2{args}}}]')
    assert rows(trace, "launches", "kernel", "correlation_id") == [("a", None)]
    assert counted(trace) == {}
