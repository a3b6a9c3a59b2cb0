"""Latent attention of one new token a sequence in plain PyTorch: two products with the whole cache, a softmax between.

Rows of the cache lie one after another, so all heads of all sequences are the rows of one product with all keys; what
belongs to another sequence gets a weight of zero. That asks no length of the device, copies nothing and reads the
cache in place, but works B times as much as needed: right for the published batches of at most 7, whose products take
as long as a launch. Large batches would rather wait for their lengths, and pad. Fused attention is slow for heads of
576 columns.

Scores are float32: rounded to bf16, they make 0.6 to 1.2 % of error with 256 keys of 576 columns, where 1 % is
allowed. On CUDA that needs PyTorch 2.8. The largest published shape takes 8 MB.

B sequences, n heads, R latent rank, p columns with positions, D = R + p, S keys of all sequences.
"""

import torch
from torch import Tensor

_ROUNDS_LATE = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)


def mla_decode_attention(q: Tensor, kv_cache: Tensor, seq_lens: Tensor, *, kv_lora_rank: int) -> Tensor:
    """[B, n, R], the dtype of `q`."""
    B, n, D = q.shape
    row_SD, scale = kv_cache[:, 0], D**-0.5
    score_BnS = _product(q.flatten(0, 1), row_SD.T).mul_(scale).unflatten(0, (B, n))
    if B > 1:
        score_BnS.masked_fill_(_of_others(seq_lens, row_SD.shape[0])[:, None], float("-inf"))
    weight_BnS = torch.softmax(score_BnS, -1).to(q.dtype)
    return (weight_BnS.flatten(0, 1) @ row_SD[:, :kv_lora_rank]).unflatten(0, (B, n))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Float32. Only CUDA multiplies bf16 without rounding the result to it, since torch 2.8."""
    return torch.mm(a, b, out_dtype=torch.float32) if a.is_cuda and _ROUNDS_LATE else a.float() @ b.float()


def _of_others(seq_lens_B: Tensor, S: int) -> Tensor:
    """[B, S]: whether a key belongs to another sequence."""
    key_S = torch.arange(S, device=seq_lens_B.device)
    owner_S = torch.searchsorted(seq_lens_B.cumsum(0), key_S, right=True)
    return owner_S != torch.arange(seq_lens_B.shape[0], device=seq_lens_B.device)[:, None]
