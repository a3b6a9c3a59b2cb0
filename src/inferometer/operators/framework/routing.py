"""Which experts a token takes: choice by the router, tokens sorted by expert, and the sum of what experts return.

Positions: the bindings of vLLM, SGLang and AITER, as recorded in real traces or as registered.
"""

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes, row_count
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_CHOSEN_BYTES = 4 + 4  # a weight in float32, and the number of an expert


def _topk_softmax(call: OpCall) -> Work:
    """Weights [T, k], ids, places, router's logits [T, E]."""
    weights, ids, places, logits = (call.tensor(at) for at in range(4))
    return moved(logits.bytes, weights.bytes + ids.bytes + places.bytes, vector=4 * logits.numel, special=logits.numel)


def _chosen_into(weights_at: int, ids_at: int, logits_at: int, bias_at: int | None = None) -> Model:
    """Weights and ids [T, k], the router's logits [T, E], and what is added to them where one chooses."""

    def work(call: OpCall) -> Work:
        weights, ids, logits = (call.tensor(at) for at in (weights_at, ids_at, logits_at))
        bias = read_bytes([call.maybe_tensor(bias_at)]) if bias_at is not None else 0
        if weights.dims != ids.dims or row_count(logits) != row_count(weights):
            raise Unmodelled(f"expected weights and ids of each row, found {list(weights.dims)} and {list(ids.dims)}")
        read = logits.bytes + bias
        return moved(read, weights.bytes + ids.bytes, vector=4 * logits.numel, special=logits.numel)

    return work


def _gate(call: OpCall) -> Work:
    """Logits [T, E], what is added to them, groups, groups that are chosen, k: weights and ids are made."""
    logits, bias = call.tensor(0), call.tensor(1)
    chosen = row_count(logits) * call.integer(4)
    return moved(logits.bytes + bias.bytes, chosen * _CHOSEN_BYTES, vector=4 * logits.numel, special=logits.numel)


def _sorted_into(call: OpCall) -> Work:
    """Ids, weights [T, k], sorted ids, sorted weights: each of the chosen is written, and its weight."""
    ids, weights = call.tensor(0), call.tensor(1)
    if ids.dims != weights.dims:
        raise Unmodelled(f"expected ids and weights of one size, found {list(ids.dims)} and {list(weights.dims)}")
    return moved(ids.bytes + weights.bytes, ids.numel * _CHOSEN_BYTES)


def _top_k(call: OpCall) -> Work:
    """Router's logits [T, E], k: values, and indices of 2 bytes."""
    logits = call.tensor(0)
    rows = row_count(logits)
    k = call.integer(1)
    return moved(logits.bytes, rows * k * (logits.item_bytes + 2), vector=logits.numel)


def _sort_tokens(call: OpCall) -> Work:
    """Weights and ids [T, k] of the chosen experts, sorted by expert: both are read, and written in another order."""
    weights, ids = call.tensor(0), call.tensor(1)
    return moved(weights.bytes + ids.bytes, weights.bytes + ids.bytes)


def _align(call: OpCall) -> Work:
    """Ids, experts, block, sorted ids, experts of blocks, padded count."""
    ids = call.tensor(0)
    return moved(ids.bytes, ids.numel * 4)


def _expert_sum(call: OpCall) -> Work:
    """Results [T, k, H] of the experts, output [T, H]."""
    x: Tensor = call.tensor(0)
    out = call.tensor(1)
    return moved(x.bytes, out.bytes, vector=x.numel)


FAMILY = OpFamily(
    name="choice of experts",
    models={
        "_moe_C::topk_softmax": _topk_softmax,
        "aiter::topk_softmax": _topk_softmax,
        **dict.fromkeys(("sgl_kernel::topk_softmax", "sgl_kernel::topk_sigmoid"), _chosen_into(0, 1, 2)),
        "sgl_kernel::moe_fused_gate": _gate,
        "aiter::biased_grouped_topk": _chosen_into(2, 3, 0, bias_at=1),
        "aiter::grouped_topk": _chosen_into(1, 2, 0),
        **dict.fromkeys(("_moe_C::moe_sum", "sgl_kernel::moe_sum", "sgl_kernel::moe_sum_reduce"), _expert_sum),
        **dict.fromkeys(("_moe_C::moe_align_block_size", "sgl_kernel::moe_align_block_size"), _align),
        "aiter::moe_sorting_fwd": _sorted_into,
        "TopK": _top_k,
        "SortTokens": _sort_tokens,
    },
)
