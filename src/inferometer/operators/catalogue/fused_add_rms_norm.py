"""Residual add and RMS norm in one: the sum is rounded to the dtype of the residual stream, then normed.

The norm is `rms_norm`'s, arXiv:1910.07467, equation 4. Production writes the norm over `x` and the sum over
`residual`; the contract here returns both.

T tokens, H hidden size.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_norms import norm_cases
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    x_TH: "Tensor", residual_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6
) -> "tuple[Tensor, Tensor]":
    """The normed rows and the sum; what is normed is the rounded sum, in float32."""
    import torch

    weight32_H = weight_H.float()

    def rows(x: "Tensor", residual: "Tensor") -> "tuple[Tensor, Tensor]":
        added = (x + residual).to(residual.dtype)
        added32 = added.float()
        return added32 * (added32.square().mean(-1, keepdim=True) + eps).rsqrt() * weight32_H, added

    out_TH, added_TH = by_rows(
        rows, x_TH, residual_TH, out=(torch.empty_like(x_TH), torch.empty_like(residual_TH))
    )  # fmt: skip
    return out_TH, added_TH


def inputs(*, token_count: int, hidden_size: int, seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """A block's output of unit scale, and a residual stream whose rows differ in scale by more than ten times."""
    draw = Draws(seed, device)
    scale_T1 = draw.uniform(token_count, 1, low=0.2, high=4.0, dtype="bf16")
    return {
        "x": draw.normal(token_count, hidden_size),
        "residual": draw.normal(token_count, hidden_size).mul_(scale_T1),
        "weight": draw.norm_weight(hidden_size),
    }


def cost(*, token_count: int, hidden_size: int, **_: object) -> Cost:
    """An add, a mean, a multiply by the scale and one by the weight; eps a row. Squares and roots aren't counted."""
    T, H = token_count, hidden_size
    return Cost(T * (4 * H + 1), read_bytes=4 * T * H + 2 * H, written_bytes=4 * T * H)


def work(*, token_count: int, hidden_size: int, **_: object) -> Work:
    """An element: an add, a square and its sum, two multiplies; a row: a divide, an add and an rsqrt."""
    T, H = token_count, hidden_size
    return Work(vector_flops=T * (5 * H + 2), special_ops=T, read_bytes=4 * T * H + 2 * H, written_bytes=4 * T * H)


def _cancelling(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    return {"x": -tensors["residual"]}


OPERATOR = Operator(
    name="fused_add_rms_norm",
    summary="Adds each row to the residual stream and gives the root-mean-square norm of the sum, times a weight.",
    dims={"T": "tokens", "H": "hidden size"},
    axes=Axes(
        op_type="rmsnorm",
        sizes={"T": "token_count", "H": "hidden_size"},
        varying=("T",),
        inputs={"x": "T H", "residual": "T H", "weight": "H"},
        outputs={"out": "T H", "residual": "T H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out", "residual"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            *norm_cases("x", "residual"),
            HardCase("zeros", "rows that cancel the residual", "zeros in both outputs", _cancelling),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
    ),
    settings=("eps",),
    tiny=(
        {"token_count": 1, "hidden_size": 128, "eps": 1e-6},
        {"token_count": 63, "hidden_size": 72, "eps": 0.1},
        {"token_count": 5, "hidden_size": 1029, "eps": 1e-5},
    ),
    updates={"x": "out", "residual": "residual"},
)
