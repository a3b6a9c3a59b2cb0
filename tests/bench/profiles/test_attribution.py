"""Whose code the time went to: shares add up to 1, own kernels are recognised from others."""

import math
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from tests.kineto_files import Event, event, kernel, write_file

import inferometer
from inferometer.bench.profiles.attribution import REST, attribute_device, attribute_host
from inferometer.bench.profiles.kernel_times import kernel_times
from inferometer.errors import FormatError


def write(folder: Path, events: Iterable[Event]) -> Path:
    path = folder / "trace.json"
    path.write_bytes(write_file(events))
    return path


def range_of(number: int, ts: str, dur: str) -> Event:
    return event("user_annotation", f"inferometer.call {number}", ts, dur)


def launched(correlation: int, at: str, name: str, ts: str, dur: str) -> list[Event]:
    return [
        event("cuda_runtime", "cudaLaunchKernel", at, "1", correlation=correlation),
        kernel(name, ts, dur, correlation=correlation),
    ]


def op(name: str, ts: str, dur: str, tid: int = 2) -> Event:
    return event("cpu_op", name, ts, dur, tid=tid)


GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn"


def test_device_time_by_kernel_with_own_ones_told(tmp_path: Path) -> None:
    events = [range_of(0, "10", "5"), range_of(1, "20", "5")]
    events += launched(1, "11", "void mine<float>(float*)", "30", "4") + launched(2, "21", "_Z4mineIdEvPT_", "40", "2")
    events += launched(3, "12", GEMM, "50", "10") + launched(4, "22", "library_thing", "70", "4")
    events += launched(5, "17", "flush", "80", "100")  # between calls
    found = attribute_device(write(tmp_path, events), frozenset({"mine"}))
    assert found.of == "device"
    assert found.own == pytest.approx(0.3)
    assert list(found.by_name.values()) == pytest.approx([0.5, 0.3, 0.2])
    gemm, own, _ = found.by_name
    assert "cublas" in gemm
    assert own == "mine"
    assert math.fsum(found.by_name.values()) == pytest.approx(1)


def test_device_time_of_candidates_whose_kernels_arent_known(tmp_path: Path) -> None:
    path = write(tmp_path, [range_of(0, "10", "5"), *launched(1, "11", "k", "30", "4")])
    assert attribute_device(path, None).own is None
    assert attribute_device(path, frozenset()).own == 0
    assert attribute_device(path, frozenset({"k"})).own == 1


def test_no_device_time_is_nobodys(tmp_path: Path) -> None:
    found = attribute_device(write(tmp_path, [range_of(0, "10", "5")]), frozenset({"k"}))
    assert (found.own, found.by_name) == (None, {})


def test_names_of_one_label_are_added(tmp_path: Path) -> None:
    copies = [launched(i, f"1{i}", "Memcpy DtoD (Device -> Device)", f"{30 + i}", "1") for i in range(3)]
    found = attribute_device(
        write(tmp_path, [range_of(0, "10", "5"), *(each for pair in copies for each in pair)]), None
    )
    assert list(found.by_name.values()) == [1]


def test_host_time_by_outermost_op_and_the_rest_is_python(tmp_path: Path) -> None:
    events = [range_of(0, "100", "50"), range_of(1, "200", "50")]
    events += [op("aten::matmul", "110", "20"), op("aten::mm", "111", "18"), op("aten::add", "130", "10")]
    events += [op("aten::add", "210", "5"), op("aten::mul", "211", "1")]
    events += [op("aten::sum", "160", "10"), op("aten::sum", "220", "3", tid=77)]  # outside; on another thread
    found = attribute_host(write(tmp_path, events), own_ns=25_000)
    assert found.of == "host"
    assert found.own == 0.25
    assert found.by_name == pytest.approx({REST: 0.65, "aten::matmul": 0.2, "aten::add": 0.15})
    assert list(found.by_name) == [REST, "aten::matmul", "aten::add"]


def test_an_op_that_outlasts_its_call_is_cut_so_that_time_is_conserved(tmp_path: Path) -> None:
    events = [range_of(0, "100", "10"), op("aten::add", "105", "20"), op("aten::mul", "106", "30")]
    found = attribute_host(write(tmp_path, events), None)
    assert found.by_name == {"aten::add": 0.5, REST: 0.5}
    assert found.own is None


def test_a_host_without_ops_is_all_python(tmp_path: Path) -> None:
    assert attribute_host(write(tmp_path, [range_of(0, "100", "10")]), None).by_name == {REST: 1}


def test_without_calls_there_is_nothing_to_share(tmp_path: Path) -> None:
    path = write(tmp_path, [kernel(), op("aten::add", "1", "2")])
    for attribute in (attribute_device, attribute_host):
        with pytest.raises(FormatError, match=r"inferometer\.call 0"):
            attribute(path, None)


RECORDED = """
import sys, time, torch
from torch.profiler import ProfilerActivity, profile, record_function
x, python_ns = torch.randn(256, 256), 0
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    for i in range(5):
        with record_function(f"inferometer.call {i}"):
            y = torch.nn.functional.layer_norm(x @ x, (256,))
            began_ns = time.perf_counter_ns()
            sum(range(20_000))
            python_ns += time.perf_counter_ns() - began_ns
        y.exp()
profiled.export_chrome_trace(sys.argv[1])
print(python_ns)
"""


def test_what_the_profiler_of_torch_writes_on_a_cpu(tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch isn't installed")
    path = tmp_path / "cpu.json.gz"
    ran = subprocess.run([sys.executable, "-c", RECORDED, str(path)], check=True, capture_output=True, timeout=120)
    found = attribute_host(path, None)
    assert {"aten::matmul", "aten::layer_norm", REST} <= set(found.by_name)
    assert not {"aten::mm", "aten::native_layer_norm", "aten::exp"} & set(found.by_name)
    assert math.fsum(found.by_name.values()) == pytest.approx(1)
    with inferometer.open(path) as trace:
        calls = trace.spans.filter(pl.col("span").str.starts_with("inferometer.call"))
        whole_ns = calls.select(pl.col("dur_ns").sum()).collect().item()
    assert found.by_name[REST] * whole_ns > 0.99 * int(ran.stdout.split()[-1])  # its loops, on another clock
    times = kernel_times(path)
    assert times.numbers.tolist() == [0, 1, 2, 3, 4]
    assert times.launches.tolist() == [0, 0, 0, 0, 0]
