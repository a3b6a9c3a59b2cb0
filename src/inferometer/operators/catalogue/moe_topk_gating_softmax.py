"""A router's choice: softmax over the logits of all experts, then the k largest, by falling weight.

With groups (`num_expert_groups` and `topk_group` both above 0; arXiv:2405.04434, section 2.1.2), an expert outside the
`topk_group` groups with the greatest maxima counts as 0; groups are runs of E / num_expert_groups experts.

Weights are those of the softmax over all experts: they don't add up to 1. The published contract leaves ties open: of
equal weights any order is right, and of equal groups any choice. Where fewer than k experts are above 0, any of the
others fill up, with weight 0. The reference takes the lower id first.

T tokens, E experts, k experts per token, G groups.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import SKEW, Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, filled, no_tokens, shrunk
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Change, Tensors

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


def _limited(weights_TE: "Tensor", groups: int, keep: int, preferred_TE: "Tensor | None" = None) -> "Tensor":
    """0 outside the groups with the greatest maxima; of equal ones, those first that have preferred experts."""
    weights_TGe = weights_TE.unflatten(1, (groups, -1))
    order_TG = weights_TE.new_zeros(weights_TGe.shape[:2]) if preferred_TE is None else _most(preferred_TE, groups)
    first_TG = order_TG.sort(dim=-1, descending=True, stable=True).indices
    ranked_TG = weights_TGe.amax(-1).gather(1, first_TG).sort(dim=-1, descending=True, stable=True).indices
    best_Tg = first_TG.gather(1, ranked_TG)[:, :keep]
    kept_TG = weights_TE.new_zeros(weights_TGe.shape[:2]).scatter(1, best_Tg, 1).bool()
    return weights_TGe.masked_fill(~kept_TG[:, :, None], 0).flatten(1)


def _most(values_TE: "Tensor", groups: int) -> "Tensor":
    return values_TE.unflatten(1, (groups, -1)).amax(-1)


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


def _moved(by: float) -> "Change":
    return lambda tensors, _: {"gating_output": tensors["gating_output"] + by}


def _masked(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    logits_TE = tensors["gating_output"].clone()
    logits_TE[:, 1::3] = float("-inf")
    return {"gating_output": logits_TE}


def _ties_in_any_order(
    found: "Tensors", wanted: "Tensors", tensors: "Tensors", args: Mapping[str, Any]
) -> "dict[str, Tensor]":
    """The ids that were found, in rows where they are as good: of equal weights, each once, of groups as good.

    Of groups that tie for the last places, those count in which an id with a weight was found.
    """
    import torch

    weights_TE = torch.softmax(tensors["gating_output"].float(), -1)
    ids_Tk = found["topk_ids"].long()
    top_k, groups, keep = ids_Tk.shape[1], args.get("num_expert_groups", 0), args.get("topk_group", 0)
    known = ((ids_Tk >= 0) & (ids_Tk < weights_TE.shape[1])).all(-1)
    ids_Tk = ids_Tk.clamp(0, weights_TE.shape[1] - 1)
    if groups > 0 and keep > 0:
        chosen_TE = torch.zeros_like(weights_TE).scatter(1, ids_Tk, (found["topk_weights"] > 0).float())
        weights_TE = _limited(weights_TE, groups, keep, chosen_TE)
    right_Tk = weights_TE.sort(dim=-1, descending=True).values[:, :top_k]
    once = ids_Tk.sort(-1).values.diff(dim=-1).ne(0).all(-1)
    as_good = (known & once & (weights_TE.gather(1, ids_Tk) == right_Tk).all(-1))[:, None]
    return {
        "topk_weights": right_Tk.where(as_good, wanted["topk_weights"]),
        "topk_ids": found["topk_ids"].where(as_good, wanted["topk_ids"]),
    }


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
    left_open=_ties_in_any_order,
    hard=HardCases(
        (
            HardCase(
                "ties", "equal logits", "any of the experts, each once, with weight 1 / E", filled(0.0, "gating_output")
            ),
            HardCase(
                "offset", "logits about 1024", "the softmax of their differences: exp of them overflows", _moved(1024.0)
            ),
            HardCase(
                "offset", "logits about -1024", "the softmax of their differences: exp of them is 0", _moved(-1024.0)
            ),
            HardCase("masked", "experts masked with -infinity", "weight 0 for those, the others as ever", _masked),
            HardCase("tiny numbers", "tiny logits", "weights of about 1 / E", shrunk("gating_output")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
        left_out={
            "zeros": "equal logits",
            "large numbers": "logits about 1024, which are harder",
            "NaN": "how NaN is ranked depends on the sort, and a maximum may pass over it",
            "infinity": "the softmax is NaN then, whose ranks depend on the sort",
        },
    ),
    settings=("top_k", "num_expert_groups", "topk_group"),
    tiny=(
        {"token_count": 1, "num_experts": 128, "top_k": 8},
        {"token_count": 63, "num_experts": 129, "top_k": 1},
        {"token_count": 33, "num_experts": 60, "top_k": 4, "num_expert_groups": 6, "topk_group": 2},
        {"token_count": 5, "num_experts": 12, "top_k": 7, "num_expert_groups": 4, "topk_group": 2},
    ),
)
