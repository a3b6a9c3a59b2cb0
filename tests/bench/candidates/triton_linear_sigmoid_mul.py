"""Sigmoid of a linear layer times a matrix, in Triton: a candidate for the tests of `bench`.

T tokens, H hidden size, F output features.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gate_tiles(x, weight, bias, post, out, T, H, F, TILE_T: tl.constexpr, TILE_F: tl.constexpr, TILE_H: tl.constexpr):
    rows = tl.program_id(0) * TILE_T + tl.arange(0, TILE_T)
    features = tl.program_id(1) * TILE_F + tl.arange(0, TILE_F)
    depth = tl.arange(0, TILE_H)
    gate = tl.zeros((TILE_T, TILE_F), dtype=tl.float32)
    for start in range(0, H, TILE_H):
        inside = start + depth < H
        x_tile = tl.load(
            x + rows[:, None] * H + (start + depth)[None, :], mask=(rows < T)[:, None] & inside[None, :], other=0.0
        )
        weight_tile = tl.load(
            weight + features[None, :] * H + (start + depth)[:, None],
            mask=(features < F)[None, :] & inside[:, None],
            other=0.0,
        )
        gate = tl.dot(x_tile, weight_tile, gate)
    gate += tl.load(bias + features, mask=features < F, other=0.0).to(tl.float32)[None, :]
    rounded = gate.to(out.dtype.element_ty).to(tl.float32)
    places = rows[:, None] * F + features[None, :]
    inside = (rows < T)[:, None] & (features < F)[None, :]
    factor = tl.load(post + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + places, (tl.sigmoid(rounded) * factor).to(out.dtype.element_ty), mask=inside)


TILES = {"TILE_T": 64, "TILE_F": 64, "TILE_H": 32, "num_warps": 4, "num_stages": 3}


def linear_sigmoid_mul(x_TH, weight_FH, bias_F, post_TF):
    out_TF = torch.empty_like(post_TF)
    (T, H), F = x_TH.shape, weight_FH.shape[0]
    grid = lambda tiles: (triton.cdiv(T, tiles["TILE_T"]), triton.cdiv(F, tiles["TILE_F"]))  # noqa: E731
    gate_tiles[grid](x_TH, weight_FH, bias_F, post_TF, out_TF, T, H, F, **TILES)
    return out_TF
