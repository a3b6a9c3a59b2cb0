"""What the operators of the gated delta rule share: gates, keys and states as models have them, and its form in chunks.

The rule (arXiv:2412.06464, section 3), for each value head, whose state h is K x V:
h = exp(g) h + k^T beta (v - exp(g) k h), then out = scale q h, with a log decay g <= 0 for each token.

The two halves in chunks take g added up from the chunk's start, which never increases, so that no exp of theirs has an
exponent above 0 among what is used. Atrex-Bench's references (commit eb8697d) put 0 in place of exp(x) for x > 0
(`safe_exp`), which touches only what is masked then. Ours don't, and a kernel may do either: the answers are the same.
Where g rises within a chunk, which no log decay does, the two differ; such inputs are outside the contract.

B sequences, T tokens of each, Hk key heads, Hv value heads (each key head serves Hv / Hk of them, one after another),
K key size, V value size, N chunks of C tokens, S states in the pool.
"""

from typing import TYPE_CHECKING

from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import pieces

if TYPE_CHECKING:
    from torch import Tensor

_UNUSED = 0.25  # scale of pool rows that no sequence has: they don't hide an error in the few that one has


def for_value_heads(x_BTHK: "Tensor", value_heads: int) -> "Tensor":
    """float32 [B, T, Hv, K]: each head once for every value head that it serves."""
    return x_BTHK.float().repeat_interleave(value_heads // x_BTHK.shape[2], 2)


def log_decay(
    A_log_H: "Tensor", a_BTH: "Tensor", dt_bias_H: "Tensor", *, beta: float = 1.0, threshold: float = 20.0
) -> "Tensor":
    """float32 g_BTH: -exp(A_log) softplus(a + dt_bias)."""
    from torch.nn.functional import softplus

    step_BTH = softplus(a_BTH.float() + dt_bias_H.float(), beta=beta, threshold=threshold)
    return -A_log_H.float().exp() * step_BTH


def draw_gates(draw: Draws, B: int, T: int, Hv: int) -> "tuple[Tensor, Tensor, Tensor]":
    """A_log fp32 [Hv], a bf16 [B, T, Hv] and dt_bias bf16 [Hv]: heads that remember from a token to thousands of them.

    Steps of 0.001 to 0.1, as Mamba-2 starts from (arXiv:2405.21060); its A goes from 1 to 16, here from 1/16, so that
    many heads remember more than a chunk and the states before chunks matter.
    """
    import torch

    A_log_H = draw.uniform(Hv, low=-2.77, high=2.77)
    step_H = torch.exp(draw.uniform(Hv, low=-6.9, high=-2.3))
    a_BTH = draw.normal(B, T, Hv)
    return A_log_H, a_BTH, torch.log(torch.expm1(step_H)).to(a_BTH.dtype)


def draw_chunk_gates(draw: Draws, B: int, T: int, Hv: int, chunk_size: int) -> "Tensor":
    """fp32 [B, T, Hv]: log decays added up from the start of each chunk, so they never increase within one."""
    import torch

    A_log_H, a_BTH, dt_bias_H = draw_gates(draw, B, T, Hv)
    g_BTH = log_decay(A_log_H, a_BTH, dt_bias_H)
    return torch.cat([part.cumsum(1) for part in g_BTH.split(chunk_size, 1)], 1)


def draw_unit_rows(draw: Draws, *shape: int) -> "Tensor":
    """bf16; every row of the last dimension has norm 1, as L2-normalised queries and keys have."""
    x = draw.normal(*shape)
    for part in pieces(shape[1], x[:, :1].numel()):
        x[:, part] /= x[:, part].float().norm(dim=-1, keepdim=True).to(x.dtype)
    return x


def draw_values(draw: Draws, *shape: int) -> "Tensor":
    """bf16; the last dimension is V. Large ones: states come to about 4, and outputs, which K^-0.5 shrinks, near 1.

    A norm follows in models, so the scale means nothing there.
    """
    return draw.normal(*shape, scale=16.0)


def draw_states(draw: Draws, B: int, S: int, Hv: int, K: int, V: int) -> "tuple[Tensor, Tensor]":
    """A pool fp32 [S, Hv, K, V], and the row of each sequence in it: int32 [B], all different, so B <= S.

    Row 0 is spared where there are rows to spare, so that what ignores the rows shows.
    """
    spared = 1 if B < S else 0
    rows_B = draw.permutation(S - spared)[:B] + spared
    pool_SHKV = draw.normal(S, Hv, K, V, dtype="fp32", scale=4.0 * _UNUSED)
    pool_SHKV[rows_B.long()] /= _UNUSED
    return pool_SHKV, rows_B


def in_chunks(
    k_BTHK: "Tensor", v_BTHV: "Tensor", beta_BTH: "Tensor", g_BTH: "Tensor", chunk_size: int
) -> "tuple[Tensor, Tensor]":
    """Make w bf16 [B, T, Hv, K] and u bf16 [B, T, Hv, V], so that all beta (v - ...) of a chunk are u - w h.

    h is the state before the chunk, `g_BTH` added up from its start. The rule is a triangular system of the chunk's
    tokens; u and w are its solutions for beta v and for beta exp(g) k.
    """
    import torch

    B, T, Hv, V = v_BTHV.shape
    K = k_BTHK.shape[3]
    w_BTHK, u_BTHV = k_BTHK.new_empty(B, T, Hv, K), torch.empty_like(v_BTHV)
    for start in range(0, T, chunk_size):
        part = slice(start, start + chunk_size)
        k_BHCK = for_value_heads(k_BTHK[:, part], Hv).transpose(1, 2)
        beta_BHC1 = beta_BTH[:, part].float().transpose(1, 2)[..., None]
        g_BHC1 = g_BTH[:, part].transpose(1, 2)[..., None]
        decay_BHCC = torch.exp((g_BHC1 - g_BHC1.mT).clamp(max=0))  # above the diagonal it isn't used
        system_BHCC = (beta_BHC1 * decay_BHCC * (k_BHCK @ k_BHCK.mT)).tril(-1)
        sides_BHCX = torch.cat([g_BHC1.exp() * k_BHCK, v_BTHV[:, part].float().transpose(1, 2)], -1)
        solved_BHCX = torch.linalg.solve_triangular(
            system_BHCC, beta_BHC1 * sides_BHCX, upper=False, unitriangular=True
        )
        w_BTHK[:, part], u_BTHV[:, part] = (
            side.transpose(1, 2).to(v_BTHV.dtype) for side in solved_BHCX.split([K, V], -1)
        )
    return w_BTHK, u_BTHV


def tree_depth(count: int) -> int:
    """Additions that follow one another where `count` numbers are added in a tree."""
    return (count - 1).bit_length()
