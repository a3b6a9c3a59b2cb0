"""FP8 values of each row, with the scale that takes the row's largest magnitude to the type's largest value.

T tokens, H hidden size. e4m3 comes as fnuz (AMD CDNA 3; largest 240, of which some vendors' kernels use 224) and as fn
(NVIDIA, OCP; largest 448), where the same bits are worth twice as much. The published contract is fnuz with 240;
NVIDIA's GPUs lack that type, so `fp8_dtype` chooses fn there, and `fp8_max` another largest value.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws, largest_of, torch_dtype
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    NAN_IN_MAXIMUM,
    HardCase,
    HardCases,
    at_most,
    enlarged,
    filled,
    no_tokens,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors

LEAST = 1e-12
"""Magnitude that a row has at least, so that a row of zeros has a scale too: LEAST over the largest value."""


def reference(x_TH: "Tensor", *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None) -> "tuple[Tensor, ...]":
    """FP8 [T, H] and scale fp32 [T], whose product is about `x`: multiplied by the scale's reciprocal in float32.

    A kernel that divides instead gives a neighbouring FP8 value in about one of ten thousand elements.
    """
    import torch

    most = largest_of(fp8_dtype) if fp8_max is None else fp8_max

    def rows(x: "Tensor") -> "tuple[Tensor, Tensor]":
        x32 = x.float()
        scale_t1 = x32.abs().amax(-1, keepdim=True).clamp(min=LEAST) / most
        return (x32 * scale_t1.reciprocal()).clamp(-most, most), scale_t1.squeeze(-1)

    q_TH = torch.empty_like(x_TH, dtype=torch_dtype(fp8_dtype))
    return by_rows(rows, x_TH, out=(q_TH, torch.empty(x_TH.shape[0], device=x_TH.device)))


def inputs(
    *, token_count: int, hidden_size: int, zero_rows: int = 0, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Activations; the last `zero_rows` are zero, as the padding of a captured batch is."""
    x_TH = Draws(seed, device).activations(token_count, hidden_size)
    x_TH[token_count - zero_rows :] = 0
    return {"x": x_TH}


def cost(*, token_count: int, hidden_size: int, **_: object) -> Cost:
    """A multiply an element and a divide a row; magnitudes, maxima and reciprocals aren't counted."""
    T, H = token_count, hidden_size
    return Cost(T * (H + 1), read_bytes=2 * T * H, written_bytes=T * H + 4 * T)


def work(*, token_count: int, hidden_size: int, **_: object) -> Work:
    """An element: a maximum and a multiply; a row: two divides and the least magnitude.

    Magnitudes of elements and saturation come with instructions.
    """
    T, H = token_count, hidden_size
    return Work(vector_flops=T * (2 * H + 3), read_bytes=2 * T * H, written_bytes=T * H + 4 * T)


def _any_scale_of_zeros(
    found: "Tensors", wanted: "Tensors", tensors: "Tensors", args: Mapping[str, Any]
) -> "dict[str, Tensor]":
    """Where all are zeros, so is their product with any scale: kernels have a least scale, each another one."""
    del tensors, args
    scale = wanted["scale"]
    zeros = wanted["q"].float().reshape(*scale.shape, -1).abs().amax(-1) == 0
    return {**wanted, "scale": scale.where(~(zeros & found["scale"].isfinite()), found["scale"])}


OPERATOR = Operator(
    name="fp8_dynamic_per_token_quant",
    summary="Each row to FP8, with a scale from its largest magnitude.",
    dims={"T": "tokens", "H": "hidden size"},
    axes=Axes(
        op_type="quantization",
        sizes={"T": "token_count", "H": "hidden_size"},
        varying=("T",),
        inputs={"x": "T H"},
        outputs={"q": "T H: fp8_dtype", "scale": "T: fp32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("q", "scale"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase(
                "zeros",
                "rows of zeros",
                "zeros, with any finite scale",
                zeroed("x"),
                left_open=_any_scale_of_zeros,
            ),
            HardCase(
                "zeros",
                "nothing but zeros",
                "zeros, with any finite scale",
                filled(0.0, "x"),
                left_open=_any_scale_of_zeros,
            ),
            HardCase(
                "large numbers", "numbers near the type's largest", "a scale as large as that asks for", enlarged("x")
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
    settings=("fp8_dtype", "fp8_max"),
    quantised=frozenset({"q"}),
    tiny=(
        {"token_count": 1, "hidden_size": 129},
        {"token_count": 63, "hidden_size": 72, "fp8_dtype": "fp8_e4m3fn"},
        {"token_count": 5, "hidden_size": 1029, "fp8_max": 224.0},
        {"token_count": 4, "hidden_size": 128, "zero_rows": 2, "fp8_dtype": "fp8_e4m3fn"},
    ),
)
