"""RMS norm of the query and key heads of packed rows in plain PyTorch: two fused norms, put together with the values.

T tokens, Hq query heads, Hk key heads and as many value heads, d head size, S = (Hq + 2 Hk) d columns. A fused norm
rounds once, after the weight; the contract rounds before it too.
"""

import torch
from torch import Tensor
from torch.nn import functional


def fused_qk_rmsnorm(
    hidden_states: Tensor, q_weight: Tensor, k_weight: Tensor, *, head_num: int, kv_head_num: int, eps: float = 1e-6
) -> Tensor:
    """A new [T, S]."""
    heads = hidden_states.unflatten(1, (head_num + 2 * kv_head_num, -1))
    q, k, v = heads.split([head_num, kv_head_num, kv_head_num], 1)
    normed_q = functional.rms_norm(q, q_weight.shape, q_weight, eps)
    normed_k = functional.rms_norm(k, k_weight.shape, k_weight, eps)
    return torch.cat([normed_q, normed_k, v], 1).flatten(1)
