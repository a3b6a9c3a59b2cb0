"""Positions and bias of fused_qkv_rope."""

import pytest

from inferometer.operators.catalogue.fused_qkv_rope import OPERATOR, reference

HEADS = {"num_heads": 1, "num_kv_heads": 1, "head_dim": 16, "rope_dim": 16}


def test_at_position_0_nothing_turns_and_inputs_are_never_there() -> None:
    torch = pytest.importorskip("torch")
    row = torch.randn(1, 48, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.cat(reference(row, torch.tensor([0]), **HEADS), -1)[0, 0], row[0])
    for shape in OPERATOR.catalogue().shapes:
        assert OPERATOR.inputs(**shape.args, seed=2)["positions"].min() > 0


def test_a_query_and_a_key_tell_only_how_far_they_are_apart() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.randn(1, 48, generator=torch.Generator().manual_seed(1)).expand(4, -1)
    q, k, _ = reference(rows, torch.tensor([3, 10, 103, 110]), **HEADS)
    near, far = (q[0] * k[1]).sum(), (q[2] * k[3]).sum()
    torch.testing.assert_close(near, far, rtol=1e-4, atol=1e-4)
    assert abs(near - (q[0] * k[2]).sum()) > 0.1


def test_the_sum_with_the_bias_is_rounded_before_it_turns() -> None:
    torch = pytest.importorskip("torch")
    row, bias = torch.full((1, 48), 1024.0, dtype=torch.float16), torch.full((48,), 0.4, dtype=torch.float16)
    bare, lost = (reference(row, torch.tensor([5]), one, **HEADS) for one in (None, bias))
    assert all(torch.equal(a, b) for a, b in zip(bare, lost, strict=True))
