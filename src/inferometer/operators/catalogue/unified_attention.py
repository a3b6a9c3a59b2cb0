"""Causal attention of sequences of any length over a paged cache of keys and values, with grouped query heads.

Newer queries than keys don't exist: the queries of a sequence are its last tokens, so query i of n sees the first
keys - n + i + 1 keys. In all published shapes there are as many queries as keys.

T tokens (queries of all sequences), Hq query heads, Hk key-value heads, d head size, n sequences; the cache has NB
blocks of bs tokens; block_table [n, most blocks].
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, blocks, tiles
from inferometer.operators.catalogue.draws import Draws, offsets
from inferometer.operators.catalogue.hard_attention import BEYOND, LEFT_OPEN, attention_cases
from inferometer.operators.catalogue.pieces import pieces
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    q_THqd: "Tensor",
    k_cache: "Tensor",
    v_cache: "Tensor",
    cu_seqlens_q: "Tensor",
    seqused_k: "Tensor",
    block_table: "Tensor",
) -> "Tensor":
    """Scaled by d^-0.5, softmax in float32; the mask is aligned to the last key."""
    import torch

    out_THqd = torch.empty_like(q_THqd)
    starts = cu_seqlens_q.tolist()
    for sequence, keys in enumerate(seqused_k.tolist()):
        blocks = block_table[sequence, : ceil(keys / k_cache.shape[1])].long()
        k_LHkd, v_LHkd = (cache[blocks].flatten(0, 1)[:keys].float() for cache in (k_cache, v_cache))
        rows = slice(starts[sequence], starts[sequence + 1])
        out_THqd[rows] = _attend(q_THqd[rows], k_LHkd, v_LHkd).to(out_THqd.dtype)
    return out_THqd


def _attend(q_tHqd: "Tensor", k_LHkd: "Tensor", v_LHkd: "Tensor") -> "Tensor":
    """One sequence: float32 [t, Hq, d], in pieces of queries."""
    import torch

    t, Hq, d = q_tHqd.shape
    L, Hk, _ = k_LHkd.shape
    group = Hq // Hk
    out_tHqd = torch.empty(t, Hq, d, device=q_tHqd.device)
    key_L = torch.arange(L, device=q_tHqd.device)
    for part in pieces(t, Hq * L):
        q_iHkGd = q_tHqd[part].float().unflatten(1, (Hk, group))
        score_HkGiL = torch.einsum("ihgd,lhd->hgil", q_iHkGd, k_LHkd) * d**-0.5
        last_i1 = torch.arange(part.start, part.stop, device=key_L.device)[:, None] + (L - t)
        score_HkGiL.masked_fill_(key_L > last_i1, float("-inf"))
        found = torch.einsum("hgil,lhd->ihgd", torch.softmax(score_HkGiL, -1), v_LHkd)
        out_tHqd[part] = found.flatten(1, 2)
    return out_tHqd


def inputs(
    *,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    block_size: int,
    seq_lens: Sequence[int],
    query_lens: Sequence[int] | None = None,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Pages scattered over a pool with some to spare; `query_lens`, where there are fewer queries than keys: decode."""
    import torch

    draw = Draws(seed, device)
    queries = list(seq_lens) if query_lens is None else list(query_lens)
    table, pool = draw.pages([ceil(length / block_size) for length in seq_lens], spare=len(seq_lens))
    cache = (pool, block_size, num_kv_heads, head_size)
    return {
        "q": draw.normal(sum(queries), num_query_heads, head_size),
        "k_cache": draw.normal(*cache),
        "v_cache": draw.normal(*cache),
        "cu_seqlens_q": offsets(queries, device),
        "seqused_k": torch.tensor(list(seq_lens), dtype=torch.int32, device=device),
        "block_table": table,
    }


def cost(
    *, num_query_heads: int, num_kv_heads: int, head_size: int, block_size: int, seq_lens: Sequence[int], **_: object
) -> Cost:
    """Both products over the causal half; as many queries as keys, and the cache's used rows only."""
    T, n, Hq, Hk, d = sum(seq_lens), len(seq_lens), num_query_heads, num_kv_heads, head_size
    tables = 4 * (n + 1) + 4 * n + 4 * n * ceil(max(seq_lens) / block_size)
    return Cost(
        2 * Hq * d * sum(L * (L + 1) for L in seq_lens),
        read_bytes=2 * T * Hq * d + 4 * T * Hk * d + tables,
        written_bytes=2 * T * Hq * d,
    )


