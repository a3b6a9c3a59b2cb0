"""Attention of the framework and of flash-attention: pairs of a query and a key, by what the mask lets through.

FLOPs are 2 (D + Dv) for each pair and query head; causal ones count the pairs that are seen, exactly, where PyTorch's
FlopCounterMode counts all. Keys and values are read once for each of *their* heads; one exponential a pair. Of
sequences of different lengths only the sum is recorded: the fewest pairs that it allows count, unless the step's name
says more (`Context`).
"""

from dataclasses import dataclass
from typing import NamedTuple

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import matrix_dtype, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Product, Work

_VECTOR_A_PAIR = 4  # scale, greatest, subtract, sum
_NOTHING_MASKED = "nothing is masked: a mask's values aren't recorded"
EQUAL_LENGTHS = "sequences are equally long, the fewest pairs: their lengths aren't recorded"


@dataclass(frozen=True)
class Heads:
    """Sizes that all attention has. `q`, `k`, `v`: tensors; heads of queries, of keys, and sizes of a head."""

    q: Tensor
    k: Tensor
    v: Tensor
    query_heads: int
    key_heads: int
    head: int
    value_head: int


class _Layout(NamedTuple):
    """Which dimensions are what, counted from the end; `varlen`: no batch, sequences lie behind each other."""

    heads: int
    length: int


_BHSD, _BSHD = _Layout(heads=-3, length=-2), _Layout(heads=-2, length=-3)


def attention_work(
    call: OpCall, heads: Heads, pairs: int, read: int, written: int, assumes: tuple[str, ...] = ()
) -> Work:
    """Work of `pairs` for each query head, with everything that is read and written."""
    dtype, assumed = matrix_dtype(call, heads.q, heads.k)
    each = pairs * heads.query_heads
    return Work(
        dtype=dtype,
        products=(Product(2 * each * heads.head), Product(2 * each * heads.value_head)),
        vector_flops=_VECTOR_A_PAIR * each,
        special_ops=each,
        read_bytes=read,
        written_bytes=written,
        assumes=(*assumes, *assumed),
    )


def seen_pairs(queries: int, keys: int, *, causal: bool, from_end: bool = True) -> int:
    """Pairs of one sequence: all, or each query with the keys up to its own place.

    `from_end`: the last query stands at the last key, as in a cache; otherwise the first at the first.
    """
    if not causal:
        return queries * keys
    if from_end and keys >= queries:
        return queries * keys - queries * (queries - 1) // 2
    if from_end:
        return keys * (keys + 1) // 2
    short = min(queries, keys)
    return short * (short + 1) // 2 + max(0, queries - keys) * keys


def _dense(layout: _Layout, *, causal_at: int, mask_at: int | None = None, extra: int = 4) -> Model:
    """Of q, k, v with a batch; `extra` bytes a query and head are written beside the result (log of the sum)."""

    def work(call: OpCall) -> Work:
        heads = _heads(call, layout)
        batch = heads.q.numel // (heads.q.dims[layout.heads] * heads.q.dims[layout.length] * heads.head or 1)
        queries, keys = heads.q.dims[layout.length], heads.k.dims[layout.length]
        causal = call.value(causal_at) is True or call.value(causal_at) in (1, 2)
        pairs = batch * seen_pairs(queries, keys, causal=causal, from_end=call.value(causal_at) == 2)
        mask = call.maybe_tensor(mask_at) if mask_at is not None else None
        read = read_bytes([heads.q, heads.k, heads.v, mask])
        rows = batch * queries * heads.query_heads
        written = rows * (heads.value_head * heads.q.item_bytes + extra)
        return attention_work(call, heads, pairs, read, written, (_NOTHING_MASKED,) if mask else ())

    return work


def _heads(call: OpCall, layout: _Layout) -> Heads:
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    if any(len(each.dims) < 3 for each in (q, k, v)) or q.dims[-1] != k.dims[-1]:
        raise Unmodelled(f"expected q, k and v with heads, found {list(q.dims)}, {list(k.dims)} and {list(v.dims)}")
    return Heads(q, k, v, q.dims[layout.heads], k.dims[layout.heads], q.dims[-1], v.dims[-1])


def _either(dense: Model, varlen: Model) -> Model:
    """By whether q has a batch."""

    def work(call: OpCall) -> Work:
        return (dense if len(call.tensor(0).dims) == 4 else varlen)(call)

    return work


def _varlen(*, causal_at: int, sequences_at: int, max_q_at: int, max_k_at: int) -> Model:
    """Of q [T, H, D] and k, v, whose sequences begin where a tensor says: its values aren't recorded."""

    def work(call: OpCall) -> Work:
        heads = _heads(call, _Layout(heads=-2, length=-3))
        queries, keys = heads.q.dims[0], heads.k.dims[0]
        sequences = max(1, call.tensor(sequences_at).numel - 1)
        causal = call.value(causal_at) is True
        exact = queries == sequences * call.integer(max_q_at, -1) and keys == sequences * call.integer(max_k_at, -1)
        pairs = fewest_pairs(queries, keys, sequences, causal=causal)
        read = read_bytes([heads.q, heads.k, heads.v])
        written = queries * heads.query_heads * (heads.value_head * heads.q.item_bytes + 4)
        return attention_work(call, heads, pairs, read, written, () if exact else (EQUAL_LENGTHS,))

    return work


def fewest_pairs(queries: int, keys: int, sequences: int, *, causal: bool) -> int:
    """Pairs of sequences that are equally long, or nearly: no others with the same sums have fewer."""
    if queries == keys:
        short, longer = divmod(queries, sequences)
        shares = ((sequences - longer, short), (longer, short + 1))
        return sum(count * seen_pairs(size, size, causal=causal) for count, size in shares)
    return max(keys, sequences * seen_pairs(queries // sequences, keys // sequences, causal=causal))


FAMILY = OpFamily(
    name="attention",
    models={
        "aten::scaled_dot_product_attention": _dense(_BHSD, causal_at=5, mask_at=3, extra=0),
        "aten::_scaled_dot_product_flash_attention": _dense(_BHSD, causal_at=4),
        "aten::_scaled_dot_product_efficient_attention": _dense(_BHSD, causal_at=6, mask_at=3),
        "aten::_scaled_dot_product_cudnn_attention": _dense(_BHSD, causal_at=6, mask_at=3),
        "aten::_cudnn_attention_forward": _dense(_BHSD, causal_at=9, mask_at=3),
        "aten::_scaled_dot_product_flash_attention_for_cpu": _dense(_BHSD, causal_at=4, mask_at=5),
        "aten::_flash_attention_forward": _either(
            _dense(_BSHD, causal_at=8), _varlen(causal_at=8, sequences_at=3, max_q_at=5, max_k_at=6)
        ),
        "aten::_efficient_attention_forward": _dense(_BSHD, causal_at=9, mask_at=3),
        "flash_attn::_flash_attn_forward": _dense(_BSHD, causal_at=5),
        "flash_attn::_flash_attn_varlen_forward": _varlen(causal_at=9, sequences_at=3, max_q_at=5, max_k_at=6),
    },
    covering=frozenset(
        {
            "aten::scaled_dot_product_attention",
            "aten::_scaled_dot_product_flash_attention",
            "aten::_scaled_dot_product_efficient_attention",
            "aten::_scaled_dot_product_cudnn_attention",
            "flash_attn::_flash_attn_forward",
            "flash_attn::_flash_attn_varlen_forward",
        }
    ),
)
