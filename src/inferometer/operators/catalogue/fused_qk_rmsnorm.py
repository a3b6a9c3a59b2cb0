"""RMS norm of every query and key head of packed rows of queries, keys and values; the values stay as they are.

The norm is `rms_norm`'s, but rounded to the dtype of the row before the multiply by the weight. Production does it in
place, so it neither reads nor writes the values; the contract here returns a whole new row.

T tokens, Hq query heads, Hk key heads and as many value heads, d head size, S = (Hq + 2 Hk) d columns.
"""

from collections.abc import Mapping
from math import inf, nan
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    NORM_RANGE,
    HardCase,
    HardCases,
    at_most,
    enlarged,
    nan_may_fill_rows,
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    qkv_TS: "Tensor", q_weight_d: "Tensor", k_weight_d: "Tensor", *, head_num: int, kv_head_num: int, eps: float = 1e-6
) -> "Tensor":
    """float32 up to the norm, which is rounded; weighted in the dtype of `qkv_TS`."""
    import torch

    def normed(heads: "Tensor", weight: "Tensor") -> "Tensor":
        heads32 = heads.float()
        scale = (heads32.square().mean(-1, keepdim=True) + eps).rsqrt()
        return (heads32 * scale).to(heads.dtype) * weight

    def rows(qkv: "Tensor") -> "Tensor":
        heads = qkv.unflatten(1, (head_num + 2 * kv_head_num, -1))
        q, k, v = heads.split([head_num, kv_head_num, kv_head_num], 1)
        return torch.cat([normed(q, q_weight_d), normed(k, k_weight_d), v], 1).flatten(1)

    (out_TS,) = by_rows(rows, qkv_TS, out=(torch.empty_like(qkv_TS),))
    return out_TS


def inputs(
    *,
    num_tokens: int,
    head_num: int,
    kv_head_num: int,
    size_per_head: int,
    dtype: str = "fp16",
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Heads whose scales differ by more than ten times."""
    draw = Draws(seed, device)
    heads = head_num + 2 * kv_head_num
    scale = draw.uniform(num_tokens, heads, 1, low=0.2, high=4.0, dtype=dtype)
    return {
        "hidden_states": draw.normal(num_tokens, heads, size_per_head, dtype=dtype).mul_(scale).flatten(1),
        "q_weight": draw.norm_weight(size_per_head, dtype),
        "k_weight": draw.norm_weight(size_per_head, dtype),
    }


def cost(*, num_tokens: int, head_num: int, kv_head_num: int, size_per_head: int, **_: object) -> Cost:
    """A mean and two multiplies an element of queries and keys, eps a head; whole rows are read and written."""
    T, Hq, Hk, d = num_tokens, head_num, kv_head_num, size_per_head
    row_bytes = 2 * (Hq + 2 * Hk) * d
    return Cost(T * (Hq + Hk) * (3 * d + 1), read_bytes=T * row_bytes + 4 * d, written_bytes=T * row_bytes)


def work(*, num_tokens: int, head_num: int, kv_head_num: int, size_per_head: int, **_: object) -> Work:
    """An element of queries and keys: a square and its sum, two multiplies; a head: a divide, an add and an rsqrt.

    In place: the values aren't touched.
    """
    heads, d = num_tokens * (head_num + kv_head_num), size_per_head
    return Work(
        vector_flops=heads * (4 * d + 2),
        special_ops=heads,
        read_bytes=2 * heads * d + 4 * d,
        written_bytes=2 * heads * d,
    )


def _enlarged(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
    """Queries and keys alone: next to large values, an error in them would not show."""
    heads, kv_heads = args["head_num"], args["kv_head_num"]
    row = tensors["hidden_states"]
    normed = (heads + kv_heads) * (row.shape[1] // (heads + 2 * kv_heads))
    found = row.clone()
    found[:, :normed] = enlarged("qk", room=4.0, most=NORM_RANGE)({"qk": row[:, :normed]}, args)["qk"]
    return {"hidden_states": found}


OPERATOR = Operator(
    name="fused_qk_rmsnorm",
    summary="Root-mean-square norm, with a weight, of each query and key head of packed rows; values stay.",
    dims={"T": "tokens", "Hq": "query heads", "Hk": "key heads, and value heads", "d": "head size", "S": "columns"},
    axes=Axes(
        op_type="rmsnorm",
        sizes={
            "T": "num_tokens",
            "Hq": "head_num",
            "Hk": "kv_head_num",
            "d": "size_per_head",
            "S": lambda head_num, kv_head_num, size_per_head: (head_num + 2 * kv_head_num) * size_per_head,
        },
        varying=("T",),
        inputs={"hidden_states": "T S: dtype", "q_weight": "d: dtype", "k_weight": "d: dtype"},
        outputs={"out": "T S: dtype"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros: eps keeps the root from 0", zeroed("hidden_states")),
            HardCase(
                "large numbers",
                "large queries and keys",
                "what smaller ones would give: squares of fp16 overflow above 255, float32's don't",
                _enlarged,
            ),
            HardCase(
                "tiny numbers", "tiny numbers", "next to eps nothing is left of their squares", shrunk("hidden_states")
            ),
            HardCase(
                "NaN",
                "NaN in one number",
                "NaN in all of its head and in no other",
                spoiled(nan, "hidden_states", (0, 0)),
            ),
            HardCase(
                "infinity",
                "infinity in one number",
                "NaN there, 0 or NaN in the rest of its head",
                spoiled(inf, "hidden_states", (0, 0)),
                left_open=nan_may_fill_rows,
            ),
            no_tokens(num_tokens=0),
        ),
        few=at_most(num_tokens=8),
    ),
    settings=("head_num", "kv_head_num", "eps"),
    tiny=(
        {"num_tokens": 1, "head_num": 4, "kv_head_num": 2, "size_per_head": 128, "dtype": "fp16"},
        {"num_tokens": 7, "head_num": 3, "kv_head_num": 1, "size_per_head": 72, "dtype": "bf16"},
        {"num_tokens": 3, "head_num": 2, "kv_head_num": 2, "size_per_head": 63, "dtype": "fp16", "eps": 0.1},
    ),
    updates={"hidden_states": "out"},
)
