"""Causal attention over a paged cache in plain PyTorch: pages gathered, one fused attention of all sequences, padded.

Every sequence is padded to the tokens that its row of the block table can hold, and each query put at its own token's
place. So the plain causal mask is right for all of them, what is padded is seen by nothing that is kept, and no length
is asked of the device. Sequences that fill their rows, as in most published shapes, need no padding: queries go in as
they are. Ragged ones pay for it: attention costs as much as if each were the longest, and was all prompt.

T queries, Hq query heads, Hk key-value heads, d head size, n sequences, L tokens of a row of the table; the cache has
NB blocks of bs tokens. The largest published shape takes 10 GB.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def unified_attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor, seqused_k: Tensor, block_table: Tensor
) -> Tensor:
    """[T, Hq, d] like `q`."""
    n = block_table.shape[0]
    pages = block_table.flatten()
    k_nLHkd, v_nLHkd = (
        cache.index_select(0, pages).unflatten(0, (n, -1)).flatten(1, 2) for cache in (k_cache, v_cache)
    )
    L = k_nLHkd.shape[1]
    if q.shape[0] == n * L:  # no sequence has more queries than keys, so each has L of both
        return _attend(q.unflatten(0, (n, L)), k_nLHkd, v_nLHkd).flatten(0, 1)
    place_T = _places(q.shape[0], L, cu_seqlens_q, seqused_k)
    padded = q.new_empty(n * L, *q.shape[1:]).index_copy_(0, place_T, q)  # rows of padding stay in their own answers
    return _attend(padded.unflatten(0, (n, L)), k_nLHkd, v_nLHkd).flatten(0, 1).index_select(0, place_T)


def _places(T: int, L: int, cu_seqlens_q: Tensor, seqused_k: Tensor) -> Tensor:
    """Where each query lies among n sequences of L: the last query is the last key."""
    n = seqused_k.shape[0]
    token_T = torch.arange(T, device=cu_seqlens_q.device)
    shift_n = seqused_k - cu_seqlens_q[1:]
    if n == 1:
        return token_T + shift_n
    shift_n = shift_n + torch.arange(0, n * L, L, device=shift_n.device)
    return token_T + shift_n[torch.searchsorted(cu_seqlens_q[1:], token_T, right=True)]


def _attend(q_nLHqd: Tensor, k_nLHkd: Tensor, v_nLHkd: Tensor) -> Tensor:
    """[n, L, Hq, d]."""
    heads_first = (each.transpose(1, 2) for each in (q_nLHqd, k_nLHkd, v_nLHkd))
    return scaled_dot_product_attention(*heads_first, is_causal=True, enable_gqa=True).transpose(1, 2).contiguous()
