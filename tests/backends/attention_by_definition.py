"""Attention in float64, straight from its definition: what fast kernels are held against."""

from typing import Any


def attended(q: Any, k: Any, v: Any, scale: float, window: int | None, softcap: float | None) -> Any:
    """[B, T, Hq, D] in float64, a query at a time."""
    import torch

    group = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(group, 1), v.double().repeat_interleave(group, 1)
    T, S = q.shape[2], k.shape[2]
    answers = []
    for token in range(T):
        last = S - T + token
        seen = slice(0 if window is None else max(0, last - window + 1), last + 1)
        score = torch.einsum("bhd,bhkd->bhk", q[:, :, token], k[:, :, seen]) * scale
        score = score if softcap is None else softcap * torch.tanh(score / softcap)
        answers.append(torch.einsum("bhk,bhkd->bhd", torch.softmax(score, -1), v[:, :, seen]))
    return torch.stack(answers, 1)
