"""Second half of the gated delta rule in chunks: what each token reads from the state and from its own chunk.

out = scale (exp(g) q h + A v) with h the state before the chunk, scale K^-0.5, and A = exp(g_i - g_j) q_i k_j for
tokens j up to i of the chunk. g is the log decay added up from the chunk's start, so it never increases within one, and
whether exp of a positive difference counts or is 0 (`safe_exp` of Atrex-Bench) is the same: a kernel may do either, see
`delta_rule`. v are the changes that the first half finds, `v_new`. Source: arXiv:2412.06464, section 3.

B sequences, T tokens of each, Hq query and key heads, Hv value heads, K key size, V value size, C tokens per chunk, N
chunks (the last may be shorter).
"""

from math import ceil, nan
from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes, tiles
from inferometer.operators.catalogue.delta_rule import draw_chunk_gates, draw_unit_rows, draw_values, for_value_heads
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
    q_BTHK: "Tensor", k_BTHK: "Tensor", v_BTHV: "Tensor", h_BNHKV: "Tensor", g_BTH: "Tensor", *, chunk_size: int = 64
) -> "Tensor":
    """A chunk at a time; A is rounded to the dtype of `v_BTHV` before it is multiplied, all else is float32."""
    import torch

    T, Hv = v_BTHV.shape[1:3]
    scale = q_BTHK.shape[3] ** -0.5
    out_BTHV = torch.empty_like(v_BTHV)
    for n, start in enumerate(range(0, T, chunk_size)):
        part = slice(start, start + chunk_size)
        q_BHCK, k_BHCK = (for_value_heads(x[:, part], Hv).transpose(1, 2) for x in (q_BTHK, k_BTHK))
        g_BHC1 = g_BTH[:, part].transpose(1, 2)[..., None]
        past_BHCC = g_BHC1 - g_BHC1.mT
        later_BHCC = torch.ones_like(past_BHCC, dtype=torch.bool).triu(1)
        decay_BHCC = past_BHCC.masked_fill(later_BHCC, float("-inf")).exp()
        A_BHCC = ((q_BHCK @ k_BHCK.mT) * decay_BHCC).to(v_BTHV.dtype).float()
        from_state_BHCV = g_BHC1.exp() * (q_BHCK @ h_BNHKV[:, n].float())
        found_BHCV = from_state_BHCV + A_BHCC @ v_BTHV[:, part].float().transpose(1, 2)
        out_BTHV[:, part] = (scale * found_BHCV).transpose(1, 2).to(out_BTHV.dtype)
    return out_BTHV


