# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Softmax of rows of any length, divided by a temperature. B rows, V columns.

A program takes a row and goes over it three times: maximum, sum, answer. One of a vocabulary stays in the cache.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, on_device_of, warps_for

_PART = 8_192


@triton.jit
def softmax_rows(logits, out, V, stride, out_stride, temperature, BLOCK: tl.constexpr):
    """A row of nothing but -inf, or with +inf or NaN, becomes NaN, as PyTorch has it."""
    row = tl.program_id(0).to(tl.int64)
    given, place = logits + row * stride, out + row * out_stride
    column = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, V, BLOCK):
        at = start + column
        values = tl.load(given + at, mask=at < V, other=float("-inf")).to(tl.float32) / temperature
        largest = tl.maximum(largest, values)
    top = tl.max(largest, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, V, BLOCK):
        at = start + column
        values = tl.load(given + at, mask=at < V, other=float("-inf")).to(tl.float32) / temperature
        sums += tl.where(at < V, tl.exp(values - top), 0.0)
    total = tl.sum(sums, 0)
    for start in range(0, V, BLOCK):
        at = start + column
        values = tl.load(given + at, mask=at < V, other=float("-inf")).to(tl.float32) / temperature
        tl.store(place + at, tl.exp(values - top) / total, mask=at < V)


def softmax(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """A new float32 [B, V], whatever the dtype of `logits`; `temperature` is above 0."""
    logits_BV = as_rows(logits)
    B, V = logits_BV.shape
    out_BV = torch.empty(B, V, dtype=torch.float32, device=logits.device)
    block = min(triton.next_power_of_2(V), _PART)
    with on_device_of(logits):
        softmax_rows[(B,)](
            logits_BV, out_BV, V, logits_BV.stride(0), V, float(temperature), BLOCK=block, num_warps=warps_for(block)
        )
    return out_BV
