"""Mixture of experts with weights and activations in fp8: scales for tiles of weights and for parts of a token's row.

As `fused_moe`, with values times scales: w1 and w2 have one a tile (128 x 128: `scale_block_n` along I and F,
`scale_block_k` along H), a token one for each `scale_block_k` columns. The result is cast to fp8 without a scale, so
what is beyond the type's range becomes NaN; production returns bf16. Tile scales as in arXiv:2412.19437, section 3.3.

The published type is e4m3fnuz (AMD's CDNA 3, largest 240). NVIDIA's and later AMD hardware has e4m3fn (largest 448):
`fp8_dtype="fp8_e4m3fn"` draws that, and the result has the type of the input.

T tokens, H hidden size, I intermediate size, F = 2 I, E experts, k experts per token; n, m and h are I, F and H in
tiles; s = T k slots.
"""

from math import nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, tiles
from inferometer.operators.catalogue.draws import SKEW, Draws, torch_dtype
from inferometer.operators.catalogue.fused_moe import add_expert, evenly_used, expert_products, used_experts
from inferometer.operators.catalogue.hard_routing import same_experts
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, no_tokens, spoiled, zeroed
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work, active_experts

if TYPE_CHECKING:
    from torch import Tensor


def reference(
    hidden_TH: "Tensor",
    w1_EFH: "Tensor",
    w2_EHI: "Tensor",
    weights_Tk: "Tensor",
    ids_Tk: "Tensor",
    a_scale_Th: "Tensor",
    fc1_scale_Emh: "Tensor",
    fc2_scale_Ehn: "Tensor",
) -> "Tensor":
    """Values times scales, then float32 throughout: what goes into the second product isn't rounded to fp8."""
    import torch

    def hidden_of(rows: "Tensor") -> "Tensor":
        values = hidden_TH.view(torch.uint8)[rows].view(hidden_TH.dtype).float()
        return (values.unflatten(1, (a_scale_Th.shape[1], -1)) * a_scale_Th[rows, :, None]).flatten(1)

    out_TH = torch.zeros(hidden_TH.shape, dtype=torch.float32, device=hidden_TH.device)
    for expert in used_experts(ids_Tk, w1_EFH.shape[0]):
        w1_FH = _scaled(w1_EFH[expert], fc1_scale_Emh[expert])
        w2_HI = _scaled(w2_EHI[expert], fc2_scale_Ehn[expert])
        add_expert(out_TH, weights_Tk, ids_Tk == expert, hidden_of, w1_FH, w2_HI)
    return out_TH.to(hidden_TH.dtype)


