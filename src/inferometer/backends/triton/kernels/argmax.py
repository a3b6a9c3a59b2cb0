# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The place of the largest of each row, of equals the first. B rows, V columns."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, on_device_of, warps_for
from inferometer.backends.triton.kernels._ordering import read

_PART = 8_192


@triton.jit
def largest_places(logits, out, V, stride, BLOCK: tl.constexpr):
    """A program a row. NaN counts as the largest, as in PyTorch."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    best = tl.zeros([BLOCK], tl.uint32)
    place = tl.zeros([BLOCK], tl.int32)
    for start in range(0, V, BLOCK):
        _values, keys = read(logits + row * stride, start + column, V)
        place = tl.where(keys > best, start + column, place)
        best = tl.maximum(best, keys)
    top = tl.max(best, 0)
    tl.store(out + row, tl.min(tl.where(best == top, place, V), 0).to(tl.int64))


def argmax(logits: Tensor) -> Tensor:
    """A new int64 [B] of [B, V]."""
    logits_BV = as_rows(logits)
    B, V = logits_BV.shape
    out_B = torch.empty(B, dtype=torch.int64, device=logits.device)
    block = min(triton.next_power_of_2(V), _PART)
    with on_device_of(logits):
        largest_places[(B,)](logits_BV, out_B, V, logits_BV.stride(0), BLOCK=block, num_warps=warps_for(block))
    return out_B
