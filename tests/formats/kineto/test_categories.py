"""What becomes of each of Kineto's categories of events, and of what other accelerators and tools write."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from tests.formats.kineto.test_columns import Read
from tests.kineto_files import call, event, kernel, write_file
from tests.traces import rows

import inferometer

ROOT = Path(__file__).parents[3]
TABLES = {
    "launches": "kernel gpu_memcpy gpu_memset mtia_ccp_events",
    "calls": "cuda_runtime cuda_driver mtia_runtime glow_runtime hpu_op xpu_runtime xpu_driver privateuse1_runtime "
    "privateuse1_driver hip_runtime hip_driver",
    "ops": "cpu_op",
    "frames": "python_function",
    "spans": "user_annotation gpu_user_annotation overhead mtia_insight cuda_sync cuda_event collective_comm xpu_sync "
    "Trace",
    "counters": "mtia_counters xpu_scope_profiler hardware_counters",
    "counters, memory_events": "cpu_instant_event",
    "kernel_counters": "cuda_profiler_range",
    "": "external_correlation ac2g fwdbwd",
}


@pytest.fixture(scope="module")
def made() -> Iterator[ModuleType]:
    """What the page of the documentation is made by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield import_module("kineto_events")


@pytest.mark.parametrize(
    ("category", "tables"), [(name, tables) for tables, names in TABLES.items() for name in names.split()]
)
def test_each_category_has_its_tables_or_is_counted(made: ModuleType, category: str, tables: str) -> None:
    trace = made.read_one(category)
    assert made.outcome(trace)[0] == tables
    assert trace.losses.seen.total() == 1
    assert trace.losses.dropped() == (0 if tables else 1)


def test_the_page_has_all_of_them(made: ModuleType) -> None:
    assert {*made.TYPES, *made.OTHERS} == {name for names in TABLES.values() for name in names.split()}


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_the_page_has_all_activity_types_of_the_installed_libkineto(made: ModuleType) -> None:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    header = Path(spec.origin).parent / "include" / "kineto" / "ActivityType.h"
    if not header.is_file():
        pytest.skip("this build of PyTorch has no header of libkineto")
    names = re.findall(r'\{"(\w+)", ActivityType::', header.read_text())
    assert len(names) > 20
    assert set(names) - {"ENUM_COUNT"} <= set(made.TYPES)


def test_a_kernel_of_an_xpu_has_no_stream_of_its_own(read: Read) -> None:
    args = {"device": 1, "correlation": 5, "sycl queue": "0x55d", "l0 queue": "0x1", "kernel id": 3}
    work = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 9, "ts": 4, "dur": 2, "args": args}
    trace = read(write_file([work, event("xpu_runtime", "urEnqueueKernelLaunch", "1", "1", correlation=5)]).decode())
    assert rows(trace, "launches", "kernel", "device", "stream", "correlation_id") == [("gemm", "gpu:1", 9, 5)]
    assert rows(trace, "calls", "api", "correlation_id") == [("urEnqueueKernelLaunch", 5)]


def test_a_collective_of_mtia_is_one_on_its_device(read: Read) -> None:
    said = {"Collective_name": "allreduce", "In_msg_nelems": 8, "Out_msg_nelems": 8, "Group_size": 2, "dtype": "Float"}
    work = event("mtia_ccp_events", "hccl::all_reduce", "4", "2", pid=2, tid=1, device=2, stream=3, **said)
    trace = read(write_file([work]).decode())
    assert rows(trace, "collectives", "kernel", "device", "stream", "collective", "elements_in", "group_size") == [
        ("hccl::all_reduce", "mtia:2", 3, "allreduce", 8, 2)
    ]
    assert rows(read(write_file([work]).decode(), {"launches"}), "launches", "kernel", "device") == [
        ("hccl::all_reduce", "mtia:2")
    ]


def test_a_hardware_counter_is_of_the_device_that_its_process_names(read: Read) -> None:
    events = [{"ph": "C", "cat": "hardware_counters", "name": "sm__cycles", "pid": "GPU 3 Counters", "ts": at,
               "args": {"": at * 10}} for at in (1, 2)]  # fmt: skip
    trace = read(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert rows(trace, "counters", "metric", "device", "process", "time_ns", "value") == [
        ("sm__cycles", "gpu:3", None, 1_000, 10.0),
        ("sm__cycles", "gpu:3", None, 2_000, 20.0),
    ]


def test_arrows_that_disagree_with_correlations_are_not_believed(read: Read) -> None:
    arrows = [{"ph": phase, "cat": "ac2g", "name": "ac2g", "id": 99, "pid": 1, "tid": 2, "ts": 90, "bp": "e"}
              for phase in "sf"]  # fmt: skip
    work = [kernel("a", correlation=1), kernel("b", "110", correlation=2), call(correlation=1), call(correlation=2)]
    with_them, without = (read(write_file(events).decode()) for events in ([*work, *arrows], work))
    for table in ("launches", "calls"):
        assert with_them.tables[table].collect().equals(without.tables[table].collect())
    assert [(loss.name, loss.count) for loss in with_them.losses] == [("flow_event", 2)]


def test_a_file_that_dynolog_is_still_writing_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = write_file([kernel("a"), kernel("b", "110"), call()])
    path = tmp_path / "trace_1234.json.tmp"
    path.write_bytes(whole[: whole.index(b'"b"') + 40])
    trace = inferometer.open(path)
    assert rows(trace, "launches", "kernel") == ["a"]
    assert "truncated" in {loss.name for loss in trace.losses}
