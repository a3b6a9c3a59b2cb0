"""Rotary embedding with positions on three axes in plain PyTorch: the table of each frequency's axis, then a rotation.

Sines, cosines and the rotation have the dtype of `q`. New tensors: as quick as turning in place, which needs room for
one half while it writes the other. The largest published shape takes 0.2 GB.

T tokens, Hq query heads, Hk key-value heads, d head size, r rotary_dim, R = r / 2 frequencies.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def mrope(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    head_size: int,
    rotary_dim: int,
    mrope_section: Sequence[int],
    mrope_interleaved: bool = False,
    is_neox_style: bool = True,
) -> tuple[Tensor, Tensor]:
    """Rotated q [T, Hq d] and k [T, Hk d]."""
    pick = _pick_interleaved if mrope_interleaved else _pick_sections
    cos_T1R, sin_T1R = pick(cos, sin, mrope_section).to(q.dtype)[:, None].chunk(2, -1)

    def turned(x: Tensor) -> Tensor:
        return _rotate(x.unflatten(-1, (-1, head_size)), rotary_dim, cos_T1R, sin_T1R, is_neox_style).flatten(1)

    return turned(q), turned(k)


def _pick_sections(cos_3TR: Tensor, sin_3TR: Tensor, section: Sequence[int]) -> Tensor:
    """[T, 2 R]: cosines, then sines; of each, one axis after another."""
    parts = (slice(section[0]), slice(section[0], section[0] + section[1]), slice(section[0] + section[1], None))
    return torch.cat([table[axis, :, part] for table in (cos_3TR, sin_3TR) for axis, part in enumerate(parts)], -1)


def _pick_interleaved(cos_3TR: Tensor, sin_3TR: Tensor, section: Sequence[int]) -> Tensor:
    """[T, 2 R]: cosines, then sines; of each, every third of an axis as long as its section lasts, else time."""
    both_T2R = torch.cat([cos_3TR[0], sin_3TR[0]], -1)
    for half, table in zip(both_T2R.chunk(2, -1), (cos_3TR, sin_3TR), strict=True):
        for axis in (1, 2):
            part = slice(axis, 3 * section[axis], 3)
            half[:, part] = table[axis, :, part]
    return both_T2R


def _rotate(x_THd: Tensor, rotary_dim: int, cos_T1R: Tensor, sin_T1R: Tensor, is_neox_style: bool) -> Tensor:
    """Column i with i + R, or 2 i with 2 i + 1; columns from r on stay."""
    sizes, pair = ((2, -1), -2) if is_neox_style else ((-1, 2), -1)
    pairs = x_THd[..., :rotary_dim].unflatten(-1, sizes)
    one, other = pairs.unbind(pair)
    turned = pairs * cos_T1R.unsqueeze(pair)
    turned.select(pair, 0).addcmul_(other, sin_T1R, value=-1)
    turned.select(pair, 1).addcmul_(one, sin_T1R)
    turned = turned.flatten(-2)
    return turned if rotary_dim == x_THd.shape[-1] else torch.cat([turned, x_THd[..., rotary_dim:]], -1)
