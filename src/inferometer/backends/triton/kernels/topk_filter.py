# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Everything below the k-th largest logit of a row becomes -inf. T rows, V columns."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, on_device_of
from inferometer.backends.triton.kernels._ordering import find_kth, read, search_settings


@triton.jit
def filtered_rows(logits, out, V, stride, k, BLOCK: tl.constexpr, BITS: tl.constexpr):
    """A program a row; `out` is dense."""
    row = tl.program_id(0).to(tl.int64)
    given = logits + row * stride
    kth = find_kth(given, V, k, BLOCK, BITS)
    for start in range(0, V, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values, keys = read(given, at, V)
        tl.store(out + row * V + at, tl.where(keys >= kth, values, float("-inf")), mask=at < V)


def topk_filter(logits: Tensor, *, top_k: int = 50) -> Tensor:
    """A new [T, V]: all that equal the k-th largest stay, and NaN, which counts as larger than any number."""
    logits_TV = as_rows(logits)
    T, V = logits_TV.shape
    out_TV = torch.empty(T, V, dtype=logits.dtype, device=logits.device)
    with on_device_of(logits):
        filtered_rows[(T,)](
            logits_TV, out_TV, V, logits_TV.stride(0), min(top_k, V), **search_settings(V, filtered_rows)
        )
    return out_TV
