"""Multi-head latent attention of one new token a sequence, absorbed: all heads read the same latent row of a key.

A row is what DeepSeek-V2 caches (arXiv:2405.04434, section 2.1): R columns that keys and values are compressed to, and
p that carry the position. The projections back are part of the queries and of what comes after, so a key is the whole
row and a value its first R columns. The published scale is (R + p)^-0.5; the models use that of their heads before
absorption, 192^-0.5 for DeepSeek's: the queries make up for it.

B sequences, n heads, R latent rank, p columns with positions, L keys of a sequence; kv_cache [sum of L, 1, R + p].
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, repeated
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_attention import KEY, LEFT_OPEN, SCORE, nan_may_spread
from inferometer.operators.catalogue.pieces import pieces
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    at_most,
    both,
    enlarged,
    filled,
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Change, Tensors


def reference(q_BnD: "Tensor", kv_cache: "Tensor", seq_lens_B: "Tensor", *, kv_lora_rank: int) -> "Tensor":
    """Softmax in float32; the sequences' rows lie one after another. Every sequence has a key."""
    B, n, _ = q_BnD.shape
    out_BnR = q_BnD.new_empty(B, n, kv_lora_rank)
    start = 0
    for sequence, keys in enumerate(seq_lens_B.tolist()):
        row_LD = kv_cache[start : start + keys, 0].float()
        for heads in pieces(n, keys):
            found = _attend(q_BnD[sequence, heads].float(), row_LD, row_LD[:, :kv_lora_rank])
            out_BnR[sequence, heads] = found.to(out_BnR.dtype)
        start += keys
    return out_BnR


def _attend(q_nD: "Tensor", k_LD: "Tensor", v_LR: "Tensor") -> "Tensor":
    import torch

    score_nL = q_nD @ k_LD.T * k_LD.shape[1] ** -0.5
    return torch.softmax(score_nL, -1) @ v_LR


