"""What is normed is the rounded sum, not the sum."""

import pytest

from inferometer.operators.catalogue.fused_add_rms_norm import reference


def test_the_sum_is_rounded_before_the_norm() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    x, residual = (torch.tensor([row], dtype=torch.bfloat16) for row in ([0.5, 0.0], [256.0, 1.0]))
    out, added = reference(x, residual, torch.ones(2, dtype=torch.bfloat16), eps=0.0)
    assert added.tolist() == [[256.0, 1.0]]
    alone, _ = reference(torch.zeros_like(x), residual, torch.ones(2, dtype=torch.bfloat16), eps=0.0)
    assert torch.equal(out, alone)


def test_a_row_of_zeros_stays_zeros() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    zeros = torch.zeros(1, 8, dtype=torch.bfloat16)
    out, added = reference(zeros, zeros, torch.ones(8, dtype=torch.bfloat16))
    assert not out.any()
    assert not added.any()
