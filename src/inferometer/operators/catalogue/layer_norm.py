"""Layer norm over the last dimension, with weight and bias. Source: arXiv:1607.06450, equation 4.

T rows (all dimensions but the last), H columns. The variance is of the whole row: divided by H, not by H - 1.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes, Entry
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(x: "Tensor", weight_H: "Tensor", bias_H: "Tensor", *, eps: float = 1e-5) -> "Tensor":
    """Mean first, then the variance about it; float32 inside, the dtype of `x` outside. `x` is [..., H]."""
    import torch

    weight32_H, bias32_H = weight_H.float(), bias_H.float()

    def rows(x: "Tensor") -> "Tensor":
        x32 = x.float()
        centered = x32 - x32.mean(-1, keepdim=True)
        return centered * (centered.square().mean(-1, keepdim=True) + eps).rsqrt() * weight32_H + bias32_H

    x_TH = x.reshape(-1, x.shape[-1])
    (out_TH,) = by_rows(rows, x_TH, out=(torch.empty_like(x_TH),))
    return out_TH.reshape(x.shape)


def inputs(*, shape: Sequence[int], seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """Rows whose scales differ by more than ten times, with means that aren't 0."""
    draw = Draws(seed, device)
    rows = (*shape[:-1], 1)
    mean, scale = draw.normal(*rows), draw.uniform(*rows, low=0.2, high=4.0, dtype="bf16")
    return {
        "x": draw.normal(*shape).add_(mean).mul_(scale),
        "weight": draw.norm_weight(shape[-1]),
        "bias": draw.normal(shape[-1], scale=0.1),
    }


def cost(*, shape: Sequence[int], **_: object) -> Cost:
    """Seven an element, as a layer norm with weight and bias is counted."""
    elements, H = prod(shape), shape[-1]
    return Cost(7 * elements, read_bytes=2 * elements + 4 * H, written_bytes=2 * elements)


def work(*, shape: Sequence[int], **_: object) -> Work:
    """An element: its sum, its square and their sum, the mean subtracted, a multiply, a multiply-add.

    A row: two divides, a square of the mean subtracted, eps added, an rsqrt.
    """
    T, H = prod(shape[:-1]), shape[-1]
    return Work(
        vector_flops=T * (7 * H + 5),
        special_ops=T,
        read_bytes=2 * T * H + 4 * H,
        written_bytes=2 * T * H,
    )


OPERATOR = Operator(
    name="layer_norm",
    summary="Each row less its mean, divided by its standard deviation, times a weight, plus a bias.",
    dims={"T": "rows", "H": "columns"},
    axes=Axes(
        op_type="layernorm",
        sizes={"H": Entry("shape", -1)},
        varying=(),
        inputs={"x": "... H", "weight": "H", "bias": "H"},
        outputs={"out": "... H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    settings=("eps",),
    tiny=(
        {"shape": [1, 128]},
        {"shape": [21, 3, 72]},
        {"shape": [5, 1, 1029]},
        {"shape": [63, 9], "eps": 0.1},
    ),
)
