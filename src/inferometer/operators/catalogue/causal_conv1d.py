"""Causal convolution of each channel over its tokens, with the tokens before them carried in, a bias and SiLU.

out[c, t] = silu(bias[c] + sum over i of weight[c, i] x[c, t - W + 1 + i]), where x of a negative token is from the
carried-in state: the W - 1 tokens before the first. Tokens of a channel lie side by side.

D channels, T tokens, W width.
"""

from math import nan
from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    UNSAID_INFINITY,
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


def reference(
    x_DT: "Tensor", weight_DW: "Tensor", bias_D: "Tensor", initial_state: "Tensor", *, activation: str | None = "silu"
) -> "Tensor":
    """float32 inside. `initial_state` is [1, D, W - 1]; `activation` None gives the bare convolution."""
    import torch
    from torch.nn.functional import silu

    T, W = x_DT.shape[1], weight_DW.shape[1]

    def channels(x: "Tensor", weight: "Tensor", bias: "Tensor", before: "Tensor") -> "Tensor":
        padded = torch.cat([before, x], 1).float()
        summed = bias.float()[:, None].repeat(1, T)
        for i in range(W):
            summed += weight[:, i : i + 1].float() * padded[:, i : i + T]
        return summed if activation is None else silu(summed)

    (out_DT,) = by_rows(channels, x_DT, weight_DW, bias_D, initial_state[0], out=(torch.empty_like(x_DT),))
    return out_DT


def inputs(
    *, token_count: int, dim: int, width: int, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Channels of different scale; sums near 1, so that SiLU is neither linear nor flat."""
    draw = Draws(seed, device)
    weight_DW = draw.normal(dim, width, scale=width**-0.5) * draw.uniform(dim, 1, low=0.5, high=3.0, dtype="bf16")
    return {
        "x": draw.normal(dim, token_count),
        "weight": weight_DW,
        "bias": draw.normal(dim, scale=0.5),
        "initial_state": draw.normal(1, dim, width - 1),
    }


def _bytes(T: int, D: int, W: int) -> tuple[int, int]:
    """Read and written: x, weight, bias and state; the output."""
    return 2 * D * (T + W + 1 + W - 1), 2 * D * T


def cost(*, token_count: int, dim: int, width: int, activation: str | None = "silu", **_: object) -> Cost:
    """The convolution without its bias, and SiLU."""
    flops = token_count * dim * (2 * width + (4 if activation else 0))
    return Cost(flops, *_bytes(token_count, dim, width))


def work(*, token_count: int, dim: int, width: int, activation: str | None = "silu", **_: object) -> Work:
    """An element: `width` multiply-adds that start from the bias; of SiLU an exp, an add and a divide."""
    elements = token_count * dim
    read, written = _bytes(token_count, dim, width)
    return Work(
        vector_flops=elements * (2 * width + (2 if activation else 0)),
        special_ops=elements if activation else 0,
        read_bytes=read,
        written_bytes=written,
    )


OPERATOR = Operator(
    name="causal_conv1d",
    summary="Causal convolution of each channel, continued from a carried-in state, with bias and SiLU.",
    dims={"D": "channels", "T": "tokens", "W": "width of the convolution", "W1": "width - 1"},
    axes=Axes(
        op_type="causal_conv1d",
        sizes={"D": "dim", "T": "token_count", "W": "width", "one": 1, "W1": lambda width: width - 1},
        varying=("T",),
        inputs={"x": "D T", "weight": "D W", "bias": "D", "initial_state": "one D W1"},
        outputs={"out": "D T"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "channels of zeros", "SiLU of the bias", zeroed("x")),
            HardCase(
                "zeros",
                "nothing before the first token",
                "the convolution of zeros before it",
                filled(0.0, "initial_state"),
            ),
            HardCase(
                "large numbers",
                "large numbers",
                "the sum or 0 after SiLU: exp may overflow on the way",
                enlarged("x", "initial_state", room=64.0, most=2.0**50),
            ),
            HardCase("tiny numbers", "tiny numbers", "SiLU of the bias", shrunk("x", "initial_state")),
            HardCase("NaN", "NaN in one token", "NaN in its channel, there and as far as the width", spoiled(nan, "x")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=32),
        left_out={"infinity": UNSAID_INFINITY},
    ),
    settings=("activation",),
    tiny=(
        {"token_count": 1, "dim": 129, "width": 4, "activation": "silu"},
        {"token_count": 63, "dim": 40, "width": 4, "activation": "silu"},
        {"token_count": 130, "dim": 7, "width": 3, "activation": None},
    ),
)
