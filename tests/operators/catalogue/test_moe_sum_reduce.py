"""In which dtype the experts are added."""

import pytest

from inferometer.operators.catalogue.moe_sum_reduce import reference


def test_experts_are_added_in_float32_and_rounded_once() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    outputs = torch.tensor([256.0] + [0.5] * 8, dtype=torch.bfloat16).reshape(1, 9, 1)
    assert reference(outputs).item() == 260.0
    assert reference(outputs, routed_scaling_factor=0.5).item() == 130.0
