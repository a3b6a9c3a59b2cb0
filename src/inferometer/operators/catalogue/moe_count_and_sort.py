"""Slots sorted by expert, how many each expert has, and where its own begin: a stable counting sort.

Slot t k + j is the j-th expert of token t. Stability is part of the contract: an expert's slots stay in their order
(kernels that take places with atomics don't keep it). Ids below 0 or from E up are nobody's: not sorted, not counted.
The published `block_size` changes nothing.

T tokens, k experts per token, s = T k slots, E experts.
"""

from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import SKEW, Draws
from inferometer.operators.catalogue.hard_routing import same_experts
from inferometer.operators.hard_cases import INTEGERS_ONLY, HardCase, HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(ids_Tk: "Tensor", *, num_experts: int) -> "tuple[Tensor, Tensor, Tensor]":
    """The slots, their number by expert, and the sum of those before each expert and of all."""
    import torch

    ids_s = ids_Tk.flatten()
    slots_s = ((ids_s >= 0) & (ids_s < num_experts)).nonzero().flatten()
    sorted_s = slots_s[ids_s[slots_s].argsort(stable=True)]
    count_E = torch.stack([(ids_s == expert).sum() for expert in range(num_experts)])
    cumsum = torch.nn.functional.pad(count_E.cumsum(0), (1, 0))
    return sorted_s.to(torch.int32), count_E.to(torch.int32), cumsum.to(torch.int32)


def inputs(
    *,
    token_count: int,
    num_experts: int,
    top_k: int,
    routing_skew: float = SKEW,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Experts of a token differ and are unequally popular."""
    draw = Draws(seed, device)
    return {"topk_ids": draw.routing(token_count, num_experts, top_k, skew=routing_skew)[1]}


def cost(*, token_count: int, num_experts: int, top_k: int, **_: object) -> Cost:
    """No FLOPs are published of integers."""
    s = token_count * top_k
    return Cost(0, read_bytes=4 * s, written_bytes=4 * (s + 2 * num_experts + 1))


def work(*, token_count: int, num_experts: int, top_k: int, **_: object) -> Work:
    """Bytes only: integer work isn't counted."""
    s = token_count * top_k
    return Work(read_bytes=4 * s, written_bytes=4 * (s + 2 * num_experts + 1))


OPERATOR = Operator(
    name="moe_count_and_sort",
    summary="Stable counting sort of routed slots by expert, with the counts and where each expert's slots begin.",
    dims={"T": "tokens", "k": "experts per token", "s": "slots: T k", "E": "experts", "E1": "num_experts + 1"},
    axes=Axes(
        op_type="moe_routing",
        sizes={
            "T": "token_count",
            "k": "top_k",
            "E": "num_experts",
            "s": lambda token_count, top_k: token_count * top_k,
            "E1": lambda num_experts: num_experts + 1,
        },
        varying=("T", "s"),
        inputs={"topk_ids": "T k: int32"},
        outputs={"sorted_token_ids": "s: int32", "expert_token_counts": "E: int32", "cumsum": "E1: int32"},
        values={"topk_ids": lambda T, E, k: index_tensors.experts(T, E, k)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("sorted_token_ids", "expert_token_counts", "cumsum"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase(
                "one expert",
                "all tokens on the first experts",
                "all slots there, none elsewhere",
                same_experts(last=False),
            ),
            HardCase(
                "one expert",
                "all tokens on the last experts",
                "all slots there, none elsewhere",
                same_experts(last=True),
            ),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=64),
        left_out={
            **dict.fromkeys(("zeros", "large numbers", "tiny numbers", "NaN", "infinity"), INTEGERS_ONLY),
            "ids of nobody": "engines mark slots without an expert each in their own way: -1, E, or a map of experts",
        },
    ),
    settings=("num_experts",),
    tiny=(
        {"token_count": 1, "num_experts": 128, "top_k": 8, "block_size": 128},
        {"token_count": 63, "num_experts": 9, "top_k": 2, "block_size": 128},
        {"token_count": 129, "num_experts": 5, "top_k": 5, "block_size": 128},
    ),
)
