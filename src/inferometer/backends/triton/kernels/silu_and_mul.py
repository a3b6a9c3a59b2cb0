"""SwiGLU's activation of rows that hold the gate and then the up-projection, by the kernel of `gated_mul.py`."""

from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows
from inferometer.backends.triton.kernels.gated_mul import silu_mul


def silu_and_mul(x: Tensor) -> Tensor:
    """A new [..., D] of [..., 2 D]."""
    rows = as_rows(x)
    gate, up = rows.chunk(2, -1)
    return silu_mul(gate, up).view(*x.shape[:-1], x.shape[-1] // 2)
