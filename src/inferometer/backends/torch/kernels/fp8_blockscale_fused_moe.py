"""Expert by expert: fp8 weights become bf16 values times their scales, then a product of matrices.

Eager PyTorch has no grouped product with tile scales, and none at all of e4m3fnuz on GPUs that don't have that type. So
weights are converted, which takes most of the time: 9 bytes per weight (fp8 read, bf16 written, scaled in place, read
again), or 5 where an expert has few rows, as then the products of its tiles are scaled instead. These are estimates:
none of it was timed on a GPU.

The loop knows from the host which experts have how many rows: one synchronisation, so no capture into a CUDA graph.
Without it all experts had to be converted: at T 32 of 256 experts 1.7 times those in use, some 8 ms more at 3 TB/s, to
save a synchronisation of some 10 us; and 23 GB of bf16 weights in place of one expert's.

Rounded to bf16: activations and weights (or products of tiles) times their scales, what each product gives, silu, its
products with up and with the router's weight. The sum over a token's experts is float32.

T tokens, H hidden size, I intermediate size, F = 2 I, E experts, k experts a token; s slots that have an expert. The
published shapes take up to 13 GB with their inputs.
"""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import silu

_FEW = 4
"""An expert has few rows where that many times as many are no more than a tile's columns. To scale products of tiles
moves 8 bytes for each row, tile and column of the result, to scale weights 4 for each of the tile's columns: they break
even at half, and a quarter leaves room for the products of little depth."""


def fp8_blockscale_fused_moe(
    hidden_states: Tensor,
    w1: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    a_scale: Tensor,
    fc1_scale: Tensor,
    fc2_scale: Tensor,
) -> Tensor:
    """[T, H] in the dtype of `hidden_states`; w1 [E, F, H], gate before up; w2 [E, H, I]; a scale for each tile."""
    experts, top_k = w1.shape[0], topk_ids.shape[1]
    order_s, counts = _by_expert(topk_ids, experts)
    x_sH = _scaled(hidden_states, a_scale)[order_s // top_k]
    gate_sI, up_sI = _products(x_sH, w1, fc1_scale, counts).chunk(2, -1)
    inner_sI = silu(gate_sI).mul_(up_sI).mul_(topk_weights.flatten()[order_s, None])
    found_sH = _products(inner_sI, w2, fc2_scale, counts)
    if len(order_s) == topk_ids.numel():
        every_SH = torch.empty_like(found_sH)
    else:
        every_SH = found_sH.new_zeros(topk_ids.numel(), found_sH.shape[1])
    every_SH[order_s] = found_sH
    return every_SH.unflatten(0, topk_ids.shape).sum(1, dtype=torch.float32).to(hidden_states.dtype)


def _by_expert(ids_Tk: Tensor, experts: int) -> tuple[Tensor, list[int]]:
    """Slots by expert, those that are nobody's left out, and on the host how many each expert has."""
    ranked_S, order_S = ids_Tk.flatten().sort(stable=True)
    bounds = torch.arange(experts + 1, dtype=ranked_S.dtype, device=ranked_S.device)
    begin = torch.searchsorted(ranked_S, bounds).tolist()
    return order_S[begin[0] : begin[-1]], [end - start for start, end in pairwise(begin)]


def _products(x_sK: Tensor, weights_ENK: Tensor, scales: Tensor, counts: list[int]) -> Tensor:
    """[s, N]: rows times the scaled matrix of their expert; experts without rows aren't read."""
    out_sN = x_sK.new_empty(x_sK.shape[0], weights_ENK.shape[1])
    start = 0
    for expert, count in enumerate(counts):
        if count:
            rows = slice(start, start + count)
            _product(x_sK[rows], weights_ENK[expert], scales[expert], out_sN[rows])
            start += count
    return out_sN


def _product(x_RK: Tensor, weight_NK: Tensor, scales_nh: Tensor, out_RN: Tensor) -> None:
    """Rows of one expert times its scaled matrix."""
    (R, K), (n, h) = x_RK.shape, scales_nh.shape
    if R * h * _FEW > K:
        torch.mm(x_RK, _scaled(weight_NK, scales_nh).mT, out=out_RN)
        return
    values_Nhk = weight_NK.to(torch.bfloat16, memory_format=torch.contiguous_format).view(-1, h, K // h)
    part_hRN = torch.bmm(x_RK.view(R, h, -1).transpose(0, 1), values_Nhk.permute(1, 2, 0))
    part_hRN.view(h, R, n, -1).mul_(scales_nh.mT[:, None, :, None])
    torch.sum(part_hRN, 0, out=out_RN)


def _scaled(values: Tensor, scales: Tensor) -> Tensor:
    """A matrix in bf16, times the scale of each tile."""
    (rows, columns), (down, across) = values.shape, scales.shape
    out = values.to(torch.bfloat16, memory_format=torch.contiguous_format)
    tile_rows = rows // down if down else 1  # there may be no rows
    out.view(down, tile_rows, across, columns // across).mul_(scales[:, None, :, None])
    return out
