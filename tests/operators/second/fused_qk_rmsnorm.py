"""Norm a token and a head at a time in float64; nothing is rounded."""

from typing import Any

import numpy as np


def second(
    qkv: np.ndarray, q_weight: np.ndarray, k_weight: np.ndarray, *, head_num: int, kv_head_num: int, eps: float = 1e-6
) -> np.ndarray:  # fmt: skip
    out, size = qkv.copy(), len(q_weight)
    for row in out:
        for head in range(head_num + kv_head_num):
            part = slice(head * size, (head + 1) * size)
            weight = q_weight if head < head_num else k_weight
            row[part] *= weight / np.sqrt(np.dot(row[part], row[part]) / size + eps)
    return out


def eager(qkv: Any, q_weight: Any, k_weight: Any, *, head_num: int, kv_head_num: int, eps: float = 1e-6) -> Any:
    import torch

    def norm(x: Any, weight: Any) -> Any:
        x32 = x.reshape(-1, len(weight)).float()
        scaled = x32 * (x32.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        return (scaled.to(x.dtype) * weight).view(x.shape)

    size = len(q_weight)
    q, k, v = qkv.split([head_num * size, kv_head_num * size, kv_head_num * size], -1)
    return torch.cat([norm(q, q_weight), norm(k, k_weight), v], -1)
