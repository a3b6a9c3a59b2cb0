"""Lengths that names of steps tell, against sums over requests made up here."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.roofline.contexts import contexts_of, read_context
from inferometer.operators.framework.lengths import Context, Lengths

Requests = list[tuple[int, int]]  # new tokens, and tokens in the cache before
requests = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 500)), max_size=5)


def sums(group: Sequence[tuple[int, int]]) -> tuple[int, int, int, int]:
    new, seen = [new for new, _ in group], [new + before for new, before in group]
    return sum(new), sum(seen), sum(n * n for n in new), sum(n * k for n, k in zip(new, seen, strict=True))


def vllm(prefills: Requests, decodes: Requests) -> str:
    words = (f"{len(group)}(sq{a}sk{b}sqsq{c}sqsk{d})" for group in (prefills, decodes) for a, b, c, d in [sums(group)])
    prefill, decode = words
    return f"execute_{sums([*prefills, *decodes])[0]}_context_{prefill}_generation_{decode}"


def pairs(group: Requests) -> int:
    """Each new token sees what was there before, the new ones before it, and itself."""
    return sum(before + at + 1 for new, before in group for at in range(new))


@given(requests, requests)
@examples(100)
def test_pairs_of_a_step_are_exact_whatever_the_lengths_are(prefills: Requests, decodes: Requests) -> None:
    both = [*prefills, *decodes]

    found = read_context(vllm(prefills, decodes))

    if not both:
        assert found is None
    else:
        assert found == Context(sums(both)[0], sums(both)[1], pairs(both))


@given(requests.filter(bool))
@examples(30)
def test_sglangs_fields_say_the_same(group: Requests) -> None:
    a, b, c, d = sums(group)

    assert read_context(f"step[EXTEND bs={len(group)} toks={a} c_sq={a} c_sqsq={c} c_sqsk={d} c_sk={b}]") == Context(
        a, b, pairs(group)
    )


@given(requests.filter(bool), st.sampled_from(["prefill", "decode", "eager_decode"]))
@examples(30)
def test_atoms_fields_say_the_same(group: Requests, mode: str) -> None:
    a, b, c, d = sums(group)

    assert read_context(f"{mode}[bs={len(group)}/64 tok={a} ctx=[1, 2]...+3 sqsq={c} sqsk={d} sk={b}]") == Context(
        a, b, pairs(group)
    )


def test_an_atom_decode_of_one_token_each_needs_no_products() -> None:
    assert read_context("decode[bs=117/128 tok=117 d=117 sk=5000]") == Context(117, 5000, 5000)
    assert read_context("decode[bs=32 tok=128 d=32 spec=3 sk=65536]") is None  # which sequence has how many keys?


@pytest.mark.parametrize(
    "name",
    [
        "step[DECODE bs=32]",
        "decode[bs=117/128 tok=117 d=117]",
        "prefill[bs=2 tok=14721 ctx=[7803, 6918]]",
        "prefill[bs=2 tok=2 sk=9]",
        "decode[bs=2 tok=2 sk=1]",  # fewer seen than new
        "execute_context_1(5)_generation_3(3)",
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_0(sq0sk0sqsq0sqsk0)",
        "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk1sqsq2sqsk1)",  # fewer seen than new
        "step[DECODE bs=2 g_sq=2 g_sk=8]",
        "step[DECODE bs=2 g_sq=2 g_sk=8 g_sqsq=2 g_sqsk=999]",  # more pairs than there can be
        "execute_1_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk" + "9" * 30 + "sqsq1sqsk9)",
        "",
    ],
)
def test_names_that_tell_no_lengths_or_such_as_cannot_be(name: str) -> None:
    assert read_context(name) is None


def test_the_innermost_range_that_tells_lengths_counts() -> None:
    tree = CallTree()
    step = tree.child(ROOT, tree.number(Label("span", vllm([], [(1, 7)]))))
    inner = tree.child(step, tree.number(Label("op", "aten::mm")))
    other = tree.child(ROOT, tree.number(Label("op", "aten::mm")))

    assert contexts_of(tree, [inner, other, ROOT]) == {step: Context(1, 8, 8), inner: Context(1, 8, 8)}


def test_a_window_of_a_decode_step_holds_no_more_than_equal_lengths_would() -> None:
    equal = Lengths(Context(4, 400, 400), window=64)
    short = Lengths(Context(4, 60, 60), window=64)
    prefill = Lengths(Context(8, 400, 900), window=64)

    assert (seen := equal.seen_by(4)) is not None
    assert (seen.keys, seen.pairs) == (256, 256)
    assert seen.assumes
    assert short.seen_by(4) == Context(4, 60, 60)
    assert prefill.seen_by(8) is None


def test_what_the_user_says_counts_where_the_name_says_nothing() -> None:
    said = Lengths(each=100)
    told = Lengths(Context(4, 44, 44), each=100)

    assert (seen := said.seen_by(3)) is not None
    assert (seen.queries, seen.keys, seen.pairs) == (3, 300, 300)
    assert "--context" in seen.assumes[0]
    assert told.seen_by(4) == Context(4, 44, 44)
    assert Lengths().seen_by(4) is None
