"""RMS norm in Triton, a program a row: a candidate for the tests of `bench`. T tokens, H hidden size."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_rows(x, weight, out, H, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < H
    values = tl.load(x + row * H + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values) / H + eps)
    weights = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * H + columns, (values * scale * weights).to(out.dtype.element_ty), mask=inside)


def rms_norm(x_TH, weight_H, *, eps=1e-6):
    out_TH = torch.empty_like(x_TH)
    T, H = x_TH.shape
    block = triton.next_power_of_2(H)
    rms_norm_rows[(T,)](x_TH, weight_H, out_TH, H, eps, BLOCK=block, num_warps=max(1, min(8, block // 256)))
    return out_TH
