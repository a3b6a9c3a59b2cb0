"""A grouped `conv1d` over the carried-in tokens and the call's own, joined by a copy; SiLU in place.

The convolution's sums are rounded to bf16 before SiLU, which PyTorch has no fused form for.

D channels, T tokens, W width.
"""

import torch
from torch import Tensor
from torch.nn.functional import conv1d, silu


def causal_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor, initial_state: Tensor, *, activation: str | None = "silu"
) -> Tensor:
    """[D, T] in the dtype of `x`; `initial_state` is [1, D, W - 1]; `activation` None gives the bare convolution."""
    padded_1DX = torch.cat([initial_state, x[None]], 2)  # X = W - 1 + T
    out_DT = conv1d(padded_1DX, weight[:, None], bias, groups=x.shape[0])[0]
    return out_DT if activation is None else silu(out_DT, inplace=True)
