"""Attention of packed sequences without a mask: every query of a sequence sees all of its keys, as in vision encoders.

There are as many heads of keys and values as of queries. In all published shapes there are as many keys as queries.

T tokens (queries of all sequences), S keys of all sequences, H heads, d head size, n sequences.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws, offsets
from inferometer.operators.catalogue.hard_attention import LEFT_OPEN, attention_cases
from inferometer.operators.catalogue.pieces import pieces
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    q_THd: "Tensor", k_SHd: "Tensor", v_SHd: "Tensor", cu_seqlens_q: "Tensor", cu_seqlens_k: "Tensor"
) -> "Tensor":
    """Scaled by d^-0.5, softmax in float32; a sequence and a head at a time. A sequence with queries has a key."""
    import torch

    out_THd = torch.empty_like(q_THd)
    parts = zip(pairwise(cu_seqlens_q.tolist()), pairwise(cu_seqlens_k.tolist()), strict=True)
    for queries, keys in parts:
        rows, seen = slice(*queries), slice(*keys)
        for head in range(q_THd.shape[1]):
            _attend(q_THd[rows, head], k_SHd[seen, head].float(), v_SHd[seen, head].float(), out_THd[rows, head])
    return out_THd


def _attend(q_td: "Tensor", k_Ld: "Tensor", v_Ld: "Tensor", out_td: "Tensor") -> None:
    """One head of one sequence, in pieces of queries."""
    import torch

    for part in pieces(q_td.shape[0], k_Ld.shape[0]):
        score_iL = q_td[part].float() @ k_Ld.T * k_Ld.shape[1] ** -0.5
        out_td[part] = (torch.softmax(score_iL, -1) @ v_Ld).to(out_td.dtype)


def inputs(
    *,
    num_heads: int,
    head_dim: int,
    seq_lens: Sequence[int],
    key_lens: Sequence[int] | None = None,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Queries that prefer some keys, as trained ones do; `key_lens`, where there aren't as many keys as queries."""
    draw = Draws(seed, device)
    lengths = seq_lens if key_lens is None else key_lens
    return {
        "q": draw.normal(sum(seq_lens), num_heads, head_dim, scale=2.0),
        "k": draw.normal(sum(lengths), num_heads, head_dim),
        "v": draw.normal(sum(lengths), num_heads, head_dim),
        "cu_seqlens_q": offsets(seq_lens, device),
        "cu_seqlens_k": offsets(lengths, device),
    }


def cost(
    *, num_heads: int, head_dim: int, seq_lens: Sequence[int], key_lens: Sequence[int] | None = None, **_: object
) -> Cost:
    """Both products, nothing of the softmax."""
    lengths = seq_lens if key_lens is None else key_lens
    T, S, H, d = sum(seq_lens), sum(lengths), num_heads, head_dim
    return Cost(
        4 * d * _pairs(H, seq_lens, lengths),
        read_bytes=2 * T * H * d + 4 * S * H * d + 8 * (len(seq_lens) + 1),
        written_bytes=2 * T * H * d,
    )


def work(
    *, num_heads: int, head_dim: int, seq_lens: Sequence[int], key_lens: Sequence[int] | None = None, **_: object
) -> Work:
    """A pair of query and key: 2 d FLOPs twice, a maximum, scale and subtraction at once, a sum, and an exp.

    A divide for each weight or for each element of the output, what is less.
    """
    lengths = seq_lens if key_lens is None else key_lens
    T, S, H, d = sum(seq_lens), sum(lengths), num_heads, head_dim
    pairs = _pairs(H, seq_lens, lengths)
    divides = _pairs(H, seq_lens, [min(keys, d) for keys in lengths])
    return Work(
        dtype="bf16",
        products=(Product(2 * pairs * d, K=d), Product(2 * pairs * d, N=d)),
        vector_flops=4 * pairs + divides,
        special_ops=pairs,
        read_bytes=2 * T * H * d + 4 * S * H * d + 8 * (len(seq_lens) + 1),
        written_bytes=2 * T * H * d,
    )


def _pairs(heads: int, query_lens: Sequence[int], key_lens: Sequence[int]) -> int:
    """Queries times keys, of all sequences and heads."""
    return heads * sum(queries * keys for queries, keys in zip(query_lens, key_lens, strict=True))


def _nan_value(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    """In the last key of the first sequence that has one."""
    v_SHd = tensors["v"].clone()
    if len(v_SHd):
        last = next(end for end in tensors["cu_seqlens_k"].tolist() if end) - 1
        v_SHd[last, v_SHd.shape[1] // 2, v_SHd.shape[2] // 2] = float("nan")
    return {"v": v_SHd}


OPERATOR = Operator(
    name="attention_forward",
    summary="Attention of packed sequences without a mask.",
    dims={"T": "queries", "S": "keys", "H": "heads", "d": "head size", "n": "sequences", "n1": "len(seq_lens) + 1"},
    axes=Axes(
        op_type="attention",
        sizes={
            "H": "num_heads",
            "d": "head_dim",
            "T": lambda seq_lens: sum(seq_lens),
            "S": lambda keys: sum(keys),
            "n1": lambda seq_lens: len(seq_lens) + 1,
        },
        varying=("T", "S", "n1"),
        inputs={"q": "T H d", "k": "S H d", "v": "S H d", "cu_seqlens_q": "n1: int32", "cu_seqlens_k": "n1: int32"},
        outputs={"out": "T H d"},
        lists={"keys": lambda key_lens, seq_lens: seq_lens if key_lens is None else key_lens},
        values={
            "cu_seqlens_q": lambda seq_lens: index_tensors.offsets(seq_lens),
            "cu_seqlens_k": lambda keys: index_tensors.offsets(keys),
        },
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            *attention_cases("q", "k", "v", _nan_value),
            HardCase(
                "masked",
                "a sequence without tokens",
                "the others as ever",
                args={"seq_lens": [5, 0, 7], "key_lens": None},
            ),
            no_tokens(seq_lens=[], key_lens=None),
        ),
        few=at_most(seq_lens=48, key_lens=48),
        left_out={"infinity": LEFT_OPEN},
    ),
    tiny=(
        {"num_heads": 2, "head_dim": 72, "seq_lens": [1, 63, 129]},
        {"num_heads": 3, "head_dim": 16, "seq_lens": [33]},
        {"num_heads": 1, "head_dim": 80, "seq_lens": [5, 40], "key_lens": [17, 9]},
    ),
)