def _scaled(values: "Tensor", tiles: "Tensor") -> "Tensor":
    """A matrix times the scale of each tile."""
    shape = (tiles.shape[0], values.shape[0] // tiles.shape[0], tiles.shape[1], values.shape[1] // tiles.shape[1])
    return (values.float().reshape(shape) * tiles[:, None, :, None]).reshape(values.shape)


def inputs(
    *,
    token_count: int,
    hidden_size: int,
    intermediate_size: int,
    num_experts: int,
    top_k: int,
    scale_block_n: int = 128,
    scale_block_k: int = 128,
    fp8_dtype: str = "fp8_e4m3fnuz",
    routing_skew: float = SKEW,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Values that use the type's whole range; scales that make gate, up and output about 1 and differ threefold."""
    import torch

    draw = Draws(seed, device)
    T, H, I, E = token_count, hidden_size, intermediate_size, num_experts  # noqa: E741
    m, n, h = 2 * I // scale_block_n, I // scale_block_n, H // scale_block_k
    unit = 4 / torch.finfo(torch_dtype(fp8_dtype)).max  # the largest value is four standard deviations
    weights_Tk, ids_Tk = draw.routing(T, E, top_k, skew=routing_skew)

    def scale(*shape: int, to: float) -> "Tensor":
        return draw.uniform(*shape, low=0.5 * unit * to, high=1.5 * unit * to)

    return {
        "hidden_states": draw.fp8(T, H, dtype=fp8_dtype, scale=1.0),
        "w1": draw.fp8(E, 2 * I, H, dtype=fp8_dtype, scale=1.0),
        "w2": draw.fp8(E, H, I, dtype=fp8_dtype, scale=1.0),
        "topk_weights": weights_Tk,
        "topk_ids": ids_Tk,
        "a_scale": scale(T, h, to=1.0),
        "fc1_scale": scale(E, m, h, to=H**-0.5),
        "fc2_scale": scale(E, h, n, to=3 * I**-0.5),
    }


def cost(
    *,
    token_count: int,
    hidden_size: int,
    intermediate_size: int,
    num_experts: int,
    top_k: int,
    scale_block_n: int = 128,
    scale_block_k: int = 128,
    **_: object,
) -> Cost:
    """As `fused_moe`, plus a multiply of each weight of the experts that are expected to be used, by its scale."""
    T, H, I, s = token_count, hidden_size, intermediate_size, token_count * top_k  # noqa: E741
    A = active_experts(T, num_experts, top_k)
    return Cost(
        s * (6 * H * I + 5 * I + 2 * H) + 3 * A * H * I,
        read_bytes=_read_bytes(T, s, A, H, I, scale_block_n, scale_block_k),
        written_bytes=T * H,
    )


def work(
    *,
    token_count: int,
    hidden_size: int,
    intermediate_size: int,
    num_experts: int,
    top_k: int,
    scale_block_n: int = 128,
    scale_block_k: int = 128,
    experts_used: int | None = None,
    **_: object,
) -> Work:
    """As `fused_moe`; products are scaled and added up tile by tile, and a slot's weight goes into those scales.

    That is with fp8 on both sides of both products. A kernel that scales the matrices instead needs products in bf16,
    which take longer than what that saves. `experts_used`: how many have tokens, where the draw is known.
    """
    T, H, I, s = token_count, hidden_size, intermediate_size, token_count * top_k  # noqa: E741
    A = active_experts(T, num_experts, top_k) if experts_used is None else experts_used
    scaling = 2 * I * (2 * (H // scale_block_k) - 1) + H * (2 * (I // scale_block_n) - 1)
    return Work(
        dtype="fp8",
        products=tuple(expert_products(s, A, H, I)),
        vector_flops=s * (4 * I + scaling),
        special_ops=s * I,
        read_bytes=_read_bytes(T, s, A, H, I, scale_block_n, scale_block_k),
        written_bytes=T * H,
        assumes=() if experts_used is not None else (evenly_used(A, num_experts),),
    )


def _read_bytes(T: int, s: int, A: int, H: int, I: int, block_n: int, block_k: int) -> int:  # noqa: E741
    n, h = I // block_n, H // block_k
    return T * (H + 4 * h) + 8 * s + 3 * A * (H * I + 4 * n * h)


OPERATOR = Operator(
    name="fp8_blockscale_fused_moe",
    summary="Top-k routed experts in fp8 with tile scales, gated by SiLU, summed with the router's weights.",
    dims={
        "T": "tokens",
        "H": "hidden size",
        "I": "intermediate size of an expert",
        "F": "rows of gate and up: 2 I",
        "E": "experts",
        "k": "experts per token",
        "h": "ceil(hidden_size, scale_block_k)",
        "n": "ceil(intermediate_size, scale_block_n)",
        "m": "ceil(2 * intermediate_size, scale_block_n)",
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
            "h": lambda hidden_size, scale_block_k: tiles(hidden_size, scale_block_k),
            "n": lambda intermediate_size, scale_block_n: tiles(intermediate_size, scale_block_n),
            "m": lambda intermediate_size, scale_block_n: tiles(2 * intermediate_size, scale_block_n),
        },
        varying=("T",),
        inputs={
            "hidden_states": "T H: fp8_dtype",
            "w1": "E F H: fp8_dtype",
            "w2": "E H I: fp8_dtype",
            "topk_weights": "T k: fp32",
            "topk_ids": "T k: int32",
            "a_scale": "T h: fp32",
            "fc1_scale": "E m h: fp32",
            "fc2_scale": "E h n: fp32",
        },
        outputs={"out": "T H: fp8_dtype"},
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
            HardCase("NaN", "NaN in one token", "NaN in all of its row and in no other", spoiled(nan, "hidden_states")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
        left_out={
            "large numbers": "beyond the type's range the published cast gives NaN, hardware its largest number",
            "tiny numbers": "the result has no scale, and the type few bits for them",
            "infinity": "the type has none",
            "ids of nobody": "engines mark slots without an expert each in their own way: -1, E, or a map of experts",
        },
    ),
    tiny=(
        {"token_count": 1, "hidden_size": 128, "intermediate_size": 128, "num_experts": 4, "top_k": 2},
        {"token_count": 9, "hidden_size": 256, "intermediate_size": 384, "num_experts": 5, "top_k": 3},
        {
            "token_count": 63,
            "hidden_size": 48,
            "intermediate_size": 96,
            "num_experts": 8,
            "top_k": 2,
            "scale_block_n": 32,
            "scale_block_k": 16,
            "fp8_dtype": "fp8_e4m3fn",
        },
    ),
)
