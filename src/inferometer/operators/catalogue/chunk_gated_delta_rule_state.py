"""First half of the gated delta rule in chunks: the state before each chunk, and what each token changes in it.

For every chunk, with h the state before it: v_new = u - w h, then h = exp(g_last) h + k^T (exp(g_last - g) v_new).
g is the log decay added up from the chunk's start, so it never increases within one, and whether exp of a positive
difference counts or is 0 (`safe_exp` of Atrex-Bench) is the same: a kernel may do either. u and w come from the rule;
for both see `delta_rule`. The states of the pool that the sequences have are updated in place. Source:
arXiv:2412.06464, section 3.

B sequences, T tokens of each, Hk key heads, Hv value heads, K key size, V value size, C tokens per chunk, N chunks (the
last may be shorter), S states in the pool.
"""

from math import ceil, nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, tiles
from inferometer.operators.catalogue.delta_rule import (
    draw_chunk_gates,
    draw_states,
    draw_unit_rows,
    draw_values,
    for_value_heads,
    in_chunks,
    tree_depth,
)
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.hard_cases import (
    UNSAID_INFINITY,
    HardCase,
    HardCases,
    at_most,
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
    k_BTHK: "Tensor",
    w_BTHK: "Tensor",
    u_BTHV: "Tensor",
    g_BTH: "Tensor",
    initial_state: "Tensor",
    initial_state_indices: "Tensor",
    *,
    chunk_size: int = 64,
) -> "tuple[Tensor, Tensor, Tensor]":
    """States h [B, N, Hv, K, V], v_new [B, T, Hv, V] and the pool after it.

    The state stays float32; h and the decayed v_new are rounded to the dtype of `k_BTHK` before they are multiplied.
    """
    import torch

    T, Hv = u_BTHV.shape[1:3]
    rows_B = initial_state_indices.long()
    state_BHKV = initial_state[rows_B]
    h_BNHKV = k_BTHK.new_empty(k_BTHK.shape[0], ceil(T / chunk_size), *state_BHKV.shape[1:])
    v_new_BTHV = torch.empty_like(u_BTHV)
    for n, start in enumerate(range(0, T, chunk_size)):
        part = slice(start, min(start + chunk_size, T))
        h_BNHKV[:, n] = state_BHKV.to(h_BNHKV.dtype)
        w_BCHK, k_BCHK = w_BTHK[:, part].float(), for_value_heads(k_BTHK[:, part], Hv)
        change_BCHV = u_BTHV[:, part].float() - torch.einsum("bchk,bhkv->bchv", w_BCHK, h_BNHKV[:, n].float())
        v_new_BTHV[:, part] = change_BCHV.to(v_new_BTHV.dtype)
        g_last_BH = g_BTH[:, part.stop - 1]
        kept_BCH1 = torch.exp(g_last_BH[:, None] - g_BTH[:, part])[..., None]
        kept_BCHV = (change_BCHV * kept_BCH1).to(k_BTHK.dtype).float()
        added_BHKV = torch.einsum("bchk,bchv->bhkv", k_BCHK, kept_BCHV)
        state_BHKV = state_BHKV * g_last_BH.exp()[..., None, None] + added_BHKV
    return h_BNHKV, v_new_BTHV, initial_state.index_copy(0, rows_B, state_BHKV)


