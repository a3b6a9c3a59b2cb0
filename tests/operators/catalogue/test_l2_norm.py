"""Where eps goes."""

import pytest

from inferometer.operators.catalogue.l2_norm import reference


def test_eps_is_added_to_the_sum_of_squares_and_keeps_zeros() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    x = torch.tensor([[1.0] * 12, [0.0] * 12], dtype=torch.bfloat16)
    assert reference(x, eps=4.0).tolist() == [[0.25] * 12, [0.0] * 12]
