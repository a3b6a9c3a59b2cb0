# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""RMS norm over the last dimension, also of the sum with a residual stream. H hidden size.

A program takes some whole rows, which it reads once; of rows longer than `_LONGEST` it reads one twice, in parts.
"""

import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import (
    as_rows,
    interpreted,
    on_device_of,
    rows_and_answer,
    rows_in_tile,
    warps_for,
)
from inferometer.backends.triton.kernels._rounding import rounded

_LONGEST = 16_384
_PART = 4_096


@triton.jit
def _read(x, residual, inside, dtype: tl.constexpr, RESIDUAL: tl.constexpr, INTERPRETED: tl.constexpr):
    """float32 values, or their sums as they are rounded in the residual stream; 0 outside."""
    values = tl.load(x, mask=inside, other=0.0).to(tl.float32)
    if RESIDUAL:
        values += tl.load(residual, mask=inside, other=0.0).to(tl.float32)
        values = rounded(values, dtype, INTERPRETED).to(tl.float32)
    return values


@triton.jit
def _weighted(
    values, scale, weight, column, inside, offset, dtype: tl.constexpr, LATE: tl.constexpr, INTERPRETED: tl.constexpr
):
    normed = values * scale
    if not LATE:
        normed = rounded(normed, dtype, INTERPRETED).to(tl.float32)
    weights = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32) + offset
    return rounded(normed * weights, dtype, INTERPRETED)


@triton.jit
def normed_rows(
    x, residual, weight, out, total, rows, H, x_stride, residual_stride, out_stride, total_stride, eps, offset,
    RESIDUAL: tl.constexpr, LATE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr,
    INTERPRETED: tl.constexpr,
):  # fmt: skip
    """`out` and, with a residual, `total`. WHOLE: a block holds a row."""
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    x_row, residual_row = x + row * x_stride, residual + row * residual_stride
    kind: tl.constexpr = residual.dtype.element_ty
    if WHOLE:
        inside = (row < rows) & (column < H)
        values = _read(x_row + column, residual_row + column, inside, kind, RESIDUAL, INTERPRETED)
        if RESIDUAL:
            tl.store(total + row * total_stride + column, values.to(total.dtype.element_ty), mask=inside)
        scale = 1.0 / tl.sqrt(tl.sum(values * values, 1)[:, None] / H + eps)
        answer = _weighted(values, scale, weight, column, column < H, offset, out.dtype.element_ty, LATE, INTERPRETED)
        tl.store(out + row * out_stride + column, answer, mask=inside)
    else:
        squares = tl.zeros([ROWS, BLOCK], tl.float32)
        for start in range(0, H, BLOCK):
            here = start + column
            inside = (row < rows) & (here < H)
            values = _read(x_row + here, residual_row + here, inside, kind, RESIDUAL, INTERPRETED)
            if RESIDUAL:
                tl.store(total + row * total_stride + here, values.to(total.dtype.element_ty), mask=inside)
            squares += values * values
        scale = 1.0 / tl.sqrt(tl.sum(squares, 1)[:, None] / H + eps)
        for start in range(0, H, BLOCK):
            here = start + column
            inside = (row < rows) & (here < H)
            values = _read(x_row + here, residual_row + here, inside, kind, RESIDUAL, INTERPRETED)
            answer = _weighted(values, scale, weight, here, here < H, offset, out.dtype.element_ty, LATE, INTERPRETED)
            tl.store(out + row * out_stride + here, answer, mask=inside)


def rms_norm(x: Tensor, weight: Tensor, *, eps: float = 1e-6, offset: float = 0.0, late_cast: bool = True) -> Tensor:
    """A new tensor like `x`: x over its root mean square, times (offset + weight [H]).

    `late_cast` rounds once, after the weight; without, before it too.
    """
    x_RH, out, out_RH = rows_and_answer(x)
    launch_norm(x_RH, None, weight, out_RH, None, eps=eps, offset=offset, late_cast=late_cast)
    return out


def launch_norm(
    x_RH: Tensor,
    residual_RH: Tensor | None,
    weight_H: Tensor,
    out_RH: Tensor,
    total_RH: Tensor | None,
    *,
    eps: float,
    offset: float,
    late_cast: bool,
) -> None:
    """Fills `out_RH` and, with a residual, `total_RH`. R rows, whose columns lie side by side."""
    R, H = x_RH.shape
    whole = H <= _LONGEST
    block = triton.next_power_of_2(H) if whole else _PART
    rows = rows_in_tile(R, block, normed_rows) if whole else 1
    residual, total = (x_RH, out_RH) if residual_RH is None or total_RH is None else (residual_RH, total_RH)
    with on_device_of(x_RH):
        normed_rows[(triton.cdiv(R, rows),)](
            x_RH, residual, as_rows(weight_H), out_RH, total, R, H,
            x_RH.stride(0), residual.stride(0), out_RH.stride(0), total.stride(0), eps, offset,
            RESIDUAL=residual_RH is not None, LATE=late_cast, ROWS=rows, BLOCK=block, WHOLE=whole,
            INTERPRETED=interpreted(normed_rows), num_warps=warps_for(rows * block),
        )  # fmt: skip
