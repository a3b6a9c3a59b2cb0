"""Split packed rows into heads of q, k and v, and rotate those of q and k by their positions; with a bias, if any.

Source: arXiv:2104.09864, section 3.2. A head's first rope_dim columns turn, column i with i + rope_dim / 2 (NeoX
style), by position * rope_base^(-2 i / rope_dim); the others stay.

T tokens, Hq query heads, Hk key-value heads, d head size, r rope_dim, N = (Hq + 2 Hk) d columns of a packed row.
"""

from math import nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    at_most,
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

FURTHEST = 8192
"""Tokens are at positions below it: there, float32 rounds an angle by at most 0.001."""


def reference(
    qkv_TN: "Tensor",
    positions_T: "Tensor",
    qkv_bias_N: "Tensor | None" = None,
    *,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    rope_dim: int,
    rope_base: float = 10000.0,
) -> "tuple[Tensor, Tensor, Tensor]":
    """Angles and rotation in float32; the sum with the bias is rounded to the dtype of `qkv_TN` before it."""
    import torch

    column_r = torch.arange(0, rope_dim, 2, device=qkv_TN.device).float()
    frequency_r = 1.0 / rope_base ** (column_r / rope_dim)  # r / 2 of them
    heads = (num_heads, num_kv_heads, num_kv_heads)

    def rows(qkv: "Tensor", positions: "Tensor") -> "tuple[Tensor, Tensor, Tensor]":
        packed = qkv if qkv_bias_N is None else qkv + qkv_bias_N
        q, k, v = packed.unflatten(-1, (-1, head_dim)).split(heads, 1)
        angle = positions.float()[:, None, None] * frequency_r
        return _rotate(q.float(), angle), _rotate(k.float(), angle), v

    T = qkv_TN.shape[0]
    q_THqd, k_THkd, v_THkd = by_rows(
        rows, qkv_TN, positions_T, out=tuple(qkv_TN.new_empty(T, H, head_dim) for H in heads)
    )
    return q_THqd, k_THkd, v_THkd


def _rotate(x_THd: "Tensor", angle_T1r: "Tensor") -> "Tensor":
    import torch

    half = angle_T1r.shape[-1]
    one, other, rest = x_THd[..., :half], x_THd[..., half : 2 * half], x_THd[..., 2 * half :]
    cos, sin = angle_T1r.cos(), angle_T1r.sin()
    return torch.cat([one * cos - other * sin, other * cos + one * sin, rest], -1)


def inputs(
    *,
    total_tokens: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    dtype: str = "bf16",
    with_bias: bool = False,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """A mixed batch: half of the tokens are decoded, anywhere in their sequences; the others are a piece of a prompt.

    No token is at position 0, where nothing turns. `with_bias` adds the optional bias.
    """
    draw = Draws(seed, device)
    columns = (num_heads + 2 * num_kv_heads) * head_dim
    tensors = {
        "qkv": draw.normal(total_tokens, columns, dtype=dtype),
        "positions": _positions(draw, total_tokens),
    }
    return {**tensors, "qkv_bias": draw.normal(columns, dtype=dtype, scale=0.5)} if with_bias else tensors


def _positions(draw: Draws, tokens: int) -> "Tensor":
    import torch

    decoded = draw.integers(tokens - tokens // 2, low=1, high=FURTHEST)
    prompt = torch.arange(tokens // 2, dtype=torch.int32, device=draw.device)
    start = draw.integers(1, low=1, high=max(2, FURTHEST - tokens // 2))
    return torch.cat([decoded, start + prompt])


def cost(
    *,
    total_tokens: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    rope_dim: int,
    with_bias: bool = False,
    **_: object,
) -> Cost:
    """An element that turns: two multiplies and an add. The frequencies, and an angle a pair of columns and token."""
    T, Hq, Hk, d, r = total_tokens, num_heads, num_kv_heads, head_dim, rope_dim
    N = (Hq + 2 * Hk) * d
    return Cost(
        3 * T * (Hq + Hk) * r + T * r // 2 + r + (T * N if with_bias else 0),
        read_bytes=2 * T * N + 4 * T + (2 * N if with_bias else 0),
        written_bytes=2 * T * N,
    )


def work(
    *,
    total_tokens: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    rope_dim: int,
    with_bias: bool = False,
    **_: object,
) -> Work:
    """An element that turns: two multiplies, an add. A pair of columns, once per token: an angle, its sine and cosine.

    The frequencies are the same at every call: none of its work.
    """
    T, Hq, Hk, d, r = total_tokens, num_heads, num_kv_heads, head_dim, rope_dim
    N = (Hq + 2 * Hk) * d
    return Work(
        vector_flops=3 * T * (Hq + Hk) * r + T * r // 2 + (T * N if with_bias else 0),
        special_ops=T * r,
        read_bytes=2 * T * N + 4 * T + (2 * N if with_bias else 0),
        written_bytes=2 * T * N,
    )


OPERATOR = Operator(
    name="fused_qkv_rope",
    summary="Packed rows split into heads of q, k and v; q and k rotated by their positions.",
    dims={
        "T": "tokens",
        "Hq": "query heads",
        "Hk": "key-value heads",
        "d": "head size",
        "r": "columns of a head that turn",
        "N": "(Hq + 2 Hk) d",
    },
    axes=Axes(
        op_type="rope",
        sizes={
            "T": "total_tokens",
            "Hq": "num_heads",
            "Hk": "num_kv_heads",
            "d": "head_dim",
            "N": lambda num_heads, num_kv_heads, head_dim: (num_heads + 2 * num_kv_heads) * head_dim,
        },
        varying=("T",),
        inputs={"qkv": "T N: dtype", "positions": "T: int32", "qkv_bias": "N: dtype"},
        outputs={"q": "T Hq d: dtype", "k": "T Hk d: dtype", "v": "T Hk d: dtype"},
        values={"positions": lambda T: index_tensors.positions(T)},
        optional={"qkv_bias": "with_bias"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("q", "k", "v"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros, or the turned bias", zeroed("qkv")),
            HardCase("zeros", "tokens at position 0", "heads that don't turn", filled(0, "positions")),
            HardCase("large numbers", "large numbers", "turned as others", enlarged("qkv", room=4.0, most=2.0**100)),
            HardCase("tiny numbers", "tiny numbers", "turned as others", shrunk("qkv", "qkv_bias")),
            HardCase(
                "NaN", "NaN in one number", "NaN there and in what it turns with, alone", spoiled(nan, "qkv", (0, 0))
            ),
            no_tokens(total_tokens=0),
        ),
        few=at_most(total_tokens=8),
        left_out={
            "infinity": "sine and cosine of an infinite number's pair may be rounded to 0, which makes NaN of it"
        },
    ),
    settings=("num_heads", "num_kv_heads", "head_dim", "rope_dim", "rope_base"),
    tiny=(
        {"total_tokens": 1, "num_heads": 4, "num_kv_heads": 1, "head_dim": 128, "rope_dim": 128, "dtype": "fp16"},
        {"total_tokens": 63, "num_heads": 3, "num_kv_heads": 2, "head_dim": 24, "rope_dim": 16, "dtype": "bf16"},
        {
            "total_tokens": 5,
            "num_heads": 2,
            "num_kv_heads": 2,
            "head_dim": 72,
            "rope_dim": 72,
            "dtype": "fp16",
            "rope_base": 1e6,
            "with_bias": True,
        },
    ),
)
