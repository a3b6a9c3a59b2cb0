# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""A linear layer: rows times the transpose of a weight, and a bias. M rows, N outputs, K inputs.

A program makes one tile of the answer and sums in float32; programs that share rows or columns run near each other, so
that a cache holds what they share. With few rows, as in decoding, tiles are low and deep: the weight is what takes
time, and each of it is read once. float32 is multiplied as such, never as TF32, as PyTorch does unless asked otherwise.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, interpreted, is_amd, on_device_of
from inferometer.backends.triton.kernels._rounding import rounded


@dataclass(frozen=True)
class Tile:
    """What a program makes (rows, columns) and takes at once (depth); `group` tiles of rows run side by side."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    group: int = 8


_FEW, _SOME = 16, 64
_NARROW = {
    _FEW: Tile(16, 32, 128, warps=4, stages=4),
    _SOME: Tile(64, 64, 64, warps=4, stages=4),
    None: Tile(128, 128, 64, warps=8, stages=3),
}
"""Tiles for 16-bit dtypes, by the most rows."""

_WIDE = {
    _FEW: Tile(16, 32, 64, warps=4, stages=4),
    _SOME: Tile(32, 64, 32, warps=4, stages=3),
    None: Tile(64, 64, 32, warps=8, stages=3),
}
"""Tiles for float32."""

_INTERPRETED = Tile(64, 256, 256, warps=4, stages=1)


@triton.jit
def product_tiles(
    x, weight, bias, out, M, N, K, x_m, x_k, weight_n, weight_k, out_m,
    BIAS: tl.constexpr, EVEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Rows and columns beyond the end read those of the beginning and aren't stored. EVEN: DEPTH divides K."""
    program = tl.program_id(0)
    row_tiles, column_tiles = tl.cdiv(M, ROWS), tl.cdiv(N, COLUMNS)
    group = program // (GROUP * column_tiles)
    high = tl.minimum(row_tiles - group * GROUP, GROUP)
    row_tile = group * GROUP + (program % (GROUP * column_tiles)) % high
    column_tile = (program % (GROUP * column_tiles)) // high
    row = row_tile * ROWS + tl.arange(0, ROWS)
    column = column_tile * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    x_at = x + (row % M).to(tl.int64)[:, None] * x_m + depth[None, :] * x_k
    weight_at = weight + (column % N).to(tl.int64)[None, :] * weight_n + depth[:, None] * weight_k
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, K, DEPTH):
        if EVEN:
            a = tl.load(x_at)
            b = tl.load(weight_at)
        else:
            a = tl.load(x_at, mask=depth[None, :] < K - start, other=0.0)
            b = tl.load(weight_at, mask=depth[:, None] < K - start, other=0.0)
        if INTERPRETED:  # whose products of bfloat16 are wrong
            a = a.to(tl.float32)
            b = b.to(tl.float32)
        sums = tl.dot(a, b, sums, input_precision="ieee")
        x_at += DEPTH * x_k
        weight_at += DEPTH * weight_k
    if BIAS:
        sums += tl.load(bias + column % N).to(tl.float32)[None, :]
    answer = rounded(sums, out.dtype.element_ty, INTERPRETED)
    place = out + row.to(tl.int64)[:, None] * out_m + column[None, :]
    tl.store(place, answer, mask=(row[:, None] < M) & (column[None, :] < N))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, tile: Tile | None = None) -> Tensor:
    """A new, dense [..., N] of x [..., K], weight [N, K] and bias [N]; all of one dtype.

    Any distances in memory will do. `tile` takes the place of the one that `choose_tile` finds.
    """
    x_MK = as_rows(x)
    (M, K), N = x_MK.shape, weight.shape[0]
    out = torch.empty(*x.shape[:-1], N, dtype=x.dtype, device=x.device)
    tile = tile or choose_tile(M, x.dtype)
    with on_device_of(x):
        product_tiles[(triton.cdiv(M, tile.rows) * triton.cdiv(N, tile.columns),)](
            x_MK, weight, weight if bias is None else bias.contiguous(), out, M, N, K,
            *x_MK.stride(), *weight.stride(), N, BIAS=bias is not None, EVEN=K % tile.depth == 0, ROWS=tile.rows,
            COLUMNS=tile.columns, DEPTH=tile.depth, GROUP=tile.group, INTERPRETED=interpreted(product_tiles),
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
    return out


def choose_tile(M: int, dtype: torch.dtype) -> Tile:
    """By the number of rows and the dtype. AMD's blocks have 64 KiB of shared memory: two stages fit."""
    if interpreted(product_tiles):
        return _INTERPRETED
    tiles = _WIDE if dtype == torch.float32 else _NARROW
    found = tiles[_FEW if M <= _FEW else _SOME if M <= _SOME else None]
    if not is_amd():
        return found
    return Tile(found.rows, found.columns, found.depth, found.warps, min(found.stages, 2), found.group)
