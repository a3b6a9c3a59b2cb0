"""Attention of one new token a sequence over a paged cache of keys and values, with grouped query heads: decode.

The cache's layout is the one that ROCm kernels read well (that of vLLM's first paged kernels): a block holds a head's
values with the tokens innermost, and its keys in runs of x elements, 16 bytes, with the tokens between the runs and
the elements of a run.

B sequences, Hq query heads, Hk key-value heads, d head size, L keys of a sequence; the caches have NB blocks of bs
tokens; k_cache [NB, Hk, d / x, bs, x], v_cache [NB, Hk, d, bs], block_tables [B, most blocks].
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, blocks, repeated, tiles
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_attention import BEYOND, LEFT_OPEN, attention_cases
from inferometer.operators.hard_cases import HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors

SPARE_BLOCKS = 16
"""Blocks of the pool that belong to no sequence; the published bytes count them."""


def reference(
    query_BHqd: "Tensor", k_cache: "Tensor", v_cache: "Tensor", block_tables: "Tensor", seq_lens_B: "Tensor"
) -> "Tensor":
    """Scaled by d^-0.5, softmax in float32. A sequence without keys, as in a padded batch, gives zeros."""
    import torch

    out_BHqd = torch.empty_like(query_BHqd)
    block_size = v_cache.shape[3]
    for sequence, keys in enumerate(seq_lens_B.tolist()):
        blocks = block_tables[sequence, : ceil(keys / block_size)].long()
        k_LHkd = k_cache[blocks].permute(0, 3, 1, 2, 4).flatten(3).flatten(0, 1)[:keys].float()
        v_LHkd = v_cache[blocks].permute(0, 3, 1, 2).flatten(0, 1)[:keys].float()
        out_BHqd[sequence] = _attend(query_BHqd[sequence].float(), k_LHkd, v_LHkd).to(out_BHqd.dtype)
    return out_BHqd


def _attend(q_Hqd: "Tensor", k_LHkd: "Tensor", v_LHkd: "Tensor") -> "Tensor":
    """One token of one sequence, [Hq, d]; query heads next to each other share a head of keys and values."""
    import torch

    _, Hk, d = k_LHkd.shape
    q_HkGd = q_Hqd.unflatten(0, (Hk, -1))
    score_HkGL = torch.einsum("hgd,lhd->hgl", q_HkGd, k_LHkd) * d**-0.5
    return torch.einsum("hgl,lhd->hgd", torch.softmax(score_HkGL, -1), v_LHkd).flatten(0, 1)


def inputs(
    *,
    num_seqs: int,
    ctx_len: int,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    block_size: int,
    dtype: str = "bf16",
    ctx_lens: Sequence[int] | None = None,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Pages scattered over a pool with some to spare; queries that prefer some keys, as trained ones do.

    `ctx_lens` gives each sequence its own length; without it, all have `ctx_len`.
    """
    import torch

    draw = Draws(seed, device)
    lengths = _lengths(num_seqs, ctx_len, ctx_lens)
    table, pool = draw.pages([ceil(length / block_size) for length in lengths], spare=SPARE_BLOCKS)
    run = 8  # elements in 16 bytes, of bf16 as of fp16
    return {
        "query": draw.normal(num_seqs, num_query_heads, head_size, dtype=dtype, scale=2.0),
        "k_cache": draw.normal(pool, num_kv_heads, head_size // run, block_size, run, dtype=dtype),
        "v_cache": draw.normal(pool, num_kv_heads, head_size, block_size, dtype=dtype),
        "block_tables": table,
        "seq_lens": torch.tensor(lengths, dtype=torch.int32, device=device),
    }


def _lengths(num_seqs: int, ctx_len: int, ctx_lens: Sequence[int] | None) -> list[int]:
    return [ctx_len] * num_seqs if ctx_lens is None else list(ctx_lens)


def cost(
    *,
    num_seqs: int,
    ctx_len: int,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    block_size: int,
    ctx_lens: Sequence[int] | None = None,
    **_: object,
) -> Cost:
    """Both products, and a multiply and an add a key for its place in the cache; the whole pool is read."""
    B, Hq, Hk, d, bs = num_seqs, num_query_heads, num_kv_heads, head_size, block_size
    lengths = _lengths(num_seqs, ctx_len, ctx_lens)
    blocks = [ceil(length / bs) for length in lengths]
    pool = sum(blocks) + SPARE_BLOCKS
    return Cost(
        (4 * Hq * d + 2) * sum(lengths),
        read_bytes=2 * B * Hq * d + 4 * pool * Hk * d * bs + 4 * B * max(blocks) + 4 * B,
        written_bytes=2 * B * Hq * d,
    )


def work(
    *,
    num_seqs: int,
    ctx_len: int,
    num_query_heads: int,
    num_kv_heads: int,
    head_size: int,
    block_size: int,
    dtype: str = "bf16",
    ctx_lens: Sequence[int] | None = None,
    **_: object,
) -> Work:
    """A pair of query head and key: 2 d FLOPs twice, a maximum, scale and subtraction at once, a sum, and an exp.

    A divide for each weight or for each element of the output, what is less. Only the query heads of a group share
    keys: products have that many rows. (Vector units pad nothing; where they'd be quicker, memory is what binds.) Each
    sequence reads the keys, values and pages that it has.
    """
    B, Hq, Hk, d = num_seqs, num_query_heads, num_kv_heads, head_size
    lengths = _lengths(num_seqs, ctx_len, ctx_lens)
    pairs, group, rows = Hq * sum(lengths), Hq // Hk, B * Hq
    tables = 4 * B + 4 * sum(ceil(length / block_size) for length in lengths)
    return Work(
        dtype=dtype,
        products=(Product(2 * pairs * d, M=group, K=d), Product(2 * pairs * d, M=group, N=d)),
        vector_flops=4 * pairs + Hq * sum(min(length, d) for length in lengths),
        special_ops=pairs,
        read_bytes=2 * rows * d + 4 * sum(lengths) * Hk * d + tables,
        written_bytes=2 * rows * d,
    )


def _nan_value(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    """In the first key of the first sequence that has one."""
    v_cache = tensors["v_cache"].clone()
    sequence = next((at for at, keys in enumerate(tensors["seq_lens"].tolist()) if keys), None)
    if sequence is not None:
        block = int(tensors["block_tables"][sequence, 0])
        v_cache[block, v_cache.shape[1] // 2, v_cache.shape[2] // 2, 0] = float("nan")
    return {"v_cache": v_cache}


OPERATOR = Operator(
    name="paged_attention_decode",
    summary="Attention of one new token a sequence over a paged cache, grouped query heads.",
    dims={
        "B": "sequences",
        "Hq": "query heads",
        "Hk": "key-value heads",
        "d": "head size",
        "x": "elements in 16 bytes",
        "NB": "blocks of the cache",
        "bs": "tokens of a block",
        "dx": "head_size // 8",
        "M": "ceil(largest(keys), block_size)",
    },
    axes=Axes(
        op_type="gqa_paged",
        sizes={
            "B": "num_seqs",
            "Hq": "num_query_heads",
            "Hk": "num_kv_heads",
            "d": "head_size",
            "x": 8,
            "dx": lambda head_size: head_size // 8,
            "bs": "block_size",
            "NB": lambda keys, block_size: blocks(keys, block_size) + SPARE_BLOCKS,
            "M": lambda keys, block_size: tiles(max(keys, default=0), block_size),
        },
        varying=("B", "NB", "M"),
        inputs={
            "query": "B Hq d: dtype",
            "k_cache": "NB Hk dx bs x: dtype",
            "v_cache": "NB Hk d bs: dtype",
            "block_tables": "B M: int32",
            "seq_lens": "B: int32",
        },
        outputs={"out": "B Hq d: dtype"},
        lists={
            "keys": lambda ctx_lens, ctx_len, num_seqs: repeated(ctx_len, num_seqs) if ctx_lens is None else ctx_lens
        },
        values={
            "block_tables": lambda keys, block_size, NB: index_tensors.pages(keys, block_size, NB),
            "seq_lens": lambda keys: index_tensors.lengths(keys),
        },
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            *attention_cases("query", "k_cache", "v_cache", _nan_value),
            no_tokens(num_seqs=0, ctx_lens=None),
        ),
        few=at_most(num_seqs=3, ctx_len=48, ctx_lens=48),
        left_out={
            "infinity": LEFT_OPEN,
            "NaN beyond the last key": BEYOND,
        },
    ),
    tiny=(
        {
            "num_seqs": 3,
            "ctx_len": 63,
            "num_query_heads": 4,
            "num_kv_heads": 2,
            "head_size": 16,
            "block_size": 16,
            "dtype": "bf16",
        },
        {
            "num_seqs": 1,
            "ctx_len": 1,
            "num_query_heads": 3,
            "num_kv_heads": 1,
            "head_size": 72,
            "block_size": 4,
            "dtype": "fp16",
        },
        {
            "num_seqs": 5,
            "ctx_len": 129,
            "ctx_lens": [33, 129, 0, 1, 16],
            "num_query_heads": 2,
            "num_kv_heads": 2,
            "head_size": 8,
            "block_size": 8,
            "dtype": "bf16",
        },
    ),
)
