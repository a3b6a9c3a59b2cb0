"""Wrong and right kernels of `moe_align_block_size`."""

import torch
from tests.bench.mutants.shared import Kernel, cut, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.moe_align_block_size import reference

Three = tuple[Tensor, Tensor, Tensor]


def kernel(
    ids: Tensor, *, block_size: int, num_experts: int, stable: bool = True, fill: int | None = None,
    all_experts: bool = False, pad_whole: bool = False, descending: bool = False,
    worst_case: bool = False, by_choice: bool = False, tokens: bool = False, cap: int | None = None,
) -> Three:  # fmt: skip
    """From counts and offsets.

    `fill` in place of s; `all_experts`: those without slots have a block too;
    `pad_whole`: full groups get another block; `worst_case`: as long as production allocates; `by_choice`: slots are
    numbered choice by choice; `tokens`: numbers of tokens, not of slots; `cap`: most slots of an expert.
    """
    flat = (ids.T if by_choice else ids).flatten().long()
    s = len(flat)
    count = torch.bincount(flat, minlength=num_experts)
    count = count if cap is None else count.clamp(max=cap)
    need = -(-count // block_size)
    if all_experts:
        need = need.clamp(min=1)
    if pad_whole:
        need = torch.where((count > 0) & (count % block_size == 0), need + 1, need)
    P = int(need.sum()) * block_size
    out = torch.full((P,), s if fill is None else fill, dtype=torch.int32)
    start = 0
    for expert in range(num_experts):
        slots = (flat == expert).nonzero().flatten()[: int(count[expert])].to(torch.int32)
        slots = slots if stable else slots.flip(0)
        slots = slots // ids.shape[1] if tokens else slots
        out[start : start + len(slots)] = slots
        start += int(need[expert]) * block_size
    experts = torch.arange(num_experts, dtype=torch.int32).repeat_interleave(need)
    if worst_case:
        out = torch.cat([out, torch.full((num_experts * (block_size - 1) + s - P,), s, dtype=torch.int32)])
    return out, experts.flip(0) if descending else experts, torch.tensor([P], dtype=torch.int32)


def sorted_slots(ids: Tensor, *, block_size: int, num_experts: int) -> Three:
    """By one stable sort, places by running sums."""
    flat = ids.flatten().long()
    order = flat.argsort(stable=True)
    count = torch.bincount(flat, minlength=num_experts)
    need = -(-count // block_size)
    first, begin = count.cumsum(0) - count, (need.cumsum(0) - need) * block_size
    out = torch.full((int(need.sum()) * block_size,), len(flat), dtype=torch.int32)
    ranked = flat[order]
    out[begin[ranked] + torch.arange(len(flat)) - first[ranked]] = order.to(torch.int32)
    return (
        out,
        torch.arange(num_experts, dtype=torch.int32).repeat_interleave(need),
        torch.tensor([len(out)], dtype=torch.int32),
    )


WRONG: dict[str, Kernel] = {
    "swapped: slots of an expert backwards": lambda x, **s: kernel(x, stable=False, **s),
    "swapped: slots numbered choice by choice": lambda x, **s: kernel(x, by_choice=True, **s),
    "swapped: experts of the blocks backwards": lambda x, **s: kernel(x, descending=True, **s),
    "padding: with 0": lambda x, **s: kernel(x, fill=0, **s),
    "padding: with -1": lambda x, **s: kernel(x, fill=-1, **s),
    "padding: with the last slot": lambda x, **s: kernel(x, fill=x.numel() - 1, **s),
    "padding: another block after a full one": lambda x, **s: kernel(x, pad_whole=True, **s),
    "padding: a block for an expert without slots": lambda x, **s: kernel(x, all_experts=True, **s),
    "padding: as long as production allocates": lambda x, **s: kernel(x, worst_case=True, **s),
    "expert: ids off by one": lambda x, *, num_experts, **s: reference(
        (x + 1) % num_experts, num_experts=num_experts, **s
    ),
    "expert: of the next block": lambda x, **s: then(reference(x, **s), lambda o, e, n: (o, shifted(e), n)),
    "missing part: last expert": lambda x, *, num_experts, **s: reference(x, num_experts=num_experts - 1, **s),
    "missing part: last token": lambda x, **s: then(
        reference(x, **s), lambda o, e, n: (o.masked_fill(o == x.numel() - 1, x.numel()), e, n)
    ),
    "missing part: slots beyond eight an expert": lambda x, **s: kernel(x, cap=8, **s),
    "position: slots off by one": lambda x, **s: then(reference(x, **s), lambda o, e, n: (o + 1, e, n)),
    "position: tokens in place of slots": lambda x, **s: kernel(x, tokens=True, **s),
    "scale: length in blocks": lambda x, *, block_size, **s: then(
        reference(x, block_size=block_size, **s), lambda o, e, n: (o, e, n // block_size)
    ),
    "scale: length without padding": lambda x, **s: then(
        reference(x, **s), lambda o, e, n: (o, e, torch.full_like(n, x.numel()))
    ),
    "dropped term: blocks of half the size": lambda x, *, block_size, **s: reference(
        x, block_size=max(1, block_size // 2), **s
    ),
    "dropped term: last entry": lambda x, **s: then(reference(x, **s), lambda o, e, n: (cut(o), e, n)),
}

RIGHT: dict[str, Kernel] = {
    "from counts and offsets": kernel,
    "by a stable sort": sorted_slots,
}

INAPPLICABLE = dict.fromkeys(("overflow", "zeros", "NaN"), "integers") | {
    "identity": "the output is a sequence of slots, of another shape",
    "mask": "no mask",
    "rounding": "integers",
}
