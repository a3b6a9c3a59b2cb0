"""Slots grouped by expert, each group padded to whole blocks: what a grouped product of experts takes its rows from.

Slot t k + j is the j-th expert of token t. The contract, to the bit:

- `sorted_token_ids`: for each expert that has slots, in order of experts, its slots in their order, then as many
  entries s (the number of slots, which is no slot) as fill the last block.
- `expert_ids`: the expert of each block.
- `num_tokens_post_pad`: the length P of the first, a multiple of the block; P / block_size is that of the second.

Both lengths depend on the data. Production allocates s + E (block_size - 1) entries and leaves what is beyond P as it
is: cut there before comparing. Ids below 0 or from E up are nobody's, and their slots are left out.

T tokens, k experts per token, s = T k slots, E experts, B blocks, P = B block_size.
"""

from math import ceil
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import SKEW, Draws
from inferometer.operators.catalogue.fused_moe import evenly_used
from inferometer.operators.catalogue.hard_routing import same_experts
from inferometer.operators.hard_cases import INTEGERS_ONLY, HardCase, HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work, active_experts

if TYPE_CHECKING:
    from torch import Tensor


def reference(ids_Tk: "Tensor", *, block_size: int, num_experts: int) -> "tuple[Tensor, Tensor, Tensor]":
    """A block at a time: P and B are on the host meanwhile."""
    import torch

    ids_s = ids_Tk.flatten()
    blocks, experts = [], []
    for expert in range(num_experts):
        for slots in (ids_s == expert).nonzero().flatten().to(torch.int32).split(block_size):
            if len(slots):
                blocks.append(torch.nn.functional.pad(slots, (0, block_size - len(slots)), value=len(ids_s)))
                experts.append(expert)
    sorted_P = torch.cat(blocks) if blocks else ids_s.new_empty(0)
    return sorted_P, ids_s.new_tensor(experts), ids_s.new_tensor([len(sorted_P)])


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


def cost(*, token_count: int, top_k: int, **_: object) -> Cost:
    """No FLOPs are published of integers; what is written depends on the draw."""
    return Cost(0, read_bytes=4 * token_count * top_k, written_bytes=None)


def work(*, token_count: int, num_experts: int, top_k: int, block_size: int, **_: object) -> Work:
    """As many blocks as there are experts in use, or as hold all slots if that is more; integer work isn't counted."""
    s, A = token_count * top_k, active_experts(token_count, num_experts, top_k)
    B = max(A, ceil(s / block_size))
    assumes = (evenly_used(A, num_experts),)
    return Work(read_bytes=4 * s, written_bytes=4 * (B * block_size + B + 1), assumes=assumes)


OPERATOR = Operator(
    name="moe_align_block_size",
    summary="Routed slots grouped by expert, in order, each group padded to whole blocks; the expert of each block.",
    dims={"T": "tokens", "k": "experts per token", "E": "experts", "P": "entries after padding", "B": "blocks"},
    axes=Axes(
        op_type="moe_routing",
        sizes={"T": "token_count", "k": "top_k", "E": "num_experts", "one": 1, "P": None, "B": None},
        varying=("T", "P", "B"),
        inputs={"topk_ids": "T k: int32"},
        outputs={"sorted_token_ids": "P: int32", "expert_ids": "B: int32", "num_tokens_post_pad": "one: int32"},
        values={"topk_ids": lambda T, E, k: index_tensors.experts(T, E, k)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("sorted_token_ids", "expert_ids", "num_tokens_post_pad"),
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
    settings=("block_size", "num_experts"),
    tiny=(
        {"token_count": 1, "num_experts": 128, "top_k": 8, "block_size": 128},
        {"token_count": 63, "num_experts": 9, "top_k": 2, "block_size": 16},
        {"token_count": 129, "num_experts": 5, "top_k": 3, "block_size": 1},
        {"token_count": 12, "num_experts": 3, "top_k": 3, "block_size": 4},
    ),
)
