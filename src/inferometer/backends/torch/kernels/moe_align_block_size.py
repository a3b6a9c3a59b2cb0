"""A stable sort of the slots' experts; then every slot's place follows from how many blocks come before its expert's.

All of it runs on buffers of the greatest possible length. The contract asks for their exact length, which depends on
the data: so the last step tells the host the number of blocks and cuts there, the only synchronisation. A capture
into a CUDA graph is not possible. Slots that are nobody's land beyond the cut.

T tokens, k experts a token, s = T k slots, E experts, B blocks, P = B block_size.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def moe_align_block_size(topk_ids: Tensor, *, block_size: int, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slots by expert, each expert's padded with s to whole blocks [P]; the expert of each block [B]; P [1]."""
    slots, device = topk_ids.numel(), topk_ids.device
    room = slots + min(slots, num_experts) * (block_size - 1)
    expert_s = topk_ids.flatten().clamp(-1, num_experts).remainder_(num_experts + 1)  # E: nobody's
    # As bytes or 16-bit numbers: a radix sort takes a pass for each byte.
    narrow = torch.uint8 if num_experts < 256 else torch.int16 if num_experts < 1 << 15 else torch.int32
    ranked_s, order_s = expert_s.to(narrow).sort(stable=True)
    begin = torch.searchsorted(ranked_s, torch.arange(num_experts + 1, dtype=narrow, device=device))
    blocks = pad(((begin.diff() + block_size - 1) // block_size).cumsum(0), (1, 0))  # before each expert; of all
    place_s = (blocks * block_size - begin)[ranked_s.long()] + torch.arange(slots, device=device)
    entries = torch.full((room,), slots, dtype=torch.int32, device=device)
    entries.scatter_(0, place_s, order_s.to(torch.int32))
    each_block = torch.arange(room // block_size, device=device)
    experts = torch.searchsorted(blocks[1:], each_block, right=True, out_int32=True)
    length = (blocks[-1:] * block_size).to(torch.int32)
    used = int(blocks[-1])
    return entries[: used * block_size], experts[:used], length
