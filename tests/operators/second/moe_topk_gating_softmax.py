"""A router's choice a row at a time in float64: Python's sort by falling weight, then by id."""

from typing import Any

import numpy as np


def second(
    logits: np.ndarray, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    weights, ids = [], []
    for row in logits:
        weight = np.exp(row - row.max())
        weight /= weight.sum()
        if num_expert_groups:
            groups = weight.reshape(num_expert_groups, -1)
            kept = sorted(range(num_expert_groups), key=lambda group: (-groups[group].max(), group))[:topk_group]
            weight = np.concatenate([groups[g] * (g in kept) for g in range(num_expert_groups)])
        best = sorted(range(len(row)), key=lambda expert: (-weight[expert], expert))[:top_k]
        weights.append(weight[best])
        ids.append(best)
    return np.array(weights), np.array(ids)


def eager(logits: Any, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0) -> Any:
    import torch

    weights = torch.softmax(logits, -1)
    if num_expert_groups:
        grouped = weights.view(len(weights), num_expert_groups, -1)
        kept = torch.topk(grouped.amax(-1), topk_group, -1).indices
        others = torch.ones_like(grouped[:, :, 0], dtype=torch.bool).scatter(1, kept, False)
        weights = grouped.masked_fill(others[:, :, None], 0.0).flatten(1)
    return torch.topk(weights, top_k, -1)
