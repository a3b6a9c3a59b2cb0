"""A linear layer with a bias, its sigmoid, times another matrix: a gate.

T tokens, H hidden size, F output features. Qwen2-MoE gates its shared expert so, with one output feature; the 4096 of
the published shapes are a guess of their publisher.
"""

from math import inf, nan
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
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(hidden_TH: "Tensor", weight_FH: "Tensor", bias_F: "Tensor", post_TF: "Tensor") -> "Tensor":
    """The gate is rounded to the dtype of `hidden_TH` after its bias, and its sigmoid taken in float32."""
    import torch

    weight32_FH, bias32_F = weight_FH.float(), bias_F.float()

    def rows(hidden: "Tensor", post: "Tensor") -> "Tensor":
        gate = (hidden.float() @ weight32_FH.T + bias32_F).to(hidden.dtype)
        return torch.sigmoid(gate.float()) * post.float()

    (out_TF,) = by_rows(rows, hidden_TH, post_TF, out=(torch.empty_like(post_TF),))
    return out_TF


def inputs(
    *, token_count: int, hidden_size: int, out_features: int, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Gates from nearly shut to nearly open; those of the published inputs are all about a half."""
    draw = Draws(seed, device)
    return {
        "hidden_states": draw.normal(token_count, hidden_size),
        "weight": draw.normal(out_features, hidden_size, scale=2.0 * hidden_size**-0.5),
        "bias": draw.normal(out_features, scale=0.5),
        "post_mul_mat": draw.normal(token_count, out_features),
    }


def cost(*, token_count: int, hidden_size: int, out_features: int, **_: object) -> Cost:
    """The product, and a multiply for each output; bias and sigmoid aren't counted."""
    T, H, F = token_count, hidden_size, out_features
    return Cost(2 * T * H * F + T * F, read_bytes=2 * (T * H + F * H + F + T * F), written_bytes=2 * T * F)


def work(*, token_count: int, hidden_size: int, out_features: int, **_: object) -> Work:
    """The product, which may begin with the bias; an output: an exp, an add and a divide.

    A single row or column needs no matrix unit: no padding.
    """
    T, H, F = token_count, hidden_size, out_features
    return Work(
        dtype="bf16",
        products=(Product(2 * T * H * F, M=T if T > 1 else None, N=F if F > 1 else None),),
        vector_flops=2 * T * F,
        special_ops=T * F,
        read_bytes=2 * (T * H + F * H + F + T * F),
        written_bytes=2 * T * F,
    )


OPERATOR = Operator(
    name="linear_sigmoid_mul",
    summary="Sigmoid of a linear layer with bias, times another matrix.",
    dims={"T": "tokens", "H": "hidden size", "F": "output features"},
    axes=Axes(
        op_type="gemm",
        sizes={"T": "token_count", "H": "hidden_size", "F": "out_features"},
        varying=("T",),
        inputs={"hidden_states": "T H", "weight": "F H", "bias": "F", "post_mul_mat": "T F"},
        outputs={"out": "T F"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "gates of the bias alone", zeroed("hidden_states")),
            HardCase(
                "large numbers",
                "gates wide open and shut",
                "the other matrix or 0: exp may overflow on the way",
                both(enlarged("hidden_states", room=64.0, most=2.0**50), enlarged("post_mul_mat", room=2.0)),
            ),
            HardCase("tiny numbers", "tiny numbers", "gates of the bias alone", shrunk("hidden_states")),
            HardCase(
                "NaN", "NaN in one number", "NaN in all of its row and in no other", spoiled(nan, "hidden_states")
            ),
            HardCase("NaN", "NaN next to one gate", "NaN there alone", spoiled(nan, "post_mul_mat")),
            HardCase("infinity", "infinity next to one gate", "infinity there alone", spoiled(inf, "post_mul_mat")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
    ),
    tiny=(
        {"token_count": 1, "hidden_size": 129, "out_features": 63},
        {"token_count": 63, "hidden_size": 72, "out_features": 1},
        {"token_count": 17, "hidden_size": 64, "out_features": 129},
        {"token_count": 2, "hidden_size": 4097, "out_features": 9},  # deep enough that sums in bf16 show
    ),
)