def work(
    *,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    block_size: int,
    seq_lens: Sequence[int],
    query_lens: Sequence[int] | None = None,
    **_: object,
) -> Work:
    """A pair of query and visible key: 2 d FLOPs twice, a maximum, scale and subtraction at once, a sum, and an exp.

    A row: divides of its weights or of its output, whichever are fewer. Each sequence reads the pages that it has.
    """
    queries = seq_lens if query_lens is None else query_lens
    n, Hq, Hk, d = len(seq_lens), num_query_heads, num_kv_heads, head_size
    pairs = Hq * sum(t * (L - t) + t * (t + 1) // 2 for t, L in zip(queries, seq_lens, strict=True))
    rows = sum(queries) * Hq
    divides = sum(_summed_up_to(L, d) - _summed_up_to(L - t, d) for t, L in zip(queries, seq_lens, strict=True))
    tables = 4 * (n + 1) + 4 * n + 4 * sum(ceil(L / block_size) for L in seq_lens)
    return Work(
        dtype="bf16",
        products=(Product(2 * pairs * d, K=d), Product(2 * pairs * d, N=d)),
        vector_flops=4 * pairs + Hq * divides,
        special_ops=pairs,
        read_bytes=2 * rows * d + 4 * sum(seq_lens) * Hk * d + tables,
        written_bytes=2 * rows * d,
    )


def _summed_up_to(last: int, most: int) -> int:
    """The sum of min(i, most) for i from 1 to last."""
    low = min(last, most)
    return low * (low + 1) // 2 + (last - low) * most


def _nan_value(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    """In the first key of the first sequence, which all of its queries see."""
    v_cache = tensors["v_cache"].clone()
    if len(tensors["seqused_k"]):
        block = int(tensors["block_table"][0, 0])
        v_cache[block, 0, v_cache.shape[2] // 2, v_cache.shape[3] // 2] = float("nan")
    return {"v_cache": v_cache}


OPERATOR = Operator(
    name="unified_attention",
    summary="Causal attention over a paged cache, grouped query heads, sequences of any length.",
    dims={
        "T": "tokens",
        "Hq": "query heads",
        "Hk": "key-value heads",
        "d": "head size",
        "n": "sequences",
        "NB": "blocks of the cache",
        "bs": "tokens of a block",
        "n1": "len(keys) + 1",
        "M": "ceil(largest(keys), block_size)",
    },
    axes=Axes(
        op_type="gqa_paged",
        sizes={
            "Hq": "num_query_heads",
            "Hk": "num_kv_heads",
            "d": "head_size",
            "bs": "block_size",
            "T": lambda queries: sum(queries),
            "n": lambda seq_lens: len(seq_lens),
            "n1": lambda seq_lens: len(seq_lens) + 1,
            "NB": lambda seq_lens, block_size: blocks(seq_lens, block_size) + len(seq_lens),
            "M": lambda seq_lens, block_size: tiles(max(seq_lens, default=0), block_size),
        },
        varying=("T", "n", "n1", "NB", "M"),
        inputs={
            "q": "T Hq d",
            "k_cache": "NB bs Hk d",
            "v_cache": "NB bs Hk d",
            "cu_seqlens_q": "n1: int32",
            "seqused_k": "n: int32",
            "block_table": "n M: int32",
        },
        outputs={"out": "T Hq d"},
        lists={
            "queries": lambda query_lens, seq_lens: seq_lens if query_lens is None else query_lens,
        },
        values={
            "cu_seqlens_q": lambda queries: index_tensors.offsets(queries),
            "seqused_k": lambda seq_lens: index_tensors.lengths(seq_lens),
            "block_table": lambda seq_lens, block_size, NB: index_tensors.pages(seq_lens, block_size, NB),
        },
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            *attention_cases("q", "k_cache", "v_cache", _nan_value),
            HardCase(
                "masked",
                "a sequence without queries",
                "the others as ever",
                args={"seq_lens": [5, 3, 7], "query_lens": [5, 0, 2]},
            ),
            no_tokens(seq_lens=[], query_lens=None),
        ),
        few=at_most(seq_lens=48, query_lens=48),
        left_out={
            "infinity": LEFT_OPEN,
            "NaN beyond the last key": BEYOND,
            "NaN in a later value": "the same: a tile's masked keys have weights of 0",
        },
    ),
    tiny=(
        {"num_query_heads": 4, "num_kv_heads": 2, "head_size": 16, "block_size": 16, "seq_lens": [1, 63, 33]},
        {"num_query_heads": 3, "num_kv_heads": 1, "head_size": 72, "block_size": 4, "seq_lens": [5]},
        {
            "num_query_heads": 2,
            "num_kv_heads": 2,
            "head_size": 8,
            "block_size": 8,
            "seq_lens": [40, 17, 9],
            "query_lens": [1, 17, 5],
        },
    ),
)
