"""Softmax over the experts, then a stable sort of each row, cut after k: three to five launches.

`torch.topk` would read less, but promises nothing about ties, and the contract does: of equal weights the lower id
comes first. A stable sort of a row of up to 4,096 is one block of threads on a GPU.

T tokens, E experts, k experts a token, G groups.
"""

import torch
from torch import Tensor


def moe_topk_gating_softmax(
    gating_output: Tensor, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
) -> tuple[Tensor, Tensor]:
    """Weights fp32 and ids int32, both [T, k], by falling weight; with groups, experts outside the best count as 0."""
    weights_TE = torch.softmax(gating_output, -1, dtype=torch.float32)
    if num_expert_groups > 0 and topk_group > 0:
        weights_TE = _limited(weights_TE, num_expert_groups, topk_group)
    ranked_TE, ids_TE = weights_TE.sort(dim=-1, descending=True, stable=True)
    return ranked_TE[:, :top_k].contiguous(), ids_TE[:, :top_k].to(torch.int32).contiguous()


def _limited(weights_TE: Tensor, groups: int, keep: int) -> Tensor:
    """0 outside the groups with the greatest maxima; of equal groups the lower comes first."""
    weights_TGe = weights_TE.unflatten(1, (groups, -1))
    dropped_Tg = weights_TGe.amax(-1).sort(dim=-1, descending=True, stable=True).indices[:, keep:]
    dropped_TG = torch.zeros(weights_TGe.shape[:2], dtype=torch.bool, device=weights_TE.device)
    return weights_TGe.masked_fill_(dropped_TG.scatter_(1, dropped_Tg, True)[..., None], 0).flatten(1)
