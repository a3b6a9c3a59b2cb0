"""What stays as it is, and where the norm is rounded."""

import pytest

from inferometer.operators.catalogue.fused_qk_rmsnorm import reference


def test_values_pass_through_to_the_bit() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    qkv = torch.randn(3, 4 * 8, generator=torch.Generator().manual_seed(1)).half()
    qkv[0, -1] = float("nan")
    weight = torch.full((8,), 2.0).half()
    out = reference(qkv, weight, weight, head_num=2, kv_head_num=1)
    assert torch.equal(out[:, 24:].view(torch.int16), qkv[:, 24:].view(torch.int16))
    assert torch.isfinite(out[:, :24]).all()


def test_the_norm_is_rounded_before_the_weight() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    head, weight = torch.arange(1, 64).bfloat16(), torch.full((63,), 1.5).bfloat16()
    out = reference(head.repeat(1, 3), weight, weight, head_num=1, kv_head_num=1, eps=0.0)
    normed = head.float() * head.float().square().mean().rsqrt()
    assert torch.equal(out[0, :63], normed.bfloat16() * weight)
    assert not torch.equal(out[0, :63], (normed * 1.5).bfloat16())
