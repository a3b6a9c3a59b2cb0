"""One small sample for each registered format: bytes that hold a row of every table that the format fills.

A new format adds its sample here; the conformance tests pick it up, and fail for a format without one.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kineto_files import call, event, kernel, write_file
from tests.latencyprism_files import perf_row, sample_row, write_counters, write_perf
from tests.nsys_files import GLOBAL_PID, GLOBAL_TID, export, string, write_sqlite
from tests.nsys_files import call as call_row
from tests.nsys_files import kernel as kernel_row
from tests.nsys_files import node as node_row
from tests.rocprof_files import SMALL, small_runs, write_small
from tests.webgpu_log_files import Dims, write_log
from tools.make_memory_snapshot import encode, make_snapshot
from tools.make_perfetto import Options as PerfettoOptions
from tools.make_perfetto import write_perfetto
from tools.make_xplane import Options, block, write_xplane
from tools.rocprof_maker.rocpd_file import write_rocpd


def kineto() -> bytes:
    """Two kernels, a copy, a set, their calls, and one event of every other kind; some without a row."""
    return write_file(
        [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
            kernel("gemm", "100.001", "2.5", External_id=4, grid=[1, 2, 3], block=[32, 1, 1]),
            kernel("gemm", "110", "2.25", correlation=2, Collective_name="allreduce", In_msg_nelems=4),
            kernel("broken", "110", "-1"),
            event("gpu_memcpy", "Memcpy HtoD", "120", "1", pid=0, tid=7, device=0, stream=7, bytes=64),
            event("gpu_memset", "Memset", "130", "1", pid=0, tid=7, device=0, stream=7, bytes=64),
            call(correlation=1),
            call(correlation=2),
            event("cpu_op", "aten::mm", "80", "50.5", Input_Dims=[[1, 2], []], External_id=4),
            event("cpu_op", "aten::mm", "80"),
            event("python_function", "nn.Module: Linear_0", "70", "80", Python_id=3),
            event("user_annotation", "ProfilerStep#1", "60", "100"),
            event("gpu_user_annotation", "ProfilerStep#1", "100", "31", device=0, stream=7),
            {"ph": "i", "name": "mark", "pid": 1, "tid": 2, "ts": 4, "s": "t"},
            {"ph": "C", "name": "queue", "pid": 1, "ts": 3, "args": {"running": 3}},
            {"ph": "C", "name": "queue", "pid": 1, "ts": 4, "args": {}},
            {"ph": "B", "name": "begun", "pid": 1, "tid": 2, "ts": 4},
            {"ph": "E", "pid": 1, "tid": 2, "ts": 9},
            {"ph": "E", "pid": 1, "tid": 2, "ts": 10},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 2, "ts": 10, "id": 1},
            {"ph": "b", "cat": "async", "name": "a", "pid": 1, "tid": 2, "ts": 10, "id": 1},
            event("cuda_profiler_range", "gemm", "1", "1", **{"dram__bytes.sum": 64}),
            event("quantum", "q", "1", "1"),
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": 1,
                "tid": 2,
                "ts": 90,
                "s": "t",
                "args": {
                    "Total Reserved": 2048,
                    "Total Allocated": 512,
                    "Bytes": 512,
                    "Addr": 64,
                    "Device Id": 0,
                    "Device Type": 1,
                },
            },
        ],
        before={"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]},
    )


def kernel_table() -> bytes:
    """Two tables, a row that can't be read, two tracebacks that begin alike, and a remark."""
    return b"""\
Time(%)\tTotal Time\tInstances\tName
60.0\t600\t3\tvoid ns::gemm_k<int>(int)
40.0\t400\t1\tnorm
12.0\tmuch\t1\tbroken

[rank1]: Traceback (most recent call last):
[rank1]:   File "/a/run.py", line 3, in main
[rank1]:     step()
[rank1]:   File "/a/run.py", line 9, in step
[rank1]: ValueError: no
[rank1]: Traceback (most recent call last):
[rank1]:   File "/a/run.py", line 3, in main
PATH: a/gemm.cu
gemm_k comes first

| Name | Total Time |  Instances |
|---|---:|---:|
| norm | 1.5 ms | 2 |
"""


