"""Layer norm over the last dimension, with weight and bias. Source: arXiv:1607.06450, equation 4.

T rows (all dimensions but the last), H columns. The variance is of the whole row: divided by H, not by H - 1.
"""

from collections.abc import Mapping, Sequence
from math import inf, nan, prod
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes, Entry
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    NORM_RANGE,
    HardCase,
    HardCases,
    enlarged,
    few_rows,
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


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


def _offset(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    """Rows of about 1000 in which one number of 32 is larger by 4, of 8 in fp16, which has a smaller tolerance.

    The mean is so far above the deviation that a difference of two sums has little left of the variance, and not so far
    that a mean which is added up number by number is off by much. Of float32: rows of deviation 1 about 20.
    """
    import torch

    x = tensors["x"]
    if x.dtype == torch.float32:
        return {"x": (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + 20.0}
    H = x.shape[-1]
    base_T1 = 1000.0 + 4.0 * (torch.arange(x[..., 0].numel(), device=x.device) % 5)[:, None]
    x_TH = base_T1.repeat(1, H)
    x_TH[:, H // 3 % 32 :: 8 if x.dtype == torch.float16 else 32] += 4.0
    return {"x": x_TH.to(x.dtype).view(x.shape)}


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
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "the bias: eps keeps the root from 0", zeroed("x")),
            HardCase("offset", "a common offset", "the variance about the mean, of deviations from it", _offset),
            HardCase(
                "large numbers",
                "large numbers",
                "what smaller ones would give: squares are summed in float32",
                enlarged("x", room=4.0, most=NORM_RANGE),
            ),
            HardCase("tiny numbers", "tiny numbers", "the bias: next to eps nothing is left of them", shrunk("x")),
            HardCase("NaN", "NaN in one number", "NaN in all of its row and in no other", spoiled(nan, "x")),
            HardCase("infinity", "infinity in one number", "NaN in all of its row and in no other", spoiled(inf, "x")),
            no_tokens("x"),
        ),
        few=few_rows,
    ),
    settings=("eps",),
    tiny=(
        {"shape": [1, 128]},
        {"shape": [21, 3, 72]},
        {"shape": [5, 1, 1029]},
        {"shape": [63, 9], "eps": 0.1},
    ),
)
