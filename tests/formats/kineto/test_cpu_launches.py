"""Ops of a file that knows no GPU are launches of the processor; of any other file they are not."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from inferometer.formats.kineto.cpu_launches import NOTE, Kind, find_cpu_launches, kind_of_torch_op
from inferometer.formats.opening import open_trace
from inferometer.trace.trace import Trace

_KINDS: dict[str, Kind] = {
    "aten::linear": "composed",
    "aten::t": "view",
    "aten::addmm": "compute",
    "aten::copy_": "compute",
}


def _ops(*rows: tuple[str, int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["op", "thread", "start_ns", "dur_ns"], orient="row").with_columns(
        pl.lit(10).alias("process"), pl.int_range(pl.len()).alias("external_id")
    )


def _launches(ops: pl.DataFrame) -> list[tuple[str, int, int]]:
    found = find_cpu_launches(ops, _KINDS.__getitem__)
    return list(found.sort("start_ns").select("kernel", "start_ns", "stream").iter_rows())


def test_outermost_computing_op_is_the_launch() -> None:
    ops = _ops(
        ("aten::linear", 1, 0, 100),
        ("aten::t", 1, 5, 10),
        ("aten::addmm", 1, 20, 70),
        ("aten::copy_", 1, 30, 5),
        ("aten::copy_", 1, 95, 3),
        ("AddmmBackward0", 1, 200, 50),
        ("autograd::engine::evaluate_function: AddmmBackward0", 1, 199, 60),
        ("aten::addmm", 1, 210, 20),
    )
    assert _launches(ops) == [("aten::addmm", 20, 1), ("aten::copy_", 95, 1), ("aten::addmm", 210, 1)]
    assert _launches(ops.sample(fraction=1.0, shuffle=True, seed=3)) == _launches(ops)


def test_threads_hide_nothing_from_each_other() -> None:
    ops = _ops(("aten::addmm", 1, 0, 100), ("aten::copy_", 2, 10, 10))
    assert _launches(ops) == [("aten::addmm", 0, 1), ("aten::copy_", 10, 2)]


def test_what_a_view_calls_is_no_launch() -> None:
    assert _launches(_ops(("aten::t", 1, 0, 100), ("aten::copy_", 1, 10, 10))) == []


def test_launches_carry_their_op() -> None:
    found = find_cpu_launches(_ops(("aten::t", 1, 0, 5), ("aten::addmm", 1, 10, 5)), _KINDS.__getitem__)
    assert found.select("kind", "device", "process", "external_id", "dur_ns").rows() == [("kernel", "cpu", 10, 1, 5)]


def test_processes_hide_nothing_from_each_other() -> None:
    ops = _ops(("aten::addmm", 1, 0, 100), ("aten::copy_", 1, 10, 10)).with_columns(process=pl.Series([10, 11]))
    assert len(_launches(ops)) == 2


def test_what_ops_do_is_known_without_pytorch() -> None:
    assert {kind_of_torch_op(name) for name in ("aten::linear", "aten::matmul", "aten::reshape")} == {"composed"}
    assert {kind_of_torch_op(name) for name in ("aten::t", "aten::view", "aten::empty_strided")} == {"view"}
    assert {kind_of_torch_op(name) for name in ("aten::mm", "aten::add.Tensor", "vllm::t", "odd")} == {"compute"}


def event(
    name: str, start_us: float, dur_us: float, cat: str = "cpu_op", args: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    where = {"pid": 10, "tid": 1, "ts": start_us, "dur": dur_us}
    return {"ph": "X", "cat": cat, "name": name, **where, "args": args or {}}


HOST = [
    event("aten::linear", 0, 100, args={"External id": 1}),
    event("aten::t", 5, 10, args={"External id": 2}),
    event("aten::addmm", 20, 70, args={"External id": 3}),
    event("vllm::attention", 200, 50, args={"External id": 4}),
    event("aten::copy_", 210, 5, args={"External id": 5}),
]


def written(folder: Path, events: Iterable[dict[str, Any]], devices: Sequence[Any] | None = ()) -> Path:
    path = folder / "trace.json"
    known = {} if devices is None else {"deviceProperties": list(devices)}
    path.write_bytes(
        msgspec.json.encode({"schemaVersion": 1, **known, "distributedInfo": {"rank": 3}, "traceEvents": list(events)})
    )
    return path


def launches(trace: Trace) -> list[tuple[Any, ...]]:
    columns = ("kernel", "device", "stream", "process", "start_ns", "dur_ns", "external_id", "rank")
    return trace.launches.select(columns).collect().rows()


EXPECTED = [
    ("aten::addmm", "cpu", 1, 10, 20_000, 70_000, 3, 3),
    ("vllm::attention", "cpu", 1, 10, 200_000, 50_000, 4, 3),
]


@pytest.mark.parametrize("tables", [None, {"launches"}, {"launches", "ops"}, {"launches", "ops", "calls"}])
def test_a_file_without_a_gpu_has_launches_of_its_ops(tables: set[str] | None, tmp_path: Path) -> None:
    with open_trace(written(tmp_path, HOST), tables=tables) as trace:
        assert launches(trace) == EXPECTED
        assert [device.device for device in trace.facts.devices] == ["cpu"]
        assert NOTE in trace.facts.notes
        assert not any(loss.dropped for loss in trace.losses)


@pytest.mark.parametrize(
    ("events", "devices"),
    [
        (HOST, [{"id": 0, "name": "NVIDIA H100"}]),
        (HOST, None),
        ([*HOST, event("cudaLaunchKernel", 30, 5, "cuda_runtime", {"correlation": 1})], []),
        ([event("aten::linear", 0, 100), event("aten::t", 5, 10)], []),
    ],
    ids=["a GPU that was not recorded", "nothing said of devices", "calls to a driver", "nothing computed"],
)
@pytest.mark.parametrize("tables", [None, {"launches"}])
def test_no_other_file_has(
    events: list[dict[str, Any]], devices: list[Any] | None, tables: set[str] | None, tmp_path: Path
) -> None:
    with open_trace(written(tmp_path, events, devices), tables=tables) as trace:
        assert launches(trace) == []
        assert not any(device.device == "cpu" for device in trace.facts.devices)
        assert NOTE not in trace.facts.notes


def test_work_of_a_device_is_never_joined_by_ops(tmp_path: Path) -> None:
    kernel = event("gemm", 40, 30, "kernel", {"device": 0, "stream": 7, "correlation": 1})
    with open_trace(written(tmp_path, [*HOST, kernel])) as trace:
        assert [name for name, *_ in launches(trace)] == ["gemm"]


def test_what_is_lost_of_the_ops_is_told_of_the_launches(tmp_path: Path) -> None:
    path = written(tmp_path, [*HOST, {**event("aten::mm", 300, 5), "ts": "soon"}])
    for tables in (None, {"launches"}):
        with open_trace(path, tables=tables) as trace:
            assert launches(trace) == EXPECTED
            assert trace.losses.total(category="cpu_op") == 1
