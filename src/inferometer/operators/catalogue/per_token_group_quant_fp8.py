"""FP8 values with one scale for each row and group of columns.

T tokens, H hidden size, g columns of a group: H is a multiple of it. The published contract is e4m3fn with its
largest value 448 on CUDA, and e4m3fnuz with 224 on ROCm, not the 240 that the type has: `fp8_dtype` chooses, fn is the
default, and `fp8_max` sets another largest value.
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

LEAST_SCALE = 1e-10
"""The scale of a group of zeros."""

_USED = {"fp8_e4m3fnuz": 224.0}
"""Largest values that aren't those of the type."""


def reference(
    x_TH: "Tensor", *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
) -> "tuple[Tensor, ...]":
    """FP8 [T, H] and scales fp32 [T, H / g], whose product is about `x`: divided by the scale in float32, clamped."""
    import torch

    most = (_USED.get(fp8_dtype) or largest_of(fp8_dtype)) if fp8_max is None else fp8_max
    T, H = x_TH.shape

    def rows(x: "Tensor") -> "tuple[Tensor, Tensor]":
        x_tGg = x.float().unflatten(-1, (H // group_size, group_size))
        scale_tG1 = (x_tGg.abs().amax(-1, keepdim=True) / most).clamp(min=LEAST_SCALE)
        return (x_tGg / scale_tG1).clamp(-most, most).flatten(1), scale_tG1.squeeze(-1)

    q_TH = torch.empty_like(x_TH, dtype=torch_dtype(fp8_dtype))
    return by_rows(rows, x_TH, out=(q_TH, torch.empty(T, H // group_size, device=x_TH.device)))


def inputs(
    *,
    token_count: int,
    hidden_size: int,
    group_size: int,
    zero_groups: int = 0,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Activations at unit scale, so that scales are far from LEAST_SCALE; the first `zero_groups` of a row are zero."""
    x_TH = Draws(seed, device).activations(token_count, hidden_size)
    x_TH[:, : zero_groups * group_size] = 0
    return {"x": x_TH}


def cost(*, token_count: int, hidden_size: int, group_size: int, **_: object) -> Cost:
    """A divide per element and one per group; magnitudes and maxima aren't counted."""
    T, H, G = token_count, hidden_size, hidden_size // group_size
    return Cost(T * (H + G), read_bytes=2 * T * H, written_bytes=T * H + 4 * T * G)


def work(*, token_count: int, hidden_size: int, group_size: int, **_: object) -> Work:
    """An element: a maximum and a multiply; a group: two divides and the least scale.

    Magnitude and saturation come with instructions.
    """
    T, H, G = token_count, hidden_size, hidden_size // group_size
    return Work(vector_flops=T * (2 * H + 3 * G), read_bytes=2 * T * H, written_bytes=T * H + 4 * T * G)


def _any_scale_of_zeros(
    found: "Tensors", wanted: "Tensors", tensors: "Tensors", args: Mapping[str, Any]
) -> "dict[str, Tensor]":
    """Where all are zeros, so is their product with any scale: kernels have a least scale, each another one."""
    del tensors, args
    scale = wanted["scales"]
    zeros = wanted["quantized"].float().reshape(*scale.shape, -1).abs().amax(-1) == 0
    return {**wanted, "scales": scale.where(~(zeros & found["scales"].isfinite()), found["scales"])}


OPERATOR = Operator(
    name="per_token_group_quant_fp8",
    summary="Each group of columns of a row to FP8, with a scale from the group's largest magnitude.",
    dims={"T": "tokens", "H": "hidden size", "G": "groups of a row", "g": "columns of a group"},
    axes=Axes(
        op_type="quantization",
        sizes={"T": "token_count", "H": "hidden_size", "G": lambda hidden_size, group_size: hidden_size // group_size},
        varying=("T",),
        inputs={"x": "T H"},
        outputs={"quantized": "T H: fp8_dtype", "scales": "T G: fp32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("quantized", "scales"),
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
    settings=("group_size", "fp8_dtype", "fp8_max"),
    quantised=frozenset({"quantized"}),
    tiny=(
        {"token_count": 1, "hidden_size": 128, "group_size": 128},
        {"token_count": 63, "hidden_size": 48, "group_size": 16, "fp8_dtype": "fp8_e4m3fnuz"},
        {"token_count": 5, "hidden_size": 903, "group_size": 129},
        {"token_count": 3, "hidden_size": 256, "group_size": 64, "zero_groups": 1, "fp8_max": 240.0},
    ),
)
