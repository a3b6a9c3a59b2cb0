"""Attention of packed sequences without a mask, in Triton. T queries, S keys, H heads, D head size, n sequences."""

from torch import Tensor

from inferometer.backends.triton.kernels._sequences import attend_packed


def attention_forward(
    q_THD: Tensor, k_SHD: Tensor, v_SHD: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor
) -> Tensor:
    """[T, H, D] like `q_THD`; both lengths [n + 1]."""
    keys, values = (each.transpose(0, 1)[None] for each in (k_SHD, v_SHD))
    return attend_packed(q_THD, keys.unsqueeze(3), values, cu_seqlens_q, cu_seqlens_k, None, causal=False)
