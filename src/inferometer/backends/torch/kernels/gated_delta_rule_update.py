"""Many tokens in chunks of 64, whose triangular systems are solved side by side; a single one as the rule has it.

In a chunk (arXiv:2412.06464, section 3) all that its tokens change is linear in the state before it. So a chunk is a
map of its state, h -> M h + b: all maps are made at once by batched products, and only the walk through them is a
loop, one product a chunk. Neighbouring maps are joined to one (M2 M1, M2 b1 + b2) while that is cheaper than the
launches that it saves.

All that the state is made of is float32, as its tolerance asks for; outputs come from products in bf16. TF32, which
PyTorch leaves off unless asked, is too coarse. `initial_state` is updated in place, as production does; what is
returned is that tensor, unless it isn't dense.

B sequences, T tokens of each, Hq query and key heads, Hv value heads (r for each of those), K key size, V value size,
N chunks of C tokens, S states in the pool. The largest published shape (T 8,192, 32 heads of 128) takes 2.7 GB with its
inputs.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from inferometer.backends.torch.kernels._delta_rule import in_chunks, walk

_CHUNK = 64  # tokens: products within a chunk grow with it, the walk gets shorter


def gated_delta_rule_update(
    A_log: Tensor,
    a: Tensor,
    dt_bias: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    b: Tensor,
    initial_state: Tensor,
    initial_state_indices: Tensor,
    *,
    softplus_beta: float = 1.0,
    softplus_threshold: float = 20.0,
    use_qk_l2norm: bool = True,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, Hv, V] in the dtype of `v`, and the pool after it."""
    step_BTH = softplus(a.float() + dt_bias.float(), beta=softplus_beta, threshold=softplus_threshold)
    log_decay_BTH = step_BTH.mul_(A_log.float().exp().neg_())
    beta_BTH = b.float().sigmoid_()
    q, k = q.float(), k.float()
    if use_qk_l2norm:
        q, k = (normalize(x, dim=-1, eps=1e-6) for x in (q, k))
    rows_B = initial_state_indices.long()
    state_BHKV = initial_state[rows_B]
    advance = _one_token if v.shape[1] == 1 else _many_tokens
    out_BTHV, state_BHKV = advance(q * q.shape[3] ** -0.5, k, v, log_decay_BTH, beta_BTH, state_BHKV)
    initial_state.index_copy_(0, rows_B, state_BHKV)
    return out_BTHV, initial_state.contiguous()


def _one_token(
    q_B1HK: Tensor, k_B1HK: Tensor, v_B1HV: Tensor, log_decay_B1H: Tensor, beta_B1H: Tensor, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """As a step of decoding has it; updates and gives back `state_BHKV`. Y = B Hv."""
    B, _, Hv, V = v_B1HV.shape
    Hq, K = k_B1HK.shape[2:]
    k_Y1K, q_Y1K = (x.reshape(-1, 1, K).expand(-1, Hv // Hq, K).reshape(-1, 1, K) for x in (k_B1HK, q_B1HK))
    state_YKV = state_BHKV.mul_(log_decay_B1H.exp_().reshape(B, Hv, 1, 1)).view(-1, K, V)
    change_Y1V = torch.baddbmm(v_B1HV.float().reshape(-1, 1, V), k_Y1K, state_YKV, alpha=-1)
    change_Y1V.mul_(beta_B1H.reshape(-1, 1, 1))
    state_YKV.baddbmm_(k_Y1K.mT, change_Y1V)
    return torch.bmm(q_Y1K, state_YKV).to(v_B1HV.dtype).view(B, 1, Hv, V), state_BHKV


def _many_tokens(
    q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_decay_BTH: Tensor, beta_BTH: Tensor, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Chunks side by side, but for the walk. What the last lacks changes nothing and decays nothing. X = N B Hv."""
    B, T, Hv, V = v_BTHV.shape
    Hq, K, C, dtype = k_BTHK.shape[2], k_BTHK.shape[3], min(T, _CHUNK), v_BTHV.dtype
    heads = (Hq, Hv // Hq)
    q_NBH1CK, k_NBH1CK = (in_chunks(x, C)[:, :, :, None] for x in (q_BTHK, k_BTHK))
    v_NBHrCV = in_chunks(v_BTHV, C).unflatten(2, heads)
    g_NBHrC1, beta_NBHrC1 = (in_chunks(x[..., None], C).unflatten(2, heads) for x in (log_decay_BTH, beta_BTH))
    g_NBHrC1 = g_NBHrC1.cumsum(-2)
    past_NBHrC1, last_NBHr11 = g_NBHrC1.exp(), g_NBHrC1[..., -1:, :]
    decay_NBHrCC = (g_NBHrC1 - g_NBHrC1.mT).exp_().tril_()  # replaced, not multiplied: above it can be infinite

    system_NBHrCC = (k_NBH1CK @ k_NBH1CK.mT) * decay_NBHrCC * beta_NBHrC1  # its diagonal counts as 1
    sides_NBHrCX = torch.cat([-past_NBHrC1 * k_NBH1CK, v_NBHrCV.float()], -1).mul_(beta_NBHrC1)
    solved_NBHrCX = torch.linalg.solve_triangular(system_NBHrCC, sides_NBHrCX, upper=False, unitriangular=True)
    solved_XCX = solved_NBHrCX.reshape(-1, C, K + V)  # -w and u
    kept_XCK = ((last_NBHr11 - g_NBHrC1).exp_() * k_NBH1CK).view(-1, C, K)
    map_XKK, added_XKV = torch.bmm(kept_XCK.mT, solved_XCX).split([K, V], -1)
    map_XKK.diagonal(dim1=1, dim2=2).add_(last_NBHr11.exp().view(-1, 1))
    N, Y = len(g_NBHrC1), B * Hv
    states = torch.cat([state_BHKV.view(1, Y, K, V), added_XKV.view(N, Y, K, V)])
    walk(map_XKK.view(N, Y, K, K), states)

    h_XKV = states[:N].to(dtype).view(-1, K, V)
    rows = torch.contiguous_format  # solved column by column, as the solver leaves it, a product may be slow
    minus_w_XCK, u_XCV = (side.to(dtype, memory_format=rows) for side in solved_XCX.split([K, V], -1))
    v_new_XCV = u_XCV.baddbmm_(minus_w_XCK, h_XKV)
    A_XCC = ((q_NBH1CK @ k_NBH1CK.mT) * decay_NBHrCC).to(dtype).view(-1, C, C)
    out_XCV = torch.bmm((past_NBHrC1 * q_NBH1CK).to(dtype).view(-1, C, K), h_XKV).baddbmm_(A_XCC, v_new_XCV)
    out_BNCHV = out_XCV.view(N, B, Hv, C, V).permute(1, 0, 3, 2, 4)
    return out_BNCHV.reshape(B, -1, Hv, V)[:, :T].contiguous(), states[N].view_as(state_BHKV)
