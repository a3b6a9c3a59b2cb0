import polars as pl
import pytest

from inferometer.record.profiler.cpu_launches import Kind, OpKinds, find_cpu_launches

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


def test_dispatcher_tells_what_ops_do() -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    does = OpKinds()
    composed = (
        "aten::linear",
        "aten::matmul",
        "aten::resolve_conj",
        "aten::reshape",
        "aten::scaled_dot_product_attention",
    )
    assert {does(name) for name in composed} == {"composed"}
    assert {does(name) for name in ("aten::t", "aten::view", "aten::slice", "aten::empty", "aten::empty_strided")} == {
        "view"
    }
    assert {does(name) for name in ("aten::mm", "aten::relu", "aten::add.Tensor", "aten::add_", "mine::op")} == {
        "compute"
    }
