"""New keys and values into their slots of paged caches in plain PyTorch: an indexed write, in place as production does.

Tokens with a negative slot must be skipped, and picking the others would wait for the device. So they go to the last
slot of the cache, which gets its right row after them. A cache that isn't dense is updated in place too; what comes
back is then a dense copy.

T tokens, h key-value heads, d head size; the caches have NB blocks of bs tokens. The largest published shape takes
34 MB.
"""

import torch
from torch import Tensor


def reshape_and_cache(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> tuple[Tensor, Tensor]:
    """Both caches, [NB, bs, h, d]."""
    blocks, block_size = key_cache.shape[:2]
    slot_T = slot_mapping.clamp(min=-1)
    place = (slot_T // block_size, slot_T % block_size)  # of -1: the last token of block -1, which is the last
    last = blocks * block_size - 1
    is_last = (slot_mapping == last).byte()  # inductor's C++ for the largest of booleans doesn't compile
    found, token = is_last.max(0, keepdim=True)  # whether a token has the last slot, and which
    return _write(key, key_cache, place, found > 0, token), _write(value, value_cache, place, found > 0, token)


def _write(rows_Thd: Tensor, cache: Tensor, place: tuple[Tensor, Tensor], is_new: Tensor, token: Tensor) -> Tensor:
    last_1hd = torch.where(is_new[:, None, None], rows_Thd.index_select(0, token), cache[-1, -1:])
    cache[place] = rows_Thd
    cache[-1, -1:] = last_1hd
    return cache.contiguous()
