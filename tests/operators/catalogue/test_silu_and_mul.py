"""Where SiLU is rounded, and its ends."""

import pytest

from inferometer.operators.catalogue.silu_and_mul import reference


def test_silu_is_rounded_before_the_product() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    up = torch.arange(1, 64).bfloat16()
    out = reference(torch.cat([torch.ones_like(up), up]))
    assert torch.equal(out, (0.73046875 * up.float()).bfloat16())
    assert not torch.equal(out, (0.7310586 * up.float()).bfloat16())


def test_large_gates_are_zero_or_the_line() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    x = torch.tensor([[-1e30, 256.0, 2.0, 3.0]], dtype=torch.bfloat16)
    assert reference(x).tolist() == [[0.0, 768.0]]
