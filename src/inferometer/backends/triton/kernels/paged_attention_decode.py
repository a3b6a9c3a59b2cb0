"""Attention of one new token a sequence over a paged cache with tokens inside of a head's values, in Triton.

B sequences, Hq query heads, Hk key heads, D head size; the caches have P pages of S tokens, keys in R runs of X.
"""

import torch
from torch import Tensor

from inferometer.backends.triton.kernels._sequences import attend_packed


def paged_attention_decode(
    query_BHqD: Tensor, k_cache_PHkRSX: Tensor, v_cache_PHkDS: Tensor, block_tables: Tensor, seq_lens: Tensor
) -> Tensor:
    """[B, Hq, D] like `query_BHqD`; zeros for a sequence without keys."""
    starts_q = torch.arange(query_BHqD.shape[0] + 1, dtype=torch.int32, device=query_BHqD.device)
    keys, values = k_cache_PHkRSX.transpose(2, 3), v_cache_PHkDS.transpose(2, 3)
    return attend_packed(query_BHqD, keys, values, starts_q, seq_lens, block_tables, causal=True)
