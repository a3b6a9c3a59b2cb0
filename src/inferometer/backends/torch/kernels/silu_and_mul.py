"""SwiGLU's activation in plain PyTorch: SiLU, rounded as the contract has it, then a multiply in its memory."""

from torch import Tensor
from torch.nn import functional


def silu_and_mul(x: Tensor) -> Tensor:
    """[..., D] of [..., 2 D]."""
    gate, up = x.chunk(2, -1)
    return functional.silu(gate).mul_(up)
