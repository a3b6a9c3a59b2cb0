"""Causal attention of packed sequences over a paged cache, in Triton.

T queries, Hq query heads, Hk key heads, D head size, n sequences; the cache has P pages of S tokens.
"""

from torch import Tensor

from inferometer.backends.triton.kernels._sequences import attend_packed


def unified_attention(
    q_THqD: Tensor,
    k_cache_PSHkD: Tensor,
    v_cache_PSHkD: Tensor,
    cu_seqlens_q: Tensor,
    seqused_k: Tensor,
    block_table: Tensor,
) -> Tensor:
    """[T, Hq, D] like `q_THqD`."""
    keys, values = (each.transpose(1, 2) for each in (k_cache_PSHkD, v_cache_PSHkD))
    return attend_packed(q_THqD, keys.unsqueeze(3), values, cu_seqlens_q, seqused_k, block_table, causal=True)