def nsys() -> bytes:
    """Device work of each kind, its calls with a call chain, ranges, and one row of each table next to."""
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 2, "globalPid": GLOBAL_PID}
    event = {"start": 1, "end": 4, "globalTid": GLOBAL_TID, "nameId": string("forward")}
    tables = export(
        KERNEL=[kernel_row(100, 25), kernel_row(200, 25, demangledName=99), kernel_row(300, -5)],
        MEMCPY=[{"start": 400, "end": 405, **where, "bytes": 512, "copyKind": 1}],
        MEMSET=[{"start": 410, "end": 415, **where, "bytes": 64, "value": 0}],
        GRAPH_TRACE=[{"start": 500, "end": 600, **where, "graphId": 5}],
        RUNTIME=[call_row(90, 5, callchainId=1), call_row(390, 5, correlationId=2, callchainId=None)],
        CUDA_CALLCHAINS=[
            {"id": 1, "symbol": string("main"), "module": string("lib.so"), "stackDepth": 1},
            {"id": 1, "symbol": string("forward"), "module": string("lib.so"), "stackDepth": 0},
        ],
        NVTX_EVENTS=[
            {"start": 80, "end": 700, "eventType": 59, "text": "decode", "globalTid": GLOBAL_TID, "domainId": 0},
            {"start": 85, "end": None, "eventType": 60, "text": "open", "globalTid": GLOBAL_TID, "domainId": 0},
            {"start": 1, "end": None, "eventType": 75, "text": "mine", "globalTid": GLOBAL_TID, "domainId": 3},
        ],
        SYNCHRONIZATION=[{"start": 90, "end": 650, **where, "syncType": 3}],
        CUBLAS_EVENTS=[event],
        OSRT_API=[event],
        GPU_METRICS=[{"timestamp": 5, "typeId": 1, "metricId": 2, "value": 97}],
        DIAGNOSTIC_EVENT=[{"timestamp": 5, "severity": 2, "text": "Events were lost"}],
        CUDA_GRAPH_NODE_EVENTS=[node_row(70, 9), node_row(72, 17, 9), node_row(74, None)],
        SCHED_EVENTS=[{"start": 1, "cpu": 2, "isSchedIn": 1, "globalTid": 4}],
    )
    with TemporaryDirectory() as folder:
        return write_sqlite(Path(folder) / "export.sqlite", tables).read_bytes()


def latencyprism() -> bytes:
    """Two functions in two cycles: without a metric, with two, and rows that can't be read."""
    return write_perf(
        [
            perf_row(function_name="write", metric_name="N/A", mu_pct="", sigma_pct="", interpolation_status=" "),
            perf_row(metric_name="cpu_frequency", mu_pct="87.5"),
            perf_row(metric_name="host_cpu_usage", mu_pct="5.25"),
            perf_row(
                cycle=2, device="GPU 7", func_type="gpu_compute", metric_name="gpu_frequency", mu_pct="141000.0000"
            ),
            perf_row(cycle=2, duration="much"),
            perf_row(cycle="two"),
            perf_row(cycle=3, cycle_start_ts="", anchor_dur_us="-1"),
        ]
    )


def latencyprism_counters() -> bytes:
    """Samples of the host, of a process and of pooled GPUs, and two that can't be read."""
    return write_counters(
        [
            sample_row("cpu_frequency", value="3500.5"),
            sample_row("process_cpu_usage_1.571875e+06"),
            sample_row("gpu_usage"),
            sample_row("gpu_usage", value="much"),
            sample_row("gpu_usage", timestamp=""),
        ]
    )


