"""L2 norm in plain PyTorch: a fused RMS norm, which is the L2 norm times the root of H. T rows, H columns.

The factor goes in as the weight, so rows are read once and written once. PyTorch's own `normalize` reads them twice,
and adds no eps to the sum.
"""

from torch import Tensor
from torch.nn import functional


def l2_norm(x: Tensor, *, eps: float = 1e-6) -> Tensor:
    """[T, H] like `x`. The factor H^-0.5 is rounded to bf16: at most 0.2 % off, 0.01 % for 2048 columns."""
    H = x.shape[-1]
    return functional.rms_norm(x, (H,), x.new_full((H,), H**-0.5), eps / H)
