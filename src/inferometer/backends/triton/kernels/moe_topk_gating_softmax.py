# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""A router's choice: softmax over the experts' logits, then the k largest weights. T tokens, E experts, k chosen.

A program takes some tokens with all their experts, and chooses one expert after the other: the largest that is left,
of equals the first. With groups, an expert outside the best groups counts as 0 (arXiv:2405.04434, section 2.1.2).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, on_device_of, rows_in_tile, warps_for


@triton.jit
def _first_largest(ranks, column, BLOCK: tl.constexpr):
    """Values and places, a column each; of NaN the place is 0, so that it always is one."""
    value = tl.max(ranks, 1)[:, None]
    place = tl.min(tl.where(ranks == value, column, BLOCK), 1)[:, None]
    return value, tl.where(place == BLOCK, 0, place)


@triton.jit
def routed_rows(
    logits, weights, experts, T, E, k, stride, group_size, groups_kept,
    GROUPED: tl.constexpr, RENORMALIZE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, CHOSEN: tl.constexpr,
):  # fmt: skip
    """`weights` and `experts` are dense, [T, k]."""
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < T) & (column < E)
    values = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    values = tl.where(row < T, values, 0.0)
    powers = tl.where(column < E, tl.exp(values - tl.max(values, 1)[:, None]), 0.0)
    ranks = tl.where(column < E, powers / tl.sum(powers, 1)[:, None], -1.0)
    if GROUPED:
        left = ranks
        shut = (column < E) & (row >= 0)
        for _ in range(groups_kept):
            _value, place = _first_largest(left, column, BLOCK)
            own = column // group_size == place // group_size
            shut = shut & (own == 0)
            left = tl.where(own, -1.0, left)
        ranks = tl.where(shut, 0.0, ranks)
    slot = tl.arange(0, CHOSEN)[None, :]
    chosen = tl.zeros([ROWS, CHOSEN], tl.float32)
    places = tl.zeros([ROWS, CHOSEN], tl.int32)
    for i in range(k):
        value, place = _first_largest(ranks, column, BLOCK)
        chosen = tl.where(slot == i, value, chosen)
        places = tl.where(slot == i, place, places)
        ranks = tl.where(column == place, -1.0, ranks)
    if RENORMALIZE:
        chosen = chosen / tl.sum(chosen, 1)[:, None]
    asked = (row < T) & (slot < k)
    tl.store(weights + row * k + slot, chosen, mask=asked)
    tl.store(experts + row * k + slot, places.to(experts.dtype.element_ty), mask=asked)


def moe_topk_gating_softmax(
    gating_output: Tensor, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
) -> tuple[Tensor, Tensor]:
    """New weights float32 and ids int32, [T, k], of [T, E], by falling weight; of equals the lower id first."""
    grouped = num_expert_groups > 0 and topk_group > 0
    groups = (gating_output.shape[1] // num_expert_groups, topk_group) if grouped else None
    return _launch(gating_output, top_k, torch.int32, groups=groups)


def moe_route(logits: Tensor, *, k: int, renormalize: bool) -> tuple[Tensor, Tensor]:
    """New weights float32 and experts int64, [T, k], of [T, E], by falling weight; of equals the lower id first."""
    return _launch(logits, k, torch.int64, renormalize=renormalize)


def _launch(
    logits: Tensor, k: int, ids: torch.dtype, *, groups: tuple[int, int] | None = None, renormalize: bool = False
) -> tuple[Tensor, Tensor]:
    """`groups`: the experts of one, and how many are kept."""
    logits_TE = as_rows(logits)
    T, E = logits_TE.shape
    weights_Tk = torch.empty(T, k, dtype=torch.float32, device=logits.device)
    experts_Tk = torch.empty(T, k, dtype=ids, device=logits.device)
    block = triton.next_power_of_2(E)
    rows = rows_in_tile(T, block, routed_rows)
    group_size, groups_kept = groups or (1, 0)
    with on_device_of(logits):
        routed_rows[(triton.cdiv(T, rows),)](
            logits_TE, weights_Tk, experts_Tk, T, E, k, logits_TE.stride(0), group_size, groups_kept,
            GROUPED=groups is not None, RENORMALIZE=renormalize, ROWS=rows, BLOCK=block,
            CHOSEN=triton.next_power_of_2(k), num_warps=warps_for(rows * block),
        )  # fmt: skip
    return weights_Tk, experts_Tk