def inputs(
    *,
    batch_size: int,
    ctx_len: int,
    nhead: int,
    kv_lora_rank: int,
    qk_rope_head_dim: int,
    ctx_lens: Sequence[int] | None = None,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Queries that prefer some keys, as trained ones do.

    `ctx_lens` gives each sequence its own length; without it, all have `ctx_len`.
    """
    import torch

    draw = Draws(seed, device)
    lengths = _lengths(batch_size, ctx_len, ctx_lens)
    row = kv_lora_rank + qk_rope_head_dim
    return {
        "q": draw.normal(batch_size, nhead, row, scale=2.0),
        "kv_cache": draw.normal(sum(lengths), 1, row),
        "seq_lens": torch.tensor(lengths, dtype=torch.int32, device=device),
    }


def _lengths(batch_size: int, ctx_len: int, ctx_lens: Sequence[int] | None) -> list[int]:
    return [ctx_len] * batch_size if ctx_lens is None else list(ctx_lens)


def cost(
    *,
    batch_size: int,
    ctx_len: int,
    nhead: int,
    kv_lora_rank: int,
    qk_rope_head_dim: int,
    ctx_lens: Sequence[int] | None = None,
    **_: object,
) -> Cost:
    """Both products; the root of the scale goes to each query, and to each key once per head."""
    B, n, R, row = batch_size, nhead, kv_lora_rank, kv_lora_rank + qk_rope_head_dim
    keys = sum(_lengths(batch_size, ctx_len, ctx_lens))
    return Cost(
        n * (2 * keys * (row + R) + row * (keys + B)),
        read_bytes=2 * B * n * row + 2 * keys * row + 4 * B,
        written_bytes=2 * B * n * R,
    )


def work(
    *,
    batch_size: int,
    ctx_len: int,
    nhead: int,
    kv_lora_rank: int,
    qk_rope_head_dim: int,
    ctx_lens: Sequence[int] | None = None,
    **_: object,
) -> Work:
    """A pair of head and key: both products, a maximum, scale and subtraction at once, a sum, and an exp.

    A divide for each weight or for each element of the output, what is less. A row of the cache is read once for all
    heads, as key and as value.
    """
    B, n, R, row = batch_size, nhead, kv_lora_rank, kv_lora_rank + qk_rope_head_dim
    lengths = _lengths(batch_size, ctx_len, ctx_lens)
    keys, pairs = sum(lengths), n * sum(lengths)
    return Work(
        dtype="bf16",
        products=(Product(2 * pairs * row, M=n, K=row), Product(2 * pairs * R, M=n, N=R)),
        vector_flops=4 * pairs + n * sum(min(length, R) for length in lengths),
        special_ops=pairs,
        read_bytes=2 * B * n * row + 2 * keys * row + 4 * B,
        written_bytes=2 * B * n * R,
    )


def _equal_scores(sign: int) -> "Change":
    """By the columns with positions alone: the others are values too."""

    def change(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
        q_BnD, rows_LD, rank = tensors["q"].clone(), tensors["kv_cache"].clone(), args["kv_lora_rank"]
        width = q_BnD.shape[-1]
        q_BnD[..., :rank], rows_LD[..., rank:] = 0.0, KEY
        q_BnD[..., rank:] = sign * SCORE * width**0.5 / (KEY * (width - rank))
        return {"q": q_BnD, "kv_cache": rows_LD}

    return change


OPERATOR = Operator(
    name="mla_decode_attention",
    summary="Latent attention of one new token per sequence: all heads share a row per key, values are part of it.",
    dims={
        "B": "sequences",
        "n": "heads",
        "R": "latent rank",
        "p": "columns with positions",
        "D": "R + p",
        "L": "sum(keys)",
    },
    axes=Axes(
        op_type="mla",
        sizes={
            "B": "batch_size",
            "n": "nhead",
            "R": "kv_lora_rank",
            "D": lambda kv_lora_rank, qk_rope_head_dim: kv_lora_rank + qk_rope_head_dim,
            "p": "qk_rope_head_dim",
            "one": 1,
            "L": lambda keys: sum(keys),
        },
        varying=("B", "L"),
        inputs={"q": "B n D", "kv_cache": "L one D", "seq_lens": "B: int32"},
        outputs={"out": "B n R"},
        lists={
            "keys": lambda ctx_lens, ctx_len, batch_size: (
                repeated(ctx_len, batch_size) if ctx_lens is None else ctx_lens
            )
        },
        values={"seq_lens": lambda keys: index_tensors.lengths(keys)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "queries of zeros", "the mean of the values", zeroed("q")),
            *(
                HardCase(
                    "offset",
                    f"equal scores of {sign * SCORE:g}",
                    "the mean of the values: scores are taken relative to their maximum",
                    _equal_scores(sign),
                )
                for sign in (1, -1)
            ),
            HardCase(
                "large numbers",
                "large values",
                "means of them: what is summed is float32",
                both(filled(0.0, "q"), enlarged("kv_cache", most=2.0**100)),
            ),
            HardCase("tiny numbers", "tiny values", "means of them", shrunk("kv_cache")),
            HardCase("NaN", "NaN in a query", "NaN in its own row of its own head alone", spoiled(nan, "q")),
            HardCase(
                "NaN", "NaN in a key", "NaN in all of its sequence", spoiled(nan, "kv_cache"), left_open=nan_may_spread
            ),
            no_tokens(batch_size=0, ctx_lens=None),
        ),
        few=at_most(batch_size=3, ctx_len=48, ctx_lens=48),
        left_out={"infinity": LEFT_OPEN},
    ),
    settings=("kv_lora_rank",),
    tiny=(
        {"batch_size": 1, "ctx_len": 1, "nhead": 3, "kv_lora_rank": 32, "qk_rope_head_dim": 8},
        {"batch_size": 2, "ctx_len": 63, "nhead": 16, "kv_lora_rank": 64, "qk_rope_head_dim": 16},
        {
            "batch_size": 3,
            "ctx_len": 129,
            "ctx_lens": [17, 129, 1],
            "nhead": 5,
            "kv_lora_rank": 48,
            "qk_rope_head_dim": 16,
        },
    ),
)