def inputs(
    *,
    batch_size: int,
    token_count: int,
    num_k_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    state_count: int,
    chunk_size: int = 64,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Keys of length 1; w and u as the rule makes them of keys, values and gates: with random ones states explode."""
    draw = Draws(seed, device)
    B, T, Hv = batch_size, token_count, num_v_heads
    k_BTHK = draw_unit_rows(draw, B, T, num_k_heads, key_dim)
    v_BTHV = draw_values(draw, B, T, Hv, value_dim)
    g_BTH = draw_chunk_gates(draw, B, T, Hv, chunk_size)
    w_BTHK, u_BTHV = in_chunks(k_BTHK, v_BTHV, draw.normal(B, T, Hv, dtype="fp32").sigmoid(), g_BTH, chunk_size)
    pool_SHKV, rows_B = draw_states(draw, B, state_count, Hv, key_dim, value_dim)
    return {
        "k": k_BTHK,
        "w": w_BTHK,
        "u": u_BTHV,
        "g": g_BTH,
        "initial_state": pool_SHKV,
        "initial_state_indices": rows_B,
    }


def _bytes(B: int, T: int, Hk: int, Hv: int, K: int, V: int, C: int) -> tuple[int, int]:
    """Read and written, of the pool only the rows that sequences have."""
    states = B * Hv * K * V
    tokens = 2 * B * T * (Hk * K + Hv * K + Hv * V) + 4 * B * T * Hv
    return tokens + 4 * states + 4 * B, 2 * ceil(T / C) * states + 2 * B * T * Hv * V + 4 * states


def cost(
    *,
    batch_size: int,
    token_count: int,
    num_k_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    chunk_size: int = 64,
    **_: object,
) -> Cost:
    """Both products; v_new and its decay; each chunk decays the state and adds to it."""
    B, T, Hv, K, V = batch_size, token_count, num_v_heads, key_dim, value_dim
    flops = B * Hv * (T * (4 * K * V + 2 * V + 1) + 2 * ceil(T / chunk_size) * K * V)
    return Cost(flops, *_bytes(B, T, num_k_heads, Hv, K, V, chunk_size))


def work(
    *,
    batch_size: int,
    token_count: int,
    num_k_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    chunk_size: int = 64,
    **_: object,
) -> Work:
    """Both products, whose sums hold u and the decayed state; a token: V for its decay, a subtraction, an exp.

    A chunk: the state's decay. A chunk's map from state to state is linear, so stretches of chunks can be walked side
    by side and then joined: what must follow one another is a chunk's two products and a sum over all chunks.
    """
    B, T, Hv, K, V = batch_size, token_count, num_v_heads, key_dim, value_dim
    heads, chunks, depth = B * T * Hv, ceil(T / chunk_size), min(chunk_size, T)
    read, written = _bytes(B, T, num_k_heads, Hv, K, V, chunk_size)
    return Work(
        dtype="bf16",
        products=(Product(2 * heads * K * V, K=K), Product(2 * heads * K * V, K=depth)),
        vector_flops=heads * (V + 1) + B * chunks * Hv * K * V,
        special_ops=heads,
        read_bytes=read,
        written_bytes=written,
        chain=1 + tree_depth(K + 1) + 1 + tree_depth(depth) + tree_depth(chunks),
    )


OPERATOR = Operator(
    name="chunk_gated_delta_rule_state",
    summary="States before each chunk of the gated delta rule, and the changes of its tokens.",
    dims={
        "B": "sequences",
        "T": "tokens of a sequence",
        "Hk": "key heads",
        "Hv": "value heads",
        "K": "key size",
        "V": "value size",
        "C": "tokens of a chunk",
        "N": "chunks",
        "S": "states in the pool",
    },
    axes=Axes(
        op_type="gdn",
        sizes={
            "B": "batch_size",
            "T": "token_count",
            "Hk": "num_k_heads",
            "Hv": "num_v_heads",
            "K": "key_dim",
            "V": "value_dim",
            "S": "state_count",
            "N": lambda token_count, chunk_size: tiles(token_count, chunk_size),
        },
        varying=("B", "T", "S", "N"),
        inputs={
            "k": "B T Hk K",
            "w": "B T Hv K",
            "u": "B T Hv V",
            "g": "B T Hv: fp32",
            "initial_state": "S Hv K V: fp32",
            "initial_state_indices": "B: int32",
        },
        outputs={"h": "B N Hv K V", "v_new": "B T Hv V", "final_state": "S Hv K V: fp32"},
        values={"initial_state_indices": lambda B, S: index_tensors.rows(B, S)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("h", "v_new", "final_state"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "keys of zeros", "the decayed states", zeroed("k")),
            HardCase(
                "offset",
                "decay to nothing",
                "the exp of differences, which are never above 0: exp of a negative g alone overflows",
                scaled(64.0, "g"),
            ),
            HardCase(
                "large numbers",
                "large changes and states",
                "as much larger outputs",
                scaled(2.0**40, "u", "initial_state"),
            ),
            HardCase(
                "tiny numbers",
                "tiny changes and states",
                "as much smaller outputs",
                scaled(2.0**-40, "u", "initial_state"),
            ),
            HardCase(
                "NaN",
                "NaN in a change",
                "NaN there and in its column of its head from then on",
                spoiled(nan, "u", (0, 0, 0, 0)),
            ),
            no_tokens(batch_size=0),
        ),
        few=at_most(batch_size=2, token_count=80),
        left_out={"infinity": UNSAID_INFINITY},
    ),
    settings=("chunk_size",),
    updates={"initial_state": "final_state"},
    tolerance={"final_state": 1e-2},  # fp32, but sums of bf16 products whose operands another kernel rounds elsewhere
    tiny=(
        {
            "batch_size": 2, "token_count": 1, "num_k_heads": 1, "num_v_heads": 2, "key_dim": 16, "value_dim": 32,
            "state_count": 5, "chunk_size": 64,
        },
        {
            "batch_size": 1, "token_count": 129, "num_k_heads": 2, "num_v_heads": 2, "key_dim": 32, "value_dim": 16,
            "state_count": 3, "chunk_size": 64,
        },
        {
            "batch_size": 2, "token_count": 63, "num_k_heads": 1, "num_v_heads": 3, "key_dim": 24, "value_dim": 20,
            "state_count": 2, "chunk_size": 16,
        },
        {  # two value heads a key head, and more than one key head: which heads go together shows
            "batch_size": 1, "token_count": 19, "num_k_heads": 2, "num_v_heads": 4, "key_dim": 16, "value_dim": 8,
            "state_count": 3, "chunk_size": 16,
        },
    ),
)  # fmt: skip
