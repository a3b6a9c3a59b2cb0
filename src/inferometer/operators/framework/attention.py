"""Attention of the framework and of flash-attention: pairs of a query and a key, by what the mask lets through.

FLOPs are 2 (D + Dv) for each pair and query head; causal ones count the pairs that are seen, exactly, where PyTorch's
FlopCounterMode counts all. Keys and values are read once for each of *their* heads; one exponential a pair. Of
sequences of different lengths only the sum is recorded: the fewest pairs that it allows count. Which pages of a cache a
call reads isn't recorded either; ops of serving engines, whose steps show lengths, are in `serving_attention`.
"""

from math import prod
from typing import NamedTuple

import msgspec

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import matrix_dtype, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Product, Work

_VECTOR_A_PAIR = 4  # scale, greatest, subtract, sum
_NOTHING_MASKED = "nothing is masked: a mask's values aren't recorded"
FEWEST_PAIRS = "sequences have the lengths with the fewest pairs: their own aren't recorded"


class Heads(msgspec.Struct, frozen=True):
    """Sizes that all attention has. `q`, `k`, `v`: tensors; heads of queries, of keys, and sizes of a head."""

    q: Tensor
    k: Tensor
    v: Tensor
    query_heads: int
    key_heads: int
    head: int
    value_head: int


class _Layout(NamedTuple):
    """Which dimensions are what, counted from the end; `varlen`: no batch, sequences lie one after the other."""

    heads: int
    length: int


BHSD, BSHD = _Layout(heads=-3, length=-2), _Layout(heads=-2, length=-3)


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


class Sight(NamedTuple):
    """Which keys a query sees, by its own place: `left` before it and `right` after it; None: all.

    `from_end`: the last query stands at the last key, as in a cache; otherwise the first at the first.
    """

    left: int | None = None
    right: int | None = None
    from_end: bool = True


def seen_pairs(queries: int, keys: int, sight: Sight) -> int:
    """Pairs of one sequence."""
    own = keys - queries if sight.from_end else 0
    before = 0 if sight.left is None else _keys_below(queries, keys, own - sight.left)
    until = queries * keys if sight.right is None else _keys_below(queries, keys, own + 1 + sight.right)
    return until - before


def _keys_below(queries: int, keys: int, first: int) -> int:
    """The sum over queries of how many keys lie below `first` for the first query, one more for each next."""
    start, stop = (min(max(at, 0), queries) for at in (-first, keys - first))
    between = stop - start
    return between * first + (start + stop - 1) * between // 2 + (queries - stop) * keys


def _seen_keys(queries: int, keys: int, sight: Sight) -> int:
    """Keys of one sequence that any query sees."""
    own = keys - queries if sight.from_end else 0
    first = 0 if sight.left is None else max(0, own - sight.left)
    stop = keys if sight.right is None else min(keys, own + queries + sight.right)
    return max(0, stop - first)


def dense(
    layout: _Layout, *, causal_at: int, mask_at: int | None = None, windows_at: int | None = None, extra: int = 4,
    from_end: bool = False,
) -> Model:  # fmt: skip
    """Of q, k, v with a batch; `extra` bytes per query and head are written next to the result (log of the sum)."""

    def work(call: OpCall) -> Work:
        heads = _heads(call, layout)
        batch = heads.q.numel // (heads.q.dims[layout.heads] * heads.q.dims[layout.length] * heads.head or 1)
        queries, keys = heads.q.dims[layout.length], heads.k.dims[layout.length]
        sight = _sight(call, causal_at, windows_at, from_end=from_end)
        mask = call.maybe_tensor(mask_at) if mask_at is not None else None
        cached = read_bytes([heads.k, heads.v]) * _seen_keys(queries, keys, sight) // (keys or 1)
        rows = batch * queries * heads.query_heads
        written = rows * (heads.value_head * heads.q.item_bytes + extra)
        read = read_bytes([heads.q, mask]) + cached
        pairs = batch * seen_pairs(queries, keys, sight)
        return attention_work(call, heads, pairs, read, written, (_NOTHING_MASKED,) if mask else ())

    return work


def _sight(call: OpCall, causal_at: int, windows_at: int | None, *, from_end: bool) -> Sight:
    """By whether it is causal (2: from the end), and the two sizes of a window, less than 0 where there is none."""
    causal = call.value(causal_at)
    left, right = (call.integer(windows_at + at, -1) if windows_at is not None else -1 for at in (0, 1))
    return Sight(
        left if left >= 0 else None,
        0 if causal in (1, 2) else right if right >= 0 else None,
        from_end=from_end or causal == 2,
    )


