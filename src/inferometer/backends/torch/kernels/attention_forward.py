"""Attention of packed sequences without a mask in plain PyTorch: a fused attention a sequence.

One sequence, as in all published shapes, needs neither copies nor lengths. Several wait for the device once, to have
their lengths: the only mask that needs none costs all queries times all keys, and PyTorch's attention of packed
sequences runs on CUDA only. A sequence at a time pads nothing, so it is the quickest while they are few and long, as
images are; thousands of short ones would be better off padded.

T queries, S keys of all sequences, H heads, d head size. The largest published shape takes 1 GB.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def attention_forward(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor) -> Tensor:
    """[T, H, d] like `q`."""
    if cu_seqlens_q.shape[0] == 2:
        return _attend(q, k, v)
    queries, keys = torch.stack([cu_seqlens_q, cu_seqlens_k]).diff().tolist()
    parts = zip(q.split(queries), k.split(keys), v.split(keys), strict=True)
    return torch.cat([_attend(*part) for part in parts])


def _attend(q_tHd: Tensor, k_LHd: Tensor, v_LHd: Tensor) -> Tensor:
    """One sequence: [t, H, d]."""
    heads_first = (each.transpose(0, 1)[None] for each in (q_tHd, k_LHd, v_LHd))
    return scaled_dot_product_attention(*heads_first)[0].transpose(0, 1).contiguous()