def llama_bench() -> bytes:
    """A line that the program logged, two tests that differ in threads, one that doesn't say what it did, and a text
    where a number should be.
    """
    alike = {"build_commit": "8cf427ff", "build_number": 5163, "cpu_info": "A CPU", "gpu_info": "", "backends": "CPU"}
    alike |= {"model_type": "llama 1B Q4_0", "flash_attn": False}
    prompt = {"n_threads": 4, "n_prompt": 512, "n_gen": 0, "n_depth": 0, "test_time": "2026-11-26T10:00:00Z"}
    decode = {"n_threads": 8, "n_prompt": 0, "n_gen": 128, "n_depth": 64, "avg_ns": "much", "avg_ts": 100.5}
    tests = [alike | prompt | {"samples_ns": [70_000_000, 72_000_000]}, alike | decode, alike | {"n_prompt": 1}]
    return b"warning: asserts enabled\n" + json.dumps(tests, indent=2).encode()


def llama_log() -> bytes:
    """A graph that ran on Vulkan, an op that counts nothing, a prompt that wasn't timed, an answer, and a server's."""
    return b"""\
llama_model_loader: loaded meta data
----------------
Vulkan Timings:
ADD: 32 x 5.12 us = 163.84 us
MUL_MAT q4_K m=4096 n=1 k=4096: 10 x 55.2 us = 552 us (607.9 GFLOPS/s)
SUM: 0 x 0 us = 0 us
Total time: 715.84 us.
0.00.062.896 I llama_perf_context_print: prompt eval time =       0.00 ms /     1 tokens (  0.00 ms, inf tokens)
0.00.062.898 I llama_perf_context_print:        eval time =       9.84 ms /    11 runs   (    0.89 ms per token)
slot print_timing: id  0 | task 7 | prompt eval time =     108.44 ms /    13 tokens (    8.34 ms per token)
"""


def webgpu_log() -> bytes:
    """A small run with three reports, of which one has a row that can't be read, and lines of no known kind."""
    text = write_log(dims=Dims(layers=2), batches=1, tail=2)
    text = text.replace("matmul:lm_head ", "broken         much        1.0\nmatmul:lm_head ", 1)
    text = text.replace("KernelSelect] attention variant=", "KernelSelect] attention ", 1)
    return (text + "[web] something else\nand free text\n").encode()


def onnxruntime() -> bytes:
    """A run of a node that runs another, a kernel and a call of a GPU's provider, and what has no row."""

    def at(cat: str, name: str, ts: int, dur: int, **args: object) -> str:
        when = f'"pid" :7,"tid" :9,"dur" :{dur},"ts" :{ts},"ph" : "X"'
        return f'{{"cat" : "{cat}",{when},"name" :"{name}","args" : {json.dumps(args)}}}'

    cpu = {"provider": "CPUExecutionProvider", "input_type_shape": [{"float": [1, 64]}, {"int64": []}]}
    events = [
        at("Session", "model_loading_uri", 4, 100),
        at("Node", 'a "b"_kernel_time', 210, 20, op_name="Relu", **cpu),
        at("Node", "gate_kernel_time", 205, 30, op_name="If", **cpu),
        at("Kernel", "gemm", 240, 5, stream="7", grid_x="1", grid_y="2", grid_z="3", block_x=32, block_y=1, block_z=1),
        at("Api", "cudaLaunchKernel", 236, 2),
        at("Session", "model_run", 200, 50),
        at("Node", "late_kernel_time", 260, -1, op_name="Add", **cpu),
        at("Quantum", "q", 1, 1),
    ]
    return ("[\n" + ",\n".join(events) + "\n]\n").encode()


