"""Sum over the experts of a token in plain PyTorch: one reduction, float32 inside; a factor but 1 costs a multiply.

T tokens, k experts a token, H hidden size.
"""

from torch import Tensor


def moe_sum_reduce(expert_outputs: Tensor, *, routed_scaling_factor: float = 1.0) -> Tensor:
    """[T, H] of [T, k, H]; a factor rounds it a second time."""
    out_TH = expert_outputs.sum(1)
    return out_TH if routed_scaling_factor == 1.0 else out_TH.mul_(routed_scaling_factor)
