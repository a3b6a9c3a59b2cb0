"""Attention of one new token a sequence over a paged cache in plain PyTorch: pages gathered, one masked attention.

The cache has tokens inside of a head's values; a gather through a permuted view writes rows of tokens at once. Query
heads that share a head of keys are the queries of that head, so no key is repeated. Every sequence is padded to the
longest that the block table can hold. The largest published shape takes 0.3 GB.

B sequences, Hq query heads, Hk key-value heads, G = Hq / Hk, d head size, L tokens of a row of the table; the caches
have NB blocks of bs tokens, k_cache in runs of x elements.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def paged_attention_decode(
    query: Tensor, k_cache: Tensor, v_cache: Tensor, block_tables: Tensor, seq_lens: Tensor
) -> Tensor:
    """[B, Hq, d] like `query`."""
    B, Hk = query.shape[0], k_cache.shape[1]
    pages = block_tables.flatten()
    k_BLHkd = k_cache.permute(0, 3, 1, 2, 4).index_select(0, pages).flatten(3).unflatten(0, (B, -1)).flatten(1, 2)
    v_BLHkd = v_cache.permute(0, 3, 1, 2).index_select(0, pages).unflatten(0, (B, -1)).flatten(1, 2)
    seen_BL = torch.arange(k_BLHkd.shape[1], device=query.device) < seq_lens[:, None]
    out_BHkGd = scaled_dot_product_attention(
        query.unflatten(1, (Hk, -1)),
        k_BLHkd.transpose(1, 2),
        v_BLHkd.transpose(1, 2),
        attn_mask=seen_BL[:, None, None],
    )
    empty_B11 = (seq_lens == 0)[:, None, None]  # not every fused attention gives zeros where nothing is seen
    return out_BHkGd.flatten(1, 2).masked_fill(empty_B11, 0)