def inputs(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    chunk_size: int = 64,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Queries and keys of length 1; each query is half its own key, so that the newest token counts, as in models."""
    draw = Draws(seed, device)
    B, T, Hv = batch_size, token_count, num_v_heads
    k_BTHK, other_BTHK = (draw_unit_rows(draw, B, T, num_q_heads, key_dim) for _ in range(2))
    return {
        "q": (k_BTHK + other_BTHK) * 0.5**0.5,
        "k": k_BTHK,
        "v": draw_values(draw, B, T, Hv, value_dim),
        "h": draw.normal(B, ceil(T / chunk_size), Hv, key_dim, value_dim, scale=4.0),
        "g": draw_chunk_gates(draw, B, T, Hv, chunk_size),
    }


def _bytes(B: int, T: int, Hq: int, Hv: int, K: int, V: int, N: int) -> tuple[int, int]:
    """Read and written: every input and the output once."""
    out = 2 * B * T * Hv * V
    return 4 * B * T * Hq * K + out + 2 * B * N * Hv * K * V + 4 * B * T * Hv, out


def cost(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    chunk_size: int = 64,
    **_: object,
) -> Cost:
    """Whole chunks, the last one padded, and both halves of A, for each value head."""
    B, Hv, K, V, C = batch_size, num_v_heads, key_dim, value_dim, chunk_size
    N = ceil(token_count / C)
    flops = B * Hv * N * (2 * C * K * V + 2 * C * C * (K + V) + 3 * C * V + 2 * C * C)
    return Cost(flops, *_bytes(B, token_count, num_q_heads, Hv, K, V, N))


def work(
    *,
    batch_size: int,
    token_count: int,
    num_q_heads: int,
    num_v_heads: int,
    key_dim: int,
    value_dim: int,
    chunk_size: int = 64,
    **_: object,
) -> Work:
    """Products q h and A v for each value head, q k for each query head: what share it differ in decays only.

    A pair of tokens: its decay is multiplied in; the exp of a difference can be a product of two, one for each token.
    A token: an exp, and V for decay and scale of what it read from the state, to which the product of A and v is added.
    """
    B, T, Hq, Hv, K, V, C = batch_size, token_count, num_q_heads, num_v_heads, key_dim, value_dim, chunk_size
    whole, rest = divmod(T, C)
    pairs, heads = B * (whole * C * (C + 1) + rest * (rest + 1)) // 2, B * T * Hv
    read, written = _bytes(B, T, Hq, Hv, K, V, ceil(T / C))
    return Work(
        dtype="bf16",
        products=(
            Product(2 * heads * K * V, K=K),
            Product(2 * pairs * Hq * K, K=K),
            Product(2 * pairs * Hv * V),
        ),
        vector_flops=pairs * Hv + heads * V,
        special_ops=heads,
        read_bytes=read,
        written_bytes=written,
    )


OPERATOR = Operator(
    name="chunk_delta_rule_output",
    summary="Outputs of the gated delta rule in chunks, from the states before them and the changes of their tokens.",
    dims={
        "B": "sequences",
        "T": "tokens of a sequence",
        "Hq": "query and key heads",
        "Hv": "value heads",
        "K": "key size",
        "V": "value size",
        "C": "tokens of a chunk",
        "N": "chunks",
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
            "N": lambda token_count, chunk_size: tiles(token_count, chunk_size),
        },
        varying=("B", "T", "N"),
        inputs={"q": "B T Hq K", "k": "B T Hq K", "v": "B T Hv V", "h": "B N Hv K V", "g": "B T Hv: fp32"},
        outputs={"out": "B T Hv V"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "keys of zeros", "what the states give", zeroed("k")),
            HardCase("zeros", "queries of zeros", "zeros", zeroed("q")),
            HardCase(
                "offset",
                "decay to nothing",
                "the exp of differences, which are never above 0: exp of a negative g alone overflows",
                scaled(64.0, "g"),
            ),
            HardCase("large numbers", "large values and states", "as much larger outputs", scaled(2.0**40, "v", "h")),
            HardCase("tiny numbers", "tiny values and states", "as much smaller outputs", scaled(2.0**-40, "v", "h")),
            HardCase(
                "NaN",
                "NaN in a value",
                "NaN in its column of its head, to the end of the chunk",
                spoiled(nan, "v", (0, 0, 0, 0)),
            ),
            no_tokens(batch_size=0),
        ),
        few=at_most(batch_size=2, token_count=80),
        left_out={
            "infinity": UNSAID_INFINITY,
            "NaN in a later value": "a chunk's earlier tokens may get it: kernels multiply it by weights of 0",
        },
    ),
    settings=("chunk_size",),
    tiny=(
        {
            "batch_size": 2, "token_count": 1, "num_q_heads": 1, "num_v_heads": 2, "key_dim": 16, "value_dim": 32,
            "chunk_size": 64,
        },
        {
            "batch_size": 1, "token_count": 129, "num_q_heads": 2, "num_v_heads": 2, "key_dim": 32, "value_dim": 16,
            "chunk_size": 64,
        },
        {
            "batch_size": 2, "token_count": 63, "num_q_heads": 1, "num_v_heads": 3, "key_dim": 24, "value_dim": 20,
            "chunk_size": 16,
        },
        {  # two value heads a key head, and more than one key head: which heads go together shows
            "batch_size": 1, "token_count": 19, "num_q_heads": 2, "num_v_heads": 4, "key_dim": 16, "value_dim": 8,
            "chunk_size": 16,
        },
    ),
)  # fmt: skip
