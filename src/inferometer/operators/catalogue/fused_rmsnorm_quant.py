"""Residual add, RMS norm with a weight, and FP8 values of each row with a scale from its largest magnitude.

T tokens, H hidden size. The published contract is e4m3fnuz with its largest value 240 (224 in some vendors' kernels);
NVIDIA's GPUs lack that type: `fp8_dtype` chooses e4m3fn, largest 448, and `fp8_max` another largest value. The norm:
arXiv:1910.07467, equation 4.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws, largest_of, torch_dtype
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    NAN_IN_MAXIMUM,
    NORM_RANGE,
    HardCase,
    HardCases,
    at_most,
    enlarged,
    no_tokens,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    x_TH: "Tensor",
    residual_TH: "Tensor",
    weight_H: "Tensor",
    *,
    eps: float = 1e-5,
    fp8_dtype: str = "fp8_e4m3fnuz",
    fp8_max: float | None = None,
) -> "tuple[Tensor, ...]":
    """FP8 [T, H], scale fp32 [T, 1], the new residual [T, H].

    The sum is rounded to the residual's dtype before the norm, and the weighted norm before the maximum. A row whose
    norm is all zero has the scale 1.
    """
    import torch

    most = largest_of(fp8_dtype) if fp8_max is None else fp8_max
    weight32_H = weight_H.float()

    def rows(x: "Tensor", residual: "Tensor") -> "tuple[Tensor, Tensor, Tensor]":
        added = (x.float() + residual.float()).to(residual.dtype)
        added32 = added.float()
        inverse_t1 = (added32.square().mean(-1, keepdim=True) + eps).rsqrt()
        normed = (added32 * inverse_t1 * weight32_H).to(x.dtype).float()
        scale_t1 = normed.abs().amax(-1, keepdim=True) / most
        scale_t1 = scale_t1.masked_fill(scale_t1 == 0, 1.0)
        return (normed / scale_t1).clamp(-most, most), scale_t1, added

    quantized_TH = torch.empty_like(x_TH, dtype=torch_dtype(fp8_dtype))
    scale_T1 = torch.empty(x_TH.shape[0], 1, device=x_TH.device)
    return by_rows(rows, x_TH, residual_TH, out=(quantized_TH, scale_T1, torch.empty_like(residual_TH)))


def inputs(
    *, token_count: int, hidden_size: int, zero_rows: int = 0, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """A residual stream with outliers, and what a layer adds to it; the last `zero_rows` are zero: padding."""
    draw = Draws(seed, device)
    x_TH = draw.normal(token_count, hidden_size)
    residual_TH = draw.activations(token_count, hidden_size)
    for each in (x_TH, residual_TH):
        each[token_count - zero_rows :] = 0
    return {"x": x_TH, "residual": residual_TH, "weight": draw.norm_weight(hidden_size)}


def cost(*, token_count: int, hidden_size: int, **_: object) -> Cost:
    """An element: the add, a mean, two multiplies, a divide; a row: eps and the scale. No squares, roots or maxima."""
    T, H = token_count, hidden_size
    return Cost(T * (5 * H + 2), read_bytes=4 * T * H + 2 * H, written_bytes=3 * T * H + 4 * T)


def work(*, token_count: int, hidden_size: int, **_: object) -> Work:
    """An element: the add, a square and its sum, three multiplies, a maximum.

    A row: three divides, an add, an rsqrt. Magnitudes and saturation come with instructions.
    """
    T, H = token_count, hidden_size
    return Work(
        vector_flops=T * (7 * H + 4),
        special_ops=T,
        read_bytes=4 * T * H + 2 * H,
        written_bytes=3 * T * H + 4 * T,
    )


def _cancelling(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    return {"x": -tensors["residual"]}


OPERATOR = Operator(
    name="fused_rmsnorm_quant",
    summary="Residual add, RMS norm times a weight, then each row to FP8 with a scale of its own.",
    dims={"T": "tokens", "H": "hidden size"},
    axes=Axes(
        op_type="rmsnorm",
        sizes={"T": "token_count", "H": "hidden_size", "one": 1},
        varying=("T",),
        inputs={"x": "T H", "residual": "T H", "weight": "H"},
        outputs={"quantized": "T H: fp8_dtype", "scale": "T one: fp32", "residual": "T H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("quantized", "scale", "residual"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros, and the scale 1", zeroed("x", "residual")),
            HardCase("zeros", "rows that cancel the residual", "zeros, and the scale 1", _cancelling),
            HardCase(
                "large numbers",
                "large numbers",
                "what smaller ones would give, but for the residual: squares are summed in float32",
                enlarged("x", "residual", room=4.0, most=NORM_RANGE),
            ),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
        left_out={
            "tiny numbers": "production's kernels have a least scale, each another one",
            "NaN": NAN_IN_MAXIMUM,
            "infinity": NAN_IN_MAXIMUM,
        },
    ),
    settings=("eps", "fp8_dtype", "fp8_max"),
    # The maximum is a bf16 value: its neighbour is up to 2^-7 away, and with it the whole row, which flips so many FP8
    # values that right kernels reach 4.5e-2. Those that cut bits off come to 5.8e-2.
    tolerance={"scale": 8e-3, "quantized": 5e-2},
    tiny=(
        {"token_count": 1, "hidden_size": 129},
        {"token_count": 63, "hidden_size": 72, "eps": 1e-6, "fp8_dtype": "fp8_e4m3fn"},
        {"token_count": 5, "hidden_size": 1029, "fp8_max": 224.0},
        {"token_count": 4, "hidden_size": 128, "zero_rows": 2},
    ),
)