def path_table() -> bytes:
    """Two runs of which one lacks a path, a row that can't be read, and a sentence."""
    return b"""\
Seconds of one call, by call path.
|---------|---------------------|--------|-----------|--------------|
| kernel  | kernel_path         | triton | torch     | triton-torch |
|---------|---------------------|--------|-----------|--------------|
| broken  | main.broken         | much   | more      |              |
|---------|---------------------|--------|-----------|--------------|
| main    | main                | 2.5    | 2.75      | -0.25        |
|---------|---------------------|--------|-----------|--------------|
| forward | main.forward        | 0.5    | 0.625     | -0.125       |
|---------|---------------------|--------|-----------|--------------|
| softmax | main.forward.softmax| 2e-05  | 2.525e-05 | -5.25e-06    |
|---------|---------------------|--------|-----------|--------------|
| argmax  | main.argmax         | 3.5e-5 |           |              |
|---------|---------------------|--------|-----------|--------------|
"""


def mlc() -> bytes:
    """A line of the browser, a chunk, an answer's usage, one with a rate that is none, and a line of statistics."""
    extra = {"e2e_latency_s": 2.5, "prefill_tokens_per_s": 400.5, "decode_tokens_per_s": 50, "time_to_first_token_s": 1}
    usage = {"prompt_tokens": 40, "completion_tokens": 121, "extra": extra}
    chunks = [
        {"model": "Llama", "choices": [{"delta": {"content": "Hello"}}]},
        {"model": "Llama", "choices": [], "usage": usage},
        usage | {"extra": extra | {"decode_tokens_per_s": "fast"}},
    ]
    last = "prefill: 398.2500 tokens/sec, decoding: 49.5000 tokens/sec"
    return f"Fetching param cache\n{json.dumps(chunks)}\n{last}".encode()


def ncu() -> bytes:
    """Two launches on the raw page after what ncu says, in scaled units; a row with too few cells."""
    about = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC"
    launch = '"{}",7,python3,127.0.0.1,"{}",1,7,"(256, 1, 1)","(66, 1, 1)",0,9.0,"{}","{}","{}",Spread'
    lines = [
        "==PROF== Connected to process 7 (/usr/bin/python3)",
        f"{about},gpu__time_duration.sum,dram__bytes_read.sum,launch__grid_size,policy",
        ",,,,,,,,,,,us,Mbyte,,",
        launch.format(0, "gemm<int, 3>", "1.250", "2.5", "1,056"),
        launch.format(1, "norm", "0.75", "nan", "2"),
        "2,7,python3",
    ]
    return "\n".join([*lines, ""]).encode()


def proton() -> bytes:
    """A scope with a kernel and what the program reported, a kernel outside, a time that is none, and a node without
    a name.
    """
    leaf = {"time (ns)": 2500, "count": 2, "device_id": "0", "device_type": "CUDA"}
    scope = {"frame": {"name": "step"}, "metrics": {"flops": 5}, "children": [
        {"frame": {"name": "gemm"}, "metrics": leaf, "children": []},
        {"frame": {"name": "app.py:3@go"}, "metrics": {"time (ns)": "much"}, "children": []},
        {"frame": {}, "metrics": {}, "children": []},
    ]}  # fmt: skip
    alone = {"frame": {"name": "norm"}, "metrics": leaf | {"time (ns)": 750.0}, "children": []}
    root = {"frame": {"name": "ROOT"}, "metrics": {"count": 0, "time (ns)": 0}, "children": [scope, alone]}
    return json.dumps([root, {"CUDA": {"0": {"arch": "90", "num_sms": 132}}}]).encode()


