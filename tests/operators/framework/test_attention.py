"""Attention: pairs that a mask lets through, counted one by one, and arguments at the positions of real schemas."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.operators.framework.test_serving import BF16, F32, call_of, work_of

from inferometer.operators.framework.attention import FEWEST_PAIRS, Sight, fewest_pairs, seen_pairs
from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.lengths import Context, Lengths

SIDE = st.none() | st.integers(0, 6)


def seen(queries: int, keys: int, sight: Sight) -> list[tuple[int, int]]:
    own = keys - queries if sight.from_end else 0
    return [
        (query, key)
        for query, key in product(range(queries), range(keys))
        if (sight.left is None or key >= query + own - sight.left)
        and (sight.right is None or key <= query + own + sight.right)
    ]


@given(st.integers(0, 7), st.integers(0, 7), st.builds(Sight, SIDE, SIDE, st.booleans()))
@examples(200)
def test_pairs_are_those_that_the_mask_lets_through(queries: int, keys: int, sight: Sight) -> None:
    assert seen_pairs(queries, keys, sight) == len(seen(queries, keys, sight))


def splits(total: int, parts: int) -> list[tuple[int, ...]]:
    return [each for each in product(range(1, total + 1), repeat=parts) if sum(each) == total]


@pytest.mark.parametrize("sight", [Sight(None, 0), Sight(2, 0), Sight(0, 0)], ids=str)
@pytest.mark.parametrize(("queries", "keys", "sequences"), [(7, 7, 3), (5, 9, 3), (3, 9, 3), (6, 7, 2), (4, 9, 1)])
def test_no_lengths_with_these_sums_have_fewer_pairs(queries: int, keys: int, sequences: int, sight: Sight) -> None:
    possible = [
        sum(seen_pairs(q, k, sight) for q, k in zip(of_queries, of_keys, strict=True))
        for of_queries in splits(queries, sequences)
        for of_keys in splits(keys, sequences)
        if all(q <= k for q, k in zip(of_queries, of_keys, strict=True))
    ]

    assert fewest_pairs(queries, keys, sequences, sight) <= min(possible)
    if sight.left is None and sequences == queries:  # each has one new token
        assert fewest_pairs(queries, keys, sequences, sight) == min(possible) == keys


def test_without_a_mask_too() -> None:
    possible = [
        sum(q * k for q, k in zip(of_queries, of_keys, strict=True))
        for of_queries in splits(5, 3)
        for of_keys in splits(8, 3)
    ]

    assert fewest_pairs(5, 8, 3, Sight()) == min(possible)


Q, K = ((2, 5, 4, 8), BF16), ((2, 7, 4, 8), BF16)
Q_BHSD = ((2, 4, 6, 8), BF16)
PACKED, STARTS = ((1, 12, 4, 8), BF16), ((4,), "int")
UP_TO_OWN = 2 * 4 * 21  # of 6 queries and keys, two sequences, 4 heads
CALLS: dict[str, tuple[Any, int]] = {
    "cudnn": (
        call_of("aten::_cudnn_attention_forward", *[Q_BHSD] * 3, None, None, None, 6, 6, "False", "0.", "True"),
        UP_TO_OWN,
    ),
    "flash-attn, from the end": (
        call_of("flash_attn::_flash_attn_forward", Q, K, K, "0.", "0.1", "True", "-1", "-1"),
        2 * 4 * len(seen(5, 7, Sight(None, 0))),
    ),
    "flash-attn with a window": (
        call_of("flash_attn::_flash_attn_forward", Q, K, K, "0.", "0.1", "True", "2", "0"),
        2 * 4 * len(seen(5, 7, Sight(2, 0))),
    ),
    "pytorch's flash with a window": (
        call_of("aten::_flash_attention_forward", *[K] * 3, None, None, 7, 7, "0.", "False", "False", None, "1", "2"),
        2 * 4 * len(seen(7, 7, Sight(1, 2))),
    ),
    "sequences in one": (
        call_of("aten::_efficient_attention_forward", *[PACKED] * 3, None, STARTS, STARTS, 6, 6, "0.", "1"),
        4 * 3 * 10,  # three of 4 tokens
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_pairs_of_recorded_calls(case: str) -> None:
    call, pairs = CALLS[case]

    assert work_of(call).special_ops == pairs


def test_keys_before_the_window_arent_read() -> None:
    q, cache = ((1, 1, 4, 8), BF16), ((1, 100, 4, 8), BF16)

    work = work_of(call_of("flash_attn::_flash_attn_forward", q, cache, cache, "0.", "0.1", "True", "9", "0"))

    assert work.read_bytes == 4 * 8 * 2 + 2 * 10 * 4 * 8 * 2


VARLEN = ("0.", "0.1", "True", "-1", "-1")


def test_lengths_that_arent_recorded_are_assumed_and_that_is_said() -> None:
    tokens = ((12, 4, 8), BF16)
    uneven = call_of("flash_attn::_flash_attn_varlen_forward", *[tokens] * 3, STARTS, STARTS, 6, 6, *VARLEN)
    even = call_of("flash_attn::_flash_attn_varlen_forward", *[tokens] * 3, STARTS, STARTS, 4, 4, *VARLEN)

    assert work_of(uneven).assumes == (FEWEST_PAIRS,)
    assert work_of(even).assumes == ()
    assert work_of(uneven).special_ops == work_of(even).special_ops == 4 * 3 * 10


def test_a_paged_cache_is_never_read_whole() -> None:
    pages = ((99, 16, 4, 8), BF16)
    call = call_of(
        "flash_attn::_flash_attn_varlen_forward", ((3, 4, 8), BF16), pages, pages, STARTS, STARTS, 1, 50, *VARLEN
    )

    with pytest.raises(Unmodelled, match="pages"):
        work_of(call)


@pytest.mark.parametrize(
    ("op", "causal_at"),
    [("_cudnn_attention_forward", 10), ("_flash_attention_forward", 8), ("_scaled_dot_product_cudnn_attention", 6),
     ("_scaled_dot_product_efficient_attention", 6), ("_scaled_dot_product_flash_attention", 4)],
)  # fmt: skip
def test_causal_stands_where_pytorchs_schema_has_it(op: str, causal_at: int) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")

    names = [argument.name for argument in getattr(torch.ops.aten, op).default._schema.arguments]
    assert names.index("is_causal") == causal_at

    layout = {"_flash_attention_forward": ((2, 6, 4, 8), F32)}.get(op, ((2, 4, 6, 8), F32))
    given: list[Any] = [layout] * 3 + [None] * (causal_at - 3) + ["True"]
    assert work_of(call_of(f"aten::{op}", *given)).special_ops == UP_TO_OWN


def flash_3(q: Any, kv: Any, *, causal: bool = True, window: int = -1, more: Any = None, **lengths: Any) -> OpCall:
    """Positions of the arguments as the schema of flash-attention 3 has them."""
    given = {0: q, 1: kv, 2: kv, 23: 0.125, 24: causal, 25: window, 26: 0 if window >= 0 else -1} | (more or {})
    return call_of("flash_attn_3::fwd", *(given.get(at) for at in range(33)), **lengths)


def test_flash_attention_3_of_a_batch_is_causal_from_the_end() -> None:
    work = work_of(flash_3(((2, 3, 4, 8), BF16), ((2, 5, 2, 8), BF16)))

    pairs = 2 * (3 + 4 + 5)
    assert work.matrix_flops == pairs * 4 * 2 * (8 + 8)
    assert work.read_bytes == 2 * (2 * 3 * 4 * 8 + 2 * 2 * 5 * 2 * 8)
    assert work.written_bytes == 2 * 3 * 4 * (8 * 2 + 4)


def test_flash_attention_3_of_several_sequences_behind_each_other() -> None:
    starts = ((3,), "int")
    work = work_of(flash_3(((8, 4, 8), BF16), ((8, 2, 8), BF16), more={7: starts, 8: starts, 12: 4, 13: 4}))

    assert work.matrix_flops == 2 * (1 + 2 + 3 + 4) * 4 * 2 * (8 + 8)
    assert work.assumes == ()


@pytest.mark.parametrize("window", [-1, 63])
def test_flash_attention_3_over_pages_takes_lengths_from_the_step(window: int) -> None:
    pages, paged = ((99, 16, 2, 8), BF16), {10: None, 11: ((4,), "int"), 12: 1, 14: ((4, 30), "int")}
    decode = Lengths(Context(4, 400, 400))

    work = work_of(flash_3(((4, 1, 4, 8), BF16), pages, window=window, more=paged, lengths=decode))

    keys = 400 if window < 0 else 4 * 64
    assert work.matrix_flops == keys * 4 * 2 * (8 + 8)
    assert work.read_bytes == 4 * 4 * 8 * 2 + keys * 2 * (8 + 8) * 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({14: ((4, 30), "int")}, "--context"),
        ({11: ((4,), "int")}, "--context"),
        ({3: ((4, 1, 2, 8), BF16)}, "no model of that"),
        ({5: ((4, 1, 4, 8), BF16)}, "no model of that"),
        ({8: ((5,), "int")}, "queries have none"),
        ({14: ((4, 30), "int"), 24: "False", 12: 2}, "isn't causal"),
        ({14: ((4, 30), "int"), 0: ((2, 2, 4, 8), BF16), "each": 100}, "several new tokens"),
        ({14: ((4, 30), "int"), 0: ((4, 4, 8), BF16), 12: 2, "each": 100}, "several new tokens"),
    ],
)
def test_flash_attention_3_that_cannot_be_known_says_why(more: dict[Any, Any], words: str) -> None:
    said = Lengths(each=more.get("each"))
    with pytest.raises(Unmodelled, match=words):
        work_of(flash_3(((4, 1, 4, 8), BF16), ((99, 16, 2, 8), BF16), more=more, lengths=said))
