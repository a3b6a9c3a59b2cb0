"""The rule of a chunk as a map of its state, h -> M h + b: all maps at once, then a walk of one product a chunk.

With k' = exp(g_last - g) k, M = exp(g_last) - k'^T w and b = k'^T u are batched products over all chunks. Only the
walk through them is a loop, in float32: the states that it leaves give every v_new at once. Neighbouring maps are
joined to one (M2 M1, M2 b1 + b2) while that is cheaper than the launches that it saves.

Rounded to bf16: k', k'^T w, k'^T u, h, v_new. `initial_state` is updated in place, as production does; what is
returned is that tensor, unless it isn't dense.

B sequences, T tokens of each, Hk key heads, Hv value heads, K key size, V value size, N chunks of C tokens, S states
in the pool. The largest published shape (T 11,027, 32 heads of 128) takes 3.9 GB with its inputs, 2.3 of them the pool.
"""

import torch
from torch import Tensor

from inferometer.backends.torch.kernels._delta_rule import in_chunks, walk


def chunk_gated_delta_rule_state(
    k: Tensor,
    w: Tensor,
    u: Tensor,
    g: Tensor,
    initial_state: Tensor,
    initial_state_indices: Tensor,
    *,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor, Tensor]:
    """States h [B, N, Hv, K, V] before the chunks, v_new [B, T, Hv, V], and the pool after it."""
    B, T, Hv, V = u.shape
    K, C = k.shape[3], chunk_size
    k_NBHCK, w_NBHCK, u_NBHCV = (in_chunks(x, C) for x in (k, w, u))
    g_NBHC1 = in_chunks(g[..., None], C)
    if T % C:
        g_NBHC1[-1, :, :, T % C :] = g_NBHC1[-1, :, :, T % C - 1 : T % C]  # what isn't there decays nothing
    minus_w_XCK, u_XCV = w_NBHCK.view(-1, C, K).neg_(), u_NBHCV.view(-1, C, V)  # X = N B Hv
    last_NBH11 = g_NBHC1[..., -1:, :]
    kept_XCK = _decayed(k_NBHCK, (last_NBH11 - g_NBHC1).exp_())
    map_XKK = torch.bmm(kept_XCK.mT, minus_w_XCK).float()
    map_XKK.diagonal(dim1=1, dim2=2).add_(last_NBH11.exp().view(-1, 1))
    rows_B = initial_state_indices.long()
    N, Y = len(g_NBHC1), B * Hv
    states = initial_state.new_empty(N + 1, Y, K, V)
    states[0] = initial_state[rows_B].view(Y, K, V)
    states[1:] = torch.bmm(kept_XCK.mT, u_XCV).view(N, Y, K, V)
    walk(map_XKK.view(N, Y, K, K), states)
    initial_state.index_copy_(0, rows_B, states[N].view(B, Hv, K, V))
    h_XKV = states[:N].to(k.dtype).view(-1, K, V)
    v_new_XCV = u_XCV.baddbmm_(minus_w_XCK, h_XKV)
    h_BNHKV = h_XKV.view(N, B, Hv, K, V).transpose(0, 1).contiguous()
    v_new_BNCHV = v_new_XCV.view(N, B, Hv, C, V).permute(1, 0, 3, 2, 4)
    return h_BNHKV, v_new_BNCHV.reshape(B, -1, Hv, V)[:, :T].contiguous(), initial_state.contiguous()


def _decayed(k_NBHCK: Tensor, decay_NBHC1: Tensor) -> Tensor:
    """[N B Hv, C, K]: keys for each value head, times decays of its own; rounded once."""
    N, B, Hk, C, K = k_NBHCK.shape
    Hv = decay_NBHC1.shape[2]
    out = torch.empty(N, B, Hk, Hv // Hk, C, K, dtype=k_NBHCK.dtype, device=k_NBHCK.device)
    torch.mul(k_NBHCK[:, :, :, None], decay_NBHC1.unflatten(2, (Hk, Hv // Hk)), out=out)
    return out.view(-1, C, K)
