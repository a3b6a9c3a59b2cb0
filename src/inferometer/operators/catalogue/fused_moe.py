"""Mixture of experts: each token goes through its k experts, gated feed-forward networks, and sums what they give.

An expert is `w2 (silu(gate x) * up x)`; w1 holds the rows of gate, then those of up. Sources: arXiv:2002.05202
(SwiGLU), arXiv:1701.06538 (routed experts). Production returns bf16, the contract float32. An expert that a token names
twice counts with both weights; ids below 0 or from E up are nobody's. Published FLOPs are of draws in which a token may
name one twice, and up to 9 % low for it; here the experts of a token differ and are unequally popular.

T tokens, H hidden size, I intermediate size, F = 2 I rows of gate and up, E experts, k experts per token; R rows of one
expert; s = T k slots.
"""

from collections.abc import Callable, Iterator
from math import nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import SKEW, Draws
from inferometer.operators.catalogue.hard_routing import same_experts
from inferometer.operators.catalogue.pieces import pieces
from inferometer.operators.hard_cases import (
    UNSAID_INFINITY,
    HardCase,
    HardCases,
    at_most,
    no_tokens,
    scaled,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work, active_experts

if TYPE_CHECKING:
    from torch import Tensor

_LEAST_TILE = 8  # rows of tokens that an instruction multiplies at once: 8 on NVIDIA's, 16 on AMD's


def reference(
    hidden_TH: "Tensor", w1_EFH: "Tensor", w2_EHI: "Tensor", weights_Tk: "Tensor", ids_Tk: "Tensor"
) -> "Tensor":
    """float32 throughout, expert by expert."""
    import torch

    out_TH = torch.zeros(hidden_TH.shape, dtype=torch.float32, device=hidden_TH.device)
    for expert in used_experts(ids_Tk, w1_EFH.shape[0]):
        w1_FH, w2_HI = w1_EFH[expert].float(), w2_EHI[expert].float()
        add_expert(out_TH, weights_Tk, ids_Tk == expert, lambda rows: hidden_TH[rows].float(), w1_FH, w2_HI)
    return out_TH


def used_experts(ids_Tk: "Tensor", experts: int) -> list[int]:
    """Those that have tokens."""
    return [expert for expert in ids_Tk.unique().tolist() if 0 <= expert < experts]


def add_expert(
    out_TH: "Tensor",
    weights_Tk: "Tensor",
    chosen_Tk: "Tensor",
    hidden_of: "Callable[[Tensor], Tensor]",
    w1_FH: "Tensor",
    w2_HI: "Tensor",
) -> None:
    """Add one expert's part to `out_TH`, weighted; `hidden_of(rows)` gives those rows in float32."""
    import torch

    weight_T = (weights_Tk * chosen_Tk).sum(1)
    rows_R = chosen_Tk.any(1).nonzero().flatten()
    for part in pieces(len(rows_R), max(w1_FH.shape)):
        rows = rows_R[part]
        gate, up = (hidden_of(rows) @ w1_FH.T).chunk(2, -1)
        found = (torch.nn.functional.silu(gate) * up) @ w2_HI.T
        out_TH.index_add_(0, rows, found * weight_T[rows, None])


def inputs(
    *,
    token_count: int,
    hidden_size: int,
    intermediate_size: int,
    num_experts: int,
    top_k: int,
    routing_skew: float = SKEW,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Weights scaled so that gate, up and output are about 1; experts of a token differ and are unequally popular."""
    draw = Draws(seed, device)
    T, H, I, E = token_count, hidden_size, intermediate_size, num_experts  # noqa: E741
    weights_Tk, ids_Tk = draw.routing(T, E, top_k, skew=routing_skew)
    return {
        "hidden_states": draw.normal(T, H),
        "w1": draw.normal(E, 2 * I, H, scale=H**-0.5),
        "w2": draw.normal(E, H, I, scale=3 * I**-0.5),  # silu(gate) * up is about 0.6, and weights average
        "topk_weights": weights_Tk,
        "topk_ids": ids_Tk,
    }


def cost(
    *, token_count: int, hidden_size: int, intermediate_size: int, num_experts: int, top_k: int, **_: object
) -> Cost:
    """Experts that are expected to be used, read once; the published FLOPs are of a draw that we don't have."""
    T, H, s = token_count, hidden_size, token_count * top_k
    A = active_experts(T, num_experts, top_k)
    return Cost(None, read_bytes=2 * T * H + 6 * A * H * intermediate_size + 8 * s, written_bytes=4 * T * H)


def work(
    *,
    token_count: int,
    hidden_size: int,
    intermediate_size: int,
    num_experts: int,
    top_k: int,
    experts_used: int | None = None,
    **_: object,
) -> Work:
    """A slot and column of I: silu is three multiplies or adds and a tanh, and one multiply by up; its weight once.

    The sums over a token's experts aren't counted: sums of products or the memory's own additions can make them.
    `experts_used`: how many have tokens, where the draw is known.
    """
    T, H, I, s = token_count, hidden_size, intermediate_size, token_count * top_k  # noqa: E741
    A = active_experts(T, num_experts, top_k) if experts_used is None else experts_used
    return Work(
        dtype="bf16",
        products=tuple(expert_products(s, A, H, I)),
        vector_flops=s * (4 * I + min(H, I)),
        special_ops=s * I,
        read_bytes=2 * T * H + 6 * A * H * I + 8 * s,
        written_bytes=4 * T * H,
        assumes=() if experts_used is not None else (evenly_used(A, num_experts),),
    )


def evenly_used(active: int, experts: int) -> str:
    """What a bound assumes that doesn't know the draw."""
    return f"tokens choose experts evenly, so {active} of {experts} are used; where fewer are, the bound is lower"


def expert_products(slots: int, active: int, hidden: int, intermediate: int) -> Iterator[Product]:
    """Both products of all experts, with tokens on the side M, spread so that the least is padded.

    However `slots` rows fall on `active` experts, tiles of t rows are at least max(active, ceil(slots / t)); the sizes
    given here need just that many for t = 8 and 16.
    """
    for experts, rows in _least_padded(slots, active):
        if experts:
            yield Product(4 * experts * rows * hidden * intermediate, M=rows, K=hidden)
            yield Product(2 * experts * rows * hidden * intermediate, M=rows, K=intermediate)


def _least_padded(slots: int, active: int) -> tuple[tuple[int, int], ...]:
    """How many experts have how many rows."""
    t = _LEAST_TILE
    if slots <= t * active:
        rows, more = divmod(slots, active)
        return (more, rows + 1), (active - more, rows)
    full, rest = divmod(slots - t * active, t)
    if full >= active:
        return ((1, slots),)  # at least 16 per expert: all tiles but one can be full
    return (full, 2 * t), (min(rest, 1), t + rest), (active - full - min(rest, 1), t)


OPERATOR = Operator(
    name="fused_moe",
    summary="Top-k routed experts, each a gated feed-forward network with SiLU, summed with the router's weights.",
    dims={
        "T": "tokens",
        "H": "hidden size",
        "I": "intermediate size of an expert",
        "F": "rows of gate and up: 2 I",
        "E": "experts",
        "k": "experts per token",
    },
    axes=Axes(
        op_type="moe",
        sizes={
            "T": "token_count",
            "H": "hidden_size",
            "I": "intermediate_size",
            "F": lambda intermediate_size: 2 * intermediate_size,
            "E": "num_experts",
            "k": "top_k",
        },
        varying=("T",),
        inputs={
            "hidden_states": "T H",
            "w1": "E F H",
            "w2": "E H I",
            "topk_weights": "T k: fp32",
            "topk_ids": "T k: int32",
        },
        outputs={"out": "T H: fp32"},
        values={"topk_ids": lambda T, E, k: index_tensors.experts(T, E, k)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "tokens of zeros", "zeros", zeroed("hidden_states")),
            HardCase("masked", "tokens of weight 0", "zeros", zeroed("topk_weights")),
            HardCase("one expert", "all tokens on the first experts", "as ever", same_experts(last=False)),
            HardCase("one expert", "all tokens on the last experts", "as ever", same_experts(last=True)),
            HardCase(
                "large numbers",
                "gates wide open and shut",
                "products of gate and up, or 0: exp may overflow on the way, fp16 does",
                scaled(2.0**16, "hidden_states"),
            ),
            HardCase("tiny numbers", "tiny tokens", "half of gate times up", scaled(2.0**-30, "hidden_states")),
            HardCase("NaN", "NaN in one token", "NaN in all of its row and in no other", spoiled(nan, "hidden_states")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
        left_out={
            "infinity": UNSAID_INFINITY,
            "ids of nobody": "engines mark slots without an expert each in their own way: -1, E, or a map of experts",
        },
    ),
    tolerance={"out": 1e-2},  # as for bf16: kernels round what goes into the second product to it, and often the result
    tiny=(
        {"token_count": 1, "hidden_size": 64, "intermediate_size": 32, "num_experts": 8, "top_k": 2},
        {"token_count": 63, "hidden_size": 72, "intermediate_size": 24, "num_experts": 5, "top_k": 2},
        {"token_count": 7, "hidden_size": 33, "intermediate_size": 129, "num_experts": 16, "top_k": 8},
        {"token_count": 17, "hidden_size": 128, "intermediate_size": 16, "num_experts": 3, "top_k": 3},
    ),
)
