"""RMS norm over the last dimension, with a weight. Source: arXiv:1910.07467, equation 4.

T tokens, H hidden size.
"""

from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_norms import norm_cases
from inferometer.operators.catalogue.pieces import by_rows, pieces
from inferometer.operators.hard_cases import HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6) -> "Tensor":
    """float32 inside, the dtype of `x_TH` outside; the weight is applied in float32 too."""
    import torch

    weight32_H = weight_H.float()

    def rows(x: "Tensor") -> "Tensor":
        x32 = x.float()
        return x32 * (x32.square().mean(-1, keepdim=True) + eps).rsqrt() * weight32_H

    (out_TH,) = by_rows(rows, x_TH, out=(torch.empty_like(x_TH),))
    return out_TH


def inputs(*, token_count: int, hidden_size: int, seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """Rows whose scales differ by more than ten times, as residual streams have them."""
    draw = Draws(seed, device)
    scale_T1 = draw.uniform(token_count, 1, low=0.2, high=4.0)
    x_TH = draw.normal(token_count, hidden_size)
    for part in pieces(token_count, hidden_size):
        x_TH[part] *= scale_T1[part].to(x_TH.dtype)
    return {"x": x_TH, "weight": draw.norm_weight(hidden_size)}


def cost(*, token_count: int, hidden_size: int, **_: object) -> Cost:
    """A mean, a multiply by the scale and one by the weight; eps a row. Squares and roots aren't counted."""
    T, H = token_count, hidden_size
    return Cost(T * (3 * H + 1), read_bytes=2 * T * H + 2 * H, written_bytes=2 * T * H)


def work(*, token_count: int, hidden_size: int, **_: object) -> Work:
    """An element: a square and its sum, two multiplies; a row: a divide, an add and an rsqrt."""
    T, H = token_count, hidden_size
    return Work(vector_flops=T * (4 * H + 2), special_ops=T, read_bytes=2 * T * H + 2 * H, written_bytes=2 * T * H)


OPERATOR = Operator(
    name="rms_norm",
    summary="Root-mean-square norm of each row, times a weight.",
    dims={"T": "tokens", "H": "hidden size"},
    axes=Axes(
        op_type="rmsnorm",
        sizes={"T": "token_count", "H": "hidden_size"},
        varying=("T",),
        inputs={"x": "T H", "weight": "H"},
        outputs={"out": "T H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (*norm_cases("x"), no_tokens(token_count=0)),
        few=at_most(token_count=8),
    ),
    settings=("eps",),
    tiny=(
        {"token_count": 1, "hidden_size": 128, "eps": 1e-6},
        {"token_count": 63, "hidden_size": 72, "eps": 1e-6},
        {"token_count": 5, "hidden_size": 1029, "eps": 0.1},
    ),
)
