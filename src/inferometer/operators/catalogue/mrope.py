"""Rotary embedding with positions on three axes, time, height and width: each frequency takes its angle from one.

Source: Qwen2-VL, arXiv:2409.12191, section 2.1. `mrope_section` says how many frequencies each axis has: one axis
after another, or interleaved as in Qwen3-VL, where frequency i is of height if i mod 3 is 1, of width if it is 2, each
only up to 3 times its section, and of time otherwise. NeoX style turns column i with i + r / 2, the other 2 i with
2 i + 1; columns from r on stay. Production turns q and k in place.

T tokens, Hq query heads, Hk key-value heads, d head size, r rotary_dim, R = r / 2 frequencies.
"""

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    at_most,
    both,
    enlarged,
    filled,
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

BASE, FURTHEST = 1e4, 8192  # of the angles and positions of inputs


def reference(
    q_TN: "Tensor",
    k_TN: "Tensor",
    cos_3TR: "Tensor",
    sin_3TR: "Tensor",
    *,
    head_size: int,
    rotary_dim: int,
    mrope_section: Sequence[int],
    mrope_interleaved: bool = False,
    is_neox_style: bool = True,
) -> "tuple[Tensor, Tensor]":
    """Rotation in float32."""
    import torch

    axes = _axes(rotary_dim // 2, mrope_section, mrope_interleaved)
    cos_TR, sin_TR = (
        torch.stack([table[axis, :, i] for i, axis in enumerate(axes)], -1) for table in (cos_3TR, sin_3TR)
    )

    def rows(x: "Tensor", cos: "Tensor", sin: "Tensor") -> "Tensor":
        heads = x.float().unflatten(-1, (-1, head_size))
        turned = _rotate(heads[..., :rotary_dim], cos[:, None].float(), sin[:, None].float(), is_neox_style)
        return torch.cat([turned, heads[..., rotary_dim:]], -1).flatten(1)

    (q_out,) = by_rows(rows, q_TN, cos_TR, sin_TR, out=(torch.empty_like(q_TN),))
    (k_out,) = by_rows(rows, k_TN, cos_TR, sin_TR, out=(torch.empty_like(k_TN),))
    return q_out, k_out


def _axes(frequencies: int, section: Sequence[int], interleaved: bool) -> list[int]:
    """The axis of each frequency: 0 time, 1 height, 2 width."""
    if interleaved:
        return [i % 3 if i <= 3 * section[i % 3] else 0 for i in range(frequencies)]
    height, width = section[0], section[0] + section[1]
    return [(i >= height) + (i >= width) for i in range(frequencies)]


def _rotate(x_THr: "Tensor", cos_T1R: "Tensor", sin_T1R: "Tensor", is_neox_style: bool) -> "Tensor":
    import torch

    pairs = x_THr.unflatten(-1, (2, -1)) if is_neox_style else x_THr.unflatten(-1, (-1, 2)).transpose(-1, -2)
    one, other = pairs.unbind(-2)
    turned = (one * cos_T1R - other * sin_T1R, other * cos_T1R + one * sin_T1R)
    return torch.cat(turned, -1) if is_neox_style else torch.stack(turned, -1).flatten(-2)


def inputs(
    *,
    token_count: int,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    rotary_dim: int,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """A third of the tokens are text, the same on all axes; the others of images and videos, far apart on each axis.

    With BASE and positions up to FURTHEST, an axis taken for another shows at every frequency, the lowest ones too.
    """
    import torch

    draw = Draws(seed, device)
    position_3T = draw.integers(3, token_count, low=1, high=FURTHEST)
    position_3T[1:, : token_count // 3] = position_3T[0, : token_count // 3]
    frequency_R = BASE ** -(torch.arange(0, rotary_dim, 2, device=device).float() / rotary_dim)
    angle_3TR = position_3T[..., None] * frequency_R
    return {
        "q": draw.normal(token_count, num_query_heads * head_size),
        "k": draw.normal(token_count, num_kv_heads * head_size),
        "cos": angle_3TR.cos(),
        "sin": angle_3TR.sin(),
    }


def cost(
    *, token_count: int, num_query_heads: int, num_kv_heads: int, head_size: int, rotary_dim: int, **_: object
) -> Cost:
    """An element that turns: two multiplies and an add. The cosines and sines of all axes are read."""
    T, H, d, r = token_count, num_query_heads + num_kv_heads, head_size, rotary_dim
    return Cost(3 * T * H * r, read_bytes=2 * T * H * d + 12 * T * r, written_bytes=2 * T * H * d)


def work(*, token_count: int, num_query_heads: int, num_kv_heads: int, rotary_dim: int, **_: object) -> Work:
    """An element that turns: two multiplies and an add. Only those are read and written, and one axis a frequency."""
    T, H, r = token_count, num_query_heads + num_kv_heads, rotary_dim
    return Work(vector_flops=3 * T * H * r, read_bytes=2 * T * H * r + 4 * T * r, written_bytes=2 * T * H * r)


OPERATOR = Operator(
    name="mrope",
    summary="Heads of q and k rotated by positions on three axes, each frequency by one of them.",
    dims={
        "T": "tokens",
        "Hq": "query heads",
        "Hk": "key-value heads",
        "d": "head size",
        "r": "columns of a head that turn",
        "R": "r / 2",
        "Nq": "num_query_heads * head_size",
        "Nk": "num_kv_heads * head_size",
    },
    axes=Axes(
        op_type="rope",
        sizes={
            "T": "token_count",
            "Hq": "num_query_heads",
            "Hk": "num_kv_heads",
            "d": "head_size",
            "Nq": lambda num_query_heads, head_size: num_query_heads * head_size,
            "Nk": lambda num_kv_heads, head_size: num_kv_heads * head_size,
            "R": lambda rotary_dim: rotary_dim // 2,
            "three": 3,
        },
        varying=("T",),
        inputs={"q": "T Nq", "k": "T Nk", "cos": "three T R: fp32", "sin": "three T R: fp32"},
        outputs={"q": "T Nq", "k": "T Nk"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("q", "k"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros", zeroed("q", "k")),
            HardCase(
                "zeros", "tokens at position 0", "heads that don't turn", both(filled(1.0, "cos"), filled(0.0, "sin"))
            ),
            HardCase("large numbers", "large numbers", "turned as others", enlarged("q", "k", room=4.0, most=2.0**100)),
            HardCase("tiny numbers", "tiny numbers", "turned as others", shrunk("q", "k")),
            HardCase(
                "NaN", "NaN in one number", "NaN there and in what it turns with, alone", spoiled(nan, "q", (0, 0))
            ),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
        left_out={
            "infinity": "sine and cosine of an infinite number's pair may be rounded to 0, which makes NaN of it"
        },
    ),
    settings=("head_size", "rotary_dim", "mrope_section", "mrope_interleaved", "is_neox_style"),
    updates={"q": "q", "k": "k"},
    tiny=(
        {
            "token_count": 63,
            "num_query_heads": 4,
            "num_kv_heads": 1,
            "head_size": 32,
            "rotary_dim": 32,
            "mrope_section": [4, 6, 6],
            "mrope_interleaved": False,
            "is_neox_style": True,
        },
        {
            "token_count": 13,
            "num_query_heads": 3,
            "num_kv_heads": 1,
            "head_size": 72,
            "rotary_dim": 24,
            "mrope_section": [2, 5, 5],
            "mrope_interleaved": False,
            "is_neox_style": False,
        },
        {
            "token_count": 1,
            "num_query_heads": 2,
            "num_kv_heads": 2,
            "head_size": 128,
            "rotary_dim": 128,
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
            "is_neox_style": True,
        },
        {
            "token_count": 33,
            "num_query_heads": 1,
            "num_kv_heads": 1,
            "head_size": 40,
            "rotary_dim": 24,
            "mrope_section": [6, 4, 2],
            "mrope_interleaved": True,
            "is_neox_style": False,
        },
    ),
)
