"""Rotation as a product of complex numbers, a token and a head at a time, in float64."""

from typing import Any

import numpy as np


def second(
    qkv: np.ndarray, positions: np.ndarray, qkv_bias: np.ndarray | float = 0.0, *, num_heads: int, num_kv_heads: int,
    head_dim: int, rope_dim: int, rope_base: float = 10000.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    heads = (qkv + qkv_bias).reshape(len(qkv), -1, head_dim)
    half, out = rope_dim // 2, heads.copy()
    for token, position in enumerate(positions):
        turn = np.array([np.exp(1j * position / rope_base ** (i / half)) for i in range(half)])
        for head in range(num_heads + num_kv_heads):
            x = heads[token, head]
            turned = (x[:half] + 1j * x[half:rope_dim]) * turn
            out[token, head, :half], out[token, head, half:rope_dim] = turned.real, turned.imag
    q, k, v = np.split(out, [num_heads, num_heads + num_kv_heads], 1)
    return q, k, v


def eager(
    qkv: Any, positions: Any, qkv_bias: Any = None, *, num_heads: int, num_kv_heads: int, head_dim: int, rope_dim: int,
    rope_base: float = 10000.0,
) -> Any:  # fmt: skip
    import torch

    if qkv_bias is not None:
        qkv = qkv + qkv_bias
    q, k, v = qkv.view(len(qkv), -1, head_dim).split([num_heads, num_kv_heads, num_kv_heads], 1)
    frequency = 1.0 / rope_base ** (torch.arange(0, rope_dim, 2).float() / rope_dim)
    angle = positions.float()[:, None] * frequency
    cos, sin = (table.repeat(1, 2)[:, None] for table in (angle.cos(), angle.sin()))

    def turn(x: Any) -> Any:
        x32, rest = x[..., :rope_dim].float(), x[..., rope_dim:]
        one, other = x32.chunk(2, -1)
        return torch.cat([(x32 * cos + torch.cat([-other, one], -1) * sin).to(x.dtype), rest], -1)

    return turn(q), turn(k), v
