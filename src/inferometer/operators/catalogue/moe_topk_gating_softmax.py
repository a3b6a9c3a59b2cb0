"""A router's choice: softmax over the logits of all experts, then the k largest, by falling weight.

With groups (`num_expert_groups` and `topk_group` both above 0; arXiv:2405.04434, section 2.1.2), an expert outside the
`topk_group` groups with the greatest maxima counts as 0; groups are runs of E / num_expert_groups experts.

Weights are those of the softmax over all experts: they don't add up to 1. The published contract leaves ties open; the
rule here: of equal weights the lower id comes first, of equal groups too. So where fewer than k experts are above 0,
the lowest ids of the others fill up, with weight 0.

T tokens, E experts, k experts per token, G groups.
"""

from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import SKEW, Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

_STEP = 2.0**-12
"""Logits are multiples of that, as if rounded: neighbours are equal or so far apart that no softmax swaps them."""


def reference(
    logits_TE: "Tensor", *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
) -> "tuple[Tensor, Tensor]":
    """float32; ranks come from a stable sort of the weights."""
    import torch

    def rows(logits: "Tensor") -> "tuple[Tensor, Tensor]":
        weights = torch.softmax(logits.float(), -1)
        if num_expert_groups > 0 and topk_group > 0:
            weights = _limited(weights, num_expert_groups, topk_group)
        ranked, ids = weights.sort(dim=-1, descending=True, stable=True)
        return ranked[:, :top_k], ids[:, :top_k]

    shape = (logits_TE.shape[0], top_k)
    weights_Tk = torch.empty(shape, dtype=torch.float32, device=logits_TE.device)
    ids_Tk = torch.empty(shape, dtype=torch.int32, device=logits_TE.device)
    by_rows(rows, logits_TE, out=(weights_Tk, ids_Tk))
    return weights_Tk, ids_Tk


def _limited(weights_TE: "Tensor", groups: int, keep: int) -> "Tensor":
    """0 outside the groups with the greatest maxima."""
    weights_TGe = weights_TE.unflatten(1, (groups, -1))
    best_Tg = weights_TGe.amax(-1).sort(dim=-1, descending=True, stable=True).indices[:, :keep]
    kept_TG = weights_TE.new_zeros(weights_TGe.shape[:2]).scatter(1, best_Tg, 1).bool()
    return weights_TGe.masked_fill(~kept_TG[:, :, None], 0).flatten(1)


def inputs(
    *, token_count: int, num_experts: int, routing_skew: float = SKEW, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Experts are unequally popular; a few logits of a row are equal, so that ties happen."""
    logits_TE = Draws(seed, device).logits(token_count, num_experts, skew=routing_skew)
    return {"gating_output": (logits_TE / _STEP).round() * _STEP}


def cost(*, token_count: int, num_experts: int, top_k: int, **_: object) -> Cost:
    """The softmax; choosing isn't counted."""
    T, E = token_count, num_experts
    return Cost(T * (4 * E - 1), read_bytes=4 * T * E, written_bytes=8 * T * top_k)


def work(*, token_count: int, num_experts: int, top_k: int, **_: object) -> Work:
    """A logit: a maximum, scale and subtraction at once, a sum, and an exp; a chosen one: a divide.

    Comparisons beyond those for the maximum depend on how one chooses and aren't counted.
    """
    T, E, k = token_count, num_experts, top_k
    flops = T * (4 * E - 2 + k)
    return Work(vector_flops=flops, special_ops=T * E, read_bytes=4 * T * E, written_bytes=8 * T * k)


OPERATOR = Operator(
    name="moe_topk_gating_softmax",
    summary="Softmax over the experts' logits, then the k largest weights and their ids; by groups where asked.",
    dims={"T": "tokens", "E": "experts", "k": "experts per token", "G": "groups of experts"},
    axes=Axes(
        op_type="moe_routing",
        sizes={"T": "token_count", "E": "num_experts", "k": "top_k"},
        varying=("T",),
        inputs={"gating_output": "T E: fp32"},
        outputs={"topk_weights": "T k: fp32", "topk_ids": "T k: int32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("topk_weights", "topk_ids"),
    cost=cost,
    work=work,
    settings=("top_k", "num_expert_groups", "topk_group"),
    tiny=(
        {"token_count": 1, "num_experts": 128, "top_k": 8},
        {"token_count": 63, "num_experts": 129, "top_k": 1},
        {"token_count": 33, "num_experts": 60, "top_k": 4, "num_expert_groups": 6, "topk_group": 2},
        {"token_count": 5, "num_experts": 12, "top_k": 7, "num_expert_groups": 4, "topk_group": 2},
    ),
)
