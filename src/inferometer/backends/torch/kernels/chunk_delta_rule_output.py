"""All chunks side by side as batched products in bf16; what is read from the state is the start of the last one's sum.

The decays exp(g_i - g_j) are made in float32. Rounded to bf16: q k, q k times its decay, q times its decay, q h, and
the sum. Inputs are copied into chunks once, and outputs back.

B sequences, T tokens of each, Hq query and key heads, Hv value heads, K key size, V value size, N chunks of C tokens.
The largest published shape (T 14,807, 32 heads of 128) takes 1.3 GB with its inputs.
"""

import torch
from torch import Tensor


def chunk_delta_rule_output(q: Tensor, k: Tensor, v: Tensor, h: Tensor, g: Tensor, *, chunk_size: int = 64) -> Tensor:
    """[B, T, Hv, V] in the dtype of `v`; h [B, N, Hv, K, V] are the states before the chunks."""
    B, T, Hq, K = q.shape
    Hv, V, C = v.shape[2], v.shape[3], chunk_size
    heads = (Hq, Hv // Hq)  # a query head serves Hv / Hq value heads, one after another
    q_BNHCK, k_BNHCK, v_BNHCV = (_in_chunks(x, C) for x in (q, k, v))
    g_BNHrC1 = _in_chunks(g[..., None], C).unflatten(2, heads)
    decay_BNHrCC = (g_BNHrC1 - g_BNHrC1.mT).exp_()
    A_BNHrCC = torch.empty(decay_BNHrCC.shape, dtype=v.dtype, device=v.device)
    torch.mul((q_BNHCK @ k_BNHCK.mT)[:, :, :, None], decay_BNHrCC, out=A_BNHrCC)
    A_BNHrCC.tril_()  # above the diagonal decays can be infinite: they are replaced, not multiplied
    q_BNHrCK = torch.empty(*g_BNHrC1.shape[:-1], K, dtype=q.dtype, device=q.device)
    torch.mul(q_BNHCK[:, :, :, None], g_BNHrC1.exp(), out=q_BNHrCK)
    out_XCV = torch.bmm(q_BNHrCK.view(-1, C, K), h.reshape(-1, K, V))  # X = B N Hv
    scale = K**-0.5
    out_XCV.baddbmm_(A_BNHrCC.view(-1, C, C), v_BNHCV.view(-1, C, V), beta=scale, alpha=scale)
    out_BNCHV = out_XCV.view(B, -1, Hv, C, V).transpose(2, 3)
    return out_BNCHV.reshape(B, -1, Hv, V)[:, :T].contiguous()


def _in_chunks(x_BTHX: Tensor, chunk_size: int) -> Tensor:
    """Copy to [B, N, H, C, X]; what the last chunk lacks is 0."""
    B, T, H, X = x_BTHX.shape
    whole, rest = divmod(T, chunk_size)
    out = x_BTHX.new_empty(B, whole + (rest > 0), H, chunk_size, X)
    out_BNCHX = out.transpose(2, 3)
    out_BNCHX[:, :whole] = x_BTHX[:, : T - rest].unflatten(1, (whole, chunk_size))
    if rest:
        out_BNCHX[:, -1, :rest] = x_BTHX[:, T - rest :]
        out_BNCHX[:, -1, rest:] = 0
    return out
