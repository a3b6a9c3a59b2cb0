"""A stable sort of the slots' experts, whose bounds a binary search finds: no host, no atomics.

Experts are sorted as bytes or 16-bit numbers, since a radix sort takes a pass for each byte.

Slots of ids that are nobody's (below 0 or from E up) come last, after all experts' slots. The contract leaves them
out; that many rows would have to be sent to the host, which costs more than the kernel, for what no router gives. Cut
at `cumsum[-1]` where such ids can occur.

T tokens, k experts a token, s = T k slots, E experts.
"""

import torch
from torch import Tensor


def moe_count_and_sort(topk_ids: Tensor, *, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slots by expert, each expert's in their order [s]; slots of each [E]; sums of those before and of all [E + 1]."""
    narrow = torch.uint8 if num_experts < 256 else torch.int16 if num_experts < 1 << 15 else torch.int32
    expert_s = topk_ids.flatten().clamp(-1, num_experts).remainder_(num_experts + 1).to(narrow)  # E: nobody's
    ranked_s, slots_s = expert_s.sort(stable=True)
    cumsum = torch.searchsorted(
        ranked_s, torch.arange(num_experts + 1, dtype=narrow, device=topk_ids.device), out_int32=True
    )
    return slots_s.to(torch.int32), cumsum.diff(), cumsum
