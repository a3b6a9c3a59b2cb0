"""One small sample for each registered format: bytes that hold a row of every table that the format fills.

A new format adds its sample here; the conformance tests pick it up, and fail for a format without one.
"""

from collections.abc import Callable

from tests.kineto_files import call, event, kernel, write_file


def kineto() -> bytes:
    """Two kernels, a copy, a set, their calls, and one event of every other kind; some without a row."""
    return write_file(
        [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
            kernel("gemm", "100.001", "2.5", External_id=4, grid=[1, 2, 3], block=[32, 1, 1]),
            kernel("gemm", "110", "2.25", correlation=2),
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
            event("quantum", "q", "1", "1"),
        ],
        before={"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]},
    )


SAMPLES: dict[str, Callable[[], bytes]] = {"kineto": kineto}
