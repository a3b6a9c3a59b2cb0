"""The variance of rows that are far from 0."""

import pytest

from inferometer.operators.catalogue.layer_norm import reference


def test_a_large_mean_does_not_swallow_the_variance() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    x = torch.tensor([[2.0**13, 2.0**13 + 64] * 4], dtype=torch.bfloat16)
    weight, bias = torch.ones(8, dtype=torch.bfloat16), torch.zeros(8, dtype=torch.bfloat16)
    assert reference(x, weight, bias).tolist() == [[-1.0, 1.0] * 4]


def test_equal_columns_give_the_bias() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    x = torch.full((2, 1, 8), 3.0, dtype=torch.bfloat16)
    bias = torch.arange(8).bfloat16()
    assert torch.equal(reference(x, bias, bias), bias.expand(2, 1, 8))