def rocpd() -> bytes:
    """Two runs in one database, of which one has a dispatch that ends before it starts."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        write_rocpd(small_runs(), SMALL, path)
        with closing(sqlite3.connect(path)) as database:
            suffix = "_00000000_0000_0007_0000_000000000000"
            database.execute(f'UPDATE "rocpd_kernel_dispatch{suffix}" SET "end" = 1 WHERE id = 1')
            database.commit()
        return path.read_bytes()


def rocprof() -> bytes:
    """Two processes with work and calls of each kind, a kernel without a symbol and one that ends before it starts."""
    with TemporaryDirectory() as folder:
        data = write_small(Path(folder) / "run.json").read_bytes()
    return data.replace(b'"end_timestamp": 6', b'"end_timestamp": 1', 1)


def tensorrt() -> bytes:
    """The three files of a run, one after the other: layers, one with quotes in its name and one with a time that is
    none, queries, and tactics, one without.
    """
    layers = ["a + b", 'node "c"', "d"]
    times = ["1.5", "0.25", '"much"']
    row = ', {{ "name" : "{}", "timeMs" : {}, "averageMs" : 0.5, "medianMs" : 0.25 }}'
    profile = ['[\n  { "count" : 3 }', *(row.format(name, ms) for name, ms in zip(layers, times, strict=True)), "]"]
    query = {"startEnqMs": 0.5, "startH2dMs": 1, "h2dMs": 0, "computeMs": 0.75, "d2hMs": 0.125, "latencyMs": 0.875}
    info = {
        "Layers": [{"Name": "a + b", "LayerType": "Gemm", "TacticName": "sm80_gemm"}, {"Name": "d"}],
        "Bindings": [],
    }
    files = ["\n".join(profile), json.dumps([query, query | {"latencyMs": 1}]), json.dumps(info)]
    return "\n".join(files).encode()


def execution_trace() -> bytes:
    """Two ops, one in the other, and the nodes of the process and of its thread; one node without a name."""
    given = {"values": [[1, 2, 0, 6, 4, "cpu"], 3], "shapes": [[2, 3], []], "types": ["Tensor(float)", "Int"]}
    given["strides"] = [[3, 1], []]
    attrs = [{"name": "rf_id", "type": "uint64", "value": 7}, {"name": "tid", "type": "uint64", "value": 1}]
    names = ["[pytorch|profiler|execution_trace|thread]", "aten::linear", "aten::addmm", None]
    nodes = [
        {"id": at, "name": name, "ctrl_deps": at - 1, "inputs": given, "outputs": given, "attrs": attrs}
        for at, name in enumerate(names, start=2)
    ]
    return json.dumps({"schema": "1.1.1", "pid": 5, "start_ts": 1, "nodes": nodes, "finish_ts": 2}).encode()


def torch_memory() -> bytes:
    """The last events of a few blocks, one that can't be read, and an action that nobody knows."""
    snapshot, _ = make_snapshot(events=12, keep=8)
    snapshot["segments"][0]["blocks"].append({"state": "inactive"})
    snapshot["device_traces"][0].append({"action": "dance", "addr": 1, "size": 2, "time_us": 1})
    return encode(snapshot, ".pickle")


def xplane() -> bytes:
    """A GPU's launches with their calls and instructions, and what has no row: lines of a viewer, an aggregate."""
    return write_xplane(Options(steps=1))[0]


def perfetto() -> bytes:
    """A line of Android's log, which has no row; launches and calls of AMD's, ops and frames of PyTorch's."""
    return block(1, block(39, b"\x0a\x00")) + write_perfetto(PerfettoOptions(steps=1, ops=True))[0]


SAMPLES: dict[str, Callable[[], bytes]] = {
    "kineto": kineto,
    "kernel-table": kernel_table,
    "latencyprism": latencyprism,
    "llama-bench": llama_bench,
    "llama-log": llama_log,
    "mlc": mlc,
    "ncu": ncu,
    "nsys": nsys,
    "onnxruntime": onnxruntime,
    "path-table": path_table,
    "perfetto": perfetto,
    "execution-trace": execution_trace,
    "proton": proton,
    "rocpd": rocpd,
    "rocprof": rocprof,
    "tensorrt": tensorrt,
    "torch-memory": torch_memory,
    "webgpu-log": webgpu_log,
    "xplane": xplane,
}
NAMES = {"latencyprism": "perf_data.csv"}
BESIDE: dict[str, dict[str, Callable[[], bytes]]] = {"latencyprism": {"counters_data.csv": latencyprism_counters}}
"""The name of a sample's file where it matters, and the files that belong next to it."""
