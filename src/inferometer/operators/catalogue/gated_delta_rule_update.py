"""The gated delta rule token by token, gates and all, on states of a pool: see `delta_rule` for the rule itself.

beta is a sigmoid of b, the log decay -exp(A_log) softplus(a + dt_bias), and the scale of q K^-0.5; q and k may be
normalised to length 1 first. The states of the pool that the sequences have are updated in place. Source:
arXiv:2412.06464, section 3.1.

B sequences, T tokens of each, Hq query and key heads, Hv value heads, K key size, V value size, S states in the pool.
"""

from math import nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.delta_rule import (
    draw_gates,
    draw_states,
    draw_unit_rows,
    draw_values,
    for_value_heads,
    log_decay,
    tree_depth,
)
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.hard_cases import (
    UNSAID_INFINITY,
    HardCase,
    HardCases,
    at_most,
    both,
    filled,
    no_tokens,
    scaled,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(
    A_log_H: "Tensor",
    a_BTH: "Tensor",
    dt_bias_H: "Tensor",
    q_BTHK: "Tensor",
    k_BTHK: "Tensor",
    v_BTHV: "Tensor",
    b_BTH: "Tensor",
    initial_state: "Tensor",
    initial_state_indices: "Tensor",
    *,
    softplus_beta: float = 1.0,
    softplus_threshold: float = 20.0,
    use_qk_l2norm: bool = True,
) -> "tuple[Tensor, Tensor]":
    """Outputs [B, T, Hv, V] and the pool after it; float32 inside, a token at a time."""
    import torch
    from torch.nn.functional import normalize

    T, Hv = v_BTHV.shape[1:3]
    scale = q_BTHK.shape[3] ** -0.5
    decay_BTH = log_decay(A_log_H, a_BTH, dt_bias_H, beta=softplus_beta, threshold=softplus_threshold).exp()
    beta_BTH = b_BTH.float().sigmoid()
    rows_B = initial_state_indices.long()
    h_BHKV = initial_state[rows_B]
    out_BTHV = torch.empty_like(v_BTHV)
    for t in range(T):
        q_BHK, k_BHK = (for_value_heads(x[:, t : t + 1], Hv)[:, 0] for x in (q_BTHK, k_BTHK))
        if use_qk_l2norm:
            q_BHK, k_BHK = (normalize(x, dim=-1, eps=1e-6) for x in (q_BHK, k_BHK))
        h_BHKV = h_BHKV * decay_BTH[:, t, :, None, None]
        known_BHV = (k_BHK[..., None] * h_BHKV).sum(2)
        change_BHV = beta_BTH[:, t, :, None] * (v_BTHV[:, t].float() - known_BHV)
        h_BHKV = h_BHKV + k_BHK[..., None] * change_BHV[..., None, :]
        out_BTHV[:, t] = (scale * q_BHK[..., None] * h_BHKV).sum(2).to(out_BTHV.dtype)
    return out_BTHV, initial_state.index_copy(0, rows_B, h_BHKV)


def inputs(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    state_count: int,
    use_qk_l2norm: bool = True,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Heads of short and long memory, states as after many tokens; q and k of length 1 if the call won't see to it."""
    draw = Draws(seed, device)
    A_log_H, a_BTH, dt_bias_H = draw_gates(draw, batch_size, token_count, num_v_heads)
    keys = (batch_size, token_count, num_q_heads, key_dim)
    q_BTHK, k_BTHK = (draw.normal(*keys) if use_qk_l2norm else draw_unit_rows(draw, *keys) for _ in range(2))
    pool_SHKV, rows_B = draw_states(draw, batch_size, state_count, num_v_heads, key_dim, value_dim)
    return {
        "A_log": A_log_H,
        "a": a_BTH,
        "dt_bias": dt_bias_H,
        "q": q_BTHK,
        "k": k_BTHK,
        "v": draw_values(draw, batch_size, token_count, num_v_heads, value_dim),
        "b": draw.normal(batch_size, token_count, num_v_heads),
        "initial_state": pool_SHKV,
        "initial_state_indices": rows_B,
    }


def cost(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    state_count: int,
    **_: object,
) -> Cost:
    """The whole pool is read and copied. Norms of q and k aren't counted; V = K in all published shapes."""
    rows, K, V = batch_size * token_count, key_dim, value_dim
    pool = 4 * state_count * num_v_heads * K * V
    out = 2 * rows * num_v_heads * V
    gates = 6 * num_v_heads + 4 * rows * num_v_heads
    return Cost(
        rows * num_v_heads * (7 * K * V + K + 2 * V + 2),
        read_bytes=gates + 4 * rows * num_q_heads * K + out + pool + 4 * batch_size,
        written_bytes=out + pool,
    )


def work(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    use_qk_l2norm: bool = True,
    **_: object,
) -> Work:
    """A token and value head: products of the state with k, of it with q, and of k with what changes; V for beta.

    Many tokens can be taken in chunks, on matrix units and without a step for each (see the two operators of that
    form), so neither vector units nor T steps are a bound; the decay of the state is due once per sequence. A gate
    takes exp and log, the decay and beta an exp each. What must follow one another: the product with k, which v is
    added to, that with what it changes, a sum over the tokens.
    """
    rows, K, V = batch_size * token_count, key_dim, value_dim
    heads, states = rows * num_v_heads, batch_size * num_v_heads * K * V
    norms = 2 * rows * num_q_heads if use_qk_l2norm else 0
    out = 2 * heads * V
    return Work(
        dtype="bf16",
        products=(Product(6 * heads * K * V),),
        vector_flops=heads * (V + 5) + states + norms * 2 * K,
        special_ops=4 * heads + num_v_heads + norms,
        read_bytes=6 * num_v_heads + 4 * heads + 4 * rows * num_q_heads * K + out + 4 * states + 4 * batch_size,
        written_bytes=out + 4 * states,
        chain=1 + tree_depth(K + 1) + 1 + tree_depth(token_count),
    )


OPERATOR = Operator(
    name="gated_delta_rule_update",
    summary="Gated delta rule token by token, from raw gates, updating states of a pool.",
    dims={
        "B": "sequences",
        "T": "tokens of a sequence",
        "Hq": "query and key heads",
        "Hv": "value heads",
        "K": "key size",
        "V": "value size",
        "S": "states in the pool",
    },
    axes=Axes(
        op_type="gdn",
        sizes={
            "B": "batch_size",
            "T": "token_count",
            "Hq": "num_q_heads",
            "Hv": "num_v_heads",
            "K": "key_dim",
            "V": "value_dim",
            "S": "state_count",
        },
        varying=("B", "T", "S"),
        inputs={
            "A_log": "Hv: fp32",
            "a": "B T Hv",
            "dt_bias": "Hv",
            "q": "B T Hq K",
            "k": "B T Hq K",
            "v": "B T Hv V",
            "b": "B T Hv",
            "initial_state": "S Hv K V: fp32",
            "initial_state_indices": "B: int32",
        },
        outputs={"out": "B T Hv V", "final_state": "S Hv K V: fp32"},
        values={"initial_state_indices": lambda B, S: index_tensors.rows(B, S)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out", "final_state"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "keys of zeros", "the decayed states: their length is eps at least", zeroed("k")),
            HardCase("zeros", "queries of zeros", "zeros: their length is eps at least", zeroed("q")),
            HardCase(
                "large numbers",
                "steps of 100",
                "the softplus of 100 is 100: exp of it overflows",
                both(filled(100.0, "a"), filled(-6.0, "A_log")),
            ),
            HardCase("large numbers", "gates wide open and shut", "betas of 1 and 0", scaled(64.0, "b")),
            HardCase(
                "large numbers",
                "large values and states",
                "as much larger outputs",
                scaled(2.0**40, "v", "initial_state"),
            ),
            HardCase(
                "tiny numbers",
                "tiny values and states",
                "as much smaller outputs",
                scaled(2.0**-40, "v", "initial_state"),
            ),
            HardCase(
                "NaN",
                "NaN in a value",
                "NaN in its column of its head, from its token on",
                spoiled(nan, "v", (0, 0, 0, 0)),
            ),
            no_tokens(batch_size=0),
        ),
        few=at_most(batch_size=2, token_count=8),
        left_out={"infinity": UNSAID_INFINITY},
    ),
    settings=("softplus_beta", "softplus_threshold", "use_qk_l2norm"),
    updates={"initial_state": "final_state"},
    tolerance={"final_state": 1e-4},  # errors of a decay multiply over all tokens that a state remembers
    tiny=(
        {
            "batch_size": 3, "token_count": 1, "num_q_heads": 1, "num_v_heads": 2, "key_dim": 16, "value_dim": 32,
            "state_count": 5, "softplus_beta": 1.0, "softplus_threshold": 20.0, "use_qk_l2norm": True,
        },
        {
            "batch_size": 1, "token_count": 63, "num_q_heads": 2, "num_v_heads": 2, "key_dim": 32, "value_dim": 16,
            "state_count": 1, "softplus_beta": 1.0, "softplus_threshold": 20.0, "use_qk_l2norm": True,
        },
        {
            "batch_size": 2, "token_count": 17, "num_q_heads": 1, "num_v_heads": 3, "key_dim": 20, "value_dim": 9,
            "state_count": 3, "softplus_beta": 2.0, "softplus_threshold": 1.0, "use_qk_l2norm": False,
        },
        {  # two value heads a key head, and more than one key head: which heads go together shows
            "batch_size": 1, "token_count": 5, "num_q_heads": 2, "num_v_heads": 4, "key_dim": 16, "value_dim": 8,
            "state_count": 3, "softplus_beta": 1.0, "softplus_threshold": 20.0, "use_qk_l2norm": True,
        },
    ),
)  # fmt: skip
