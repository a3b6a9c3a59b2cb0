"""Rows of zeros, and where the contract rounds."""

import pytest

from inferometer.operators.catalogue.fused_rmsnorm_quant import reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


def test_a_row_of_zeros_has_the_scale_one() -> None:
    x = torch.ones(2, 8, dtype=torch.bfloat16)
    residual = torch.tensor([[-1.0], [1.0]], dtype=torch.bfloat16).expand(2, 8)
    quantized, scale, added = reference(x, residual, torch.ones(8, dtype=torch.bfloat16))
    assert not quantized[0].float().any()
    assert not added[0].any()
    assert scale[:, 0].tolist() == pytest.approx([1.0, 1 / 240])


def test_the_sum_is_rounded_before_the_norm() -> None:
    x = torch.tensor([[1.0, 2.0**-9]], dtype=torch.bfloat16)
    residual = torch.tensor([[0.0, 1.0]], dtype=torch.bfloat16)
    quantized, _, added = reference(x, residual, torch.ones(2, dtype=torch.bfloat16))
    assert added.tolist() == [[1.0, 1.0]]
    assert quantized.float().tolist() == [[240.0, 240.0]]
