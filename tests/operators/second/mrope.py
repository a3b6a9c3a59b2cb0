"""Rotation as a product of complex numbers, a head and a pair of columns at a time, in float64."""

from typing import Any

import numpy as np


def axis_of(i: int, section: Any, interleaved: bool) -> int:
    if interleaved:
        if i % 3 == 1 and i <= 3 * section[1]:
            return 1
        return 2 if i % 3 == 2 and i <= 3 * section[2] else 0
    return 0 if i < section[0] else 1 if i < section[0] + section[1] else 2


def second(
    q: np.ndarray, k: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, head_size: int, rotary_dim: int,
    mrope_section: Any, mrope_interleaved: bool, is_neox_style: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    half = rotary_dim // 2

    def turn(x: np.ndarray) -> np.ndarray:
        out = x.copy()
        for start in range(0, x.shape[1], head_size):
            for i in range(half):
                one, other = (start + i, start + i + half) if is_neox_style else (start + 2 * i, start + 2 * i + 1)
                axis = axis_of(i, mrope_section, mrope_interleaved)
                turned = (x[:, one] + 1j * x[:, other]) * (cos[axis, :, i] + 1j * sin[axis, :, i])
                out[:, one], out[:, other] = turned.real, turned.imag
        return out

    return turn(q), turn(k)


def eager(
    q: Any, k: Any, cos: Any, sin: Any, *, head_size: int, rotary_dim: int, mrope_section: Any,
    mrope_interleaved: bool, is_neox_style: bool,
) -> Any:  # fmt: skip
    import torch

    half = rotary_dim // 2
    axes = torch.tensor([axis_of(i, mrope_section, mrope_interleaved) for i in range(half)])
    c, s = (table.permute(1, 2, 0)[:, torch.arange(half), axes][:, None] for table in (cos, sin))
    one, other = (
        (slice(0, half), slice(half, rotary_dim))
        if is_neox_style
        else (slice(0, rotary_dim, 2), slice(1, rotary_dim, 2))
    )

    def turn(x: Any) -> Any:
        heads = x.view(len(x), -1, head_size)
        out = heads.clone()
        out[..., one] = (heads[..., one] * c - heads[..., other] * s).to(x.dtype)
        out[..., other] = (heads[..., other] * c + heads[..., one] * s).to(x.dtype)
        return out.view(x.shape)

    return turn(q), turn(k)
