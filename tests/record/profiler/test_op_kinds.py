"""What an op does, asked of PyTorch's dispatcher, and the list that is read where there is none."""

import pytest

from inferometer.formats.kineto.cpu_launches import kind_of_torch_op
from inferometer.record.profiler.op_kinds import OpKinds

torch = pytest.importorskip("torch", reason="torch isn't installed")


def test_dispatcher_tells_what_ops_do() -> None:
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


def test_the_list_says_what_the_dispatcher_does() -> None:
    """Of another version of PyTorch a few ops may do otherwise, or be new."""
    does = OpKinds()
    names = {each.name for each in torch._C._jit_get_all_schemas() if each.name.startswith("aten::")}
    other = {name for name in names if does(name) != kind_of_torch_op(name)}
    assert len(names) > 1_000
    assert len(other) <= (0 if torch.__version__.startswith("2.13.") else 0.05 * len(names)), sorted(other)[:20]
