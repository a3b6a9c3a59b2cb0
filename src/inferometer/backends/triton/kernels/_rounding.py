# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Rounding float32 to the dtype of a tensor, in a kernel."""

import triton
import triton.language as tl


@triton.jit
def rounded(x, dtype: tl.constexpr, INTERPRETED: tl.constexpr):
    """To the nearest, of two the even one. Triton's interpreter cuts bfloat16 off, so there it is done by hand."""
    if INTERPRETED and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        up = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        x = tl.where(x == x, up.to(tl.float32, bitcast=True), x)
    return x.to(dtype)
