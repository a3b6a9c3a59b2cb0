"""Inputs of the scaled FP8 product: each tile uses the whole range and keeps its longest weight."""

import pytest
from tests.operators.agreement import as_float64

from inferometer.operators.catalogue.block_scaled_mm import inputs, reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


@pytest.mark.parametrize(("fp8_dtype", "most"), [("fp8_e4m3fn", 448.0), ("fp8_e4m3fnuz", 240.0)])
def test_no_weight_saturates_whatever_its_sign(fp8_dtype: str, most: float) -> None:
    drawn = inputs(m=1, n=80, k=96, group_n=32, group_k=32, fp8_dtype=fp8_dtype, seed=5)
    b = as_float64(drawn["b"])
    tiles = [b[row : row + 32, at : at + 32] for row in range(0, 80, 32) for at in range(0, 96, 32)]
    assert {abs(tile).max() for tile in tiles} == {most}
    assert any(tile.min() == -most < tile.max() < most for tile in tiles)
    # Were a scale too small, many would sit at the largest value: about one in 20 of normal weights at half of it.
    assert max((abs(tile) == most).sum() for tile in tiles) <= 6


def test_outputs_are_neither_tiny_nor_huge() -> None:
    out = reference(*inputs(m=64, n=65, k=256, seed=5).values())
    assert 1 < out.std() < 10