def _heads(call: OpCall, layout: _Layout) -> Heads:
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    if any(len(each.dims) < 3 for each in (q, k, v)) or q.dims[-1] != k.dims[-1]:
        raise Unmodelled(f"expected q, k and v with heads, found {list(q.dims)}, {list(k.dims)} and {list(v.dims)}")
    return Heads(q, k, v, q.dims[layout.heads], k.dims[layout.heads], q.dims[-1], v.dims[-1])


def either(sequences_at: int, of_batch: Model, of_sequences: Model) -> Model:
    """By whether an argument says where sequences begin."""

    def work(call: OpCall) -> Work:
        return (of_batch if call.maybe_tensor(sequences_at) is None else of_sequences)(call)

    return work


def varlen(*, causal_at: int, sequences_at: int, max_q_at: int, max_k_at: int, windows_at: int | None = None) -> Model:
    """Of q [T, H, D] and k, v, whose sequences begin where a tensor says: its values aren't recorded."""

    def work(call: OpCall) -> Work:
        heads = _heads(call, BSHD)
        if prod(heads.q.dims[:-3]) != 1 or prod(heads.k.dims[:-3]) != 1:
            raise Unmodelled("which pages of its cache it reads isn't recorded")
        queries, keys = heads.q.dims[-3], heads.k.dims[-3]
        sequences = max(1, call.tensor(sequences_at).numel - 1)
        sight = _sight(call, causal_at, windows_at, from_end=True)
        exact = queries == sequences * call.integer(max_q_at, -1) and keys == sequences * call.integer(max_k_at, -1)
        pairs = (
            sequences * seen_pairs(queries // sequences, keys // sequences, sight)
            if exact
            else fewest_pairs(queries, keys, sequences, sight)
        )
        read = heads.q.bytes + read_bytes([heads.k, heads.v]) * _seen_keys(queries, keys, sight) // (keys or 1)
        written = queries * heads.query_heads * (heads.value_head * heads.q.item_bytes + 4)
        return attention_work(call, heads, pairs, read, written, () if exact or sequences == 1 else (FEWEST_PAIRS,))

    return work


def fewest_pairs(queries: int, keys: int, sequences: int, sight: Sight) -> int:
    """Pairs of sequences with these sums that no others have fewer than.

    As many keys as queries are their own: equal lengths have the fewest. More keys see no query but the last of each
    sequence, in the sequence with the fewest queries; with a window, they may lie outside it.
    """
    if sequences == 1:
        return seen_pairs(queries, keys, sight)
    if queries == keys or (sight.right is not None and keys > queries):
        short, longer = divmod(queries, sequences)
        shares = ((sequences - longer, short), (longer, short + 1))
        own = sum(count * seen_pairs(size, size, sight) for count, size in shares)
        return own + (keys - queries if sight.left is None else 0)
    return max(keys, queries + keys - sequences) if sight.left is None and sight.right is None else min(queries, keys)


FAMILY = OpFamily(
    name="attention",
    models={
        "aten::scaled_dot_product_attention": dense(BHSD, causal_at=5, mask_at=3, extra=0),
        "aten::_scaled_dot_product_flash_attention": dense(BHSD, causal_at=4),
        "aten::_scaled_dot_product_efficient_attention": dense(BHSD, causal_at=6, mask_at=3),
        "aten::_scaled_dot_product_cudnn_attention": dense(BHSD, causal_at=6, mask_at=3),
        "aten::_cudnn_attention_forward": dense(BHSD, causal_at=10, mask_at=3),
        "aten::_scaled_dot_product_flash_attention_for_cpu": dense(BHSD, causal_at=4, mask_at=5),
        "aten::_flash_attention_forward": either(
            3,
            dense(BSHD, causal_at=8, windows_at=11),
            varlen(causal_at=8, sequences_at=3, max_q_at=5, max_k_at=6, windows_at=11),
        ),
        "aten::_efficient_attention_forward": either(
            4,
            dense(BSHD, causal_at=9, mask_at=3),
            varlen(causal_at=9, sequences_at=4, max_q_at=6, max_k_at=7),
        ),
        "flash_attn::_flash_attn_forward": dense(BSHD, causal_at=5, windows_at=6, from_end=True),
        **dict.fromkeys(
            ("aiter::mha_fwd", "aiter::fmha_v3_fwd"), dense(BSHD, causal_at=5, windows_at=6, from_end=True)
        ),
        "flash_attn::_flash_attn_varlen_forward": varlen(
            causal_at=9, sequences_at=3, max_q_at=5, max_k_at=6, windows_at=10
        ),
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
