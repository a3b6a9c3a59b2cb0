"""The chain around a moment: against looking at every range, and where recorded times cross."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.launched_by import chains
from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.launched_by.chains import Ranges, find_chains
from inferometer.analyses.nesting import holds_any, sort_points

Range = tuple[int, int, str]  # start, end, name; small names are loose


def found(ranges: list[Range], times: list[int], lanes: tuple[list[int], list[int]] | None = None) -> list[str]:
    """The chain at each time, names joined by a slash. Names in capitals are calls, others named ranges."""
    tree, nodes = grown(ranges, times, lanes)
    return ["/".join(tree.label_of(node).name for node in tree.chain(node)) for node in nodes]


def grown(
    ranges: list[Range], times: list[int], lanes: tuple[list[int], list[int]] | None = None
) -> tuple[CallTree, list[int]]:
    """The tree, and the node at each time."""
    tree = CallTree()
    of, at = lanes or ([0] * len(ranges), [0] * len(times))
    labels = [tree.number(Label("op" if name.isupper() else "span", name)) for *_, name in ranges]
    columns = Ranges(
        lane=np.array(of, dtype=np.int64),
        start_ns=np.array([start for start, *_ in ranges], dtype=np.int64),
        end_ns=np.array([end for _, end, _ in ranges], dtype=np.int64),
        label=np.array(labels, dtype=np.int64),
        is_loose=np.array([not name.isupper() for *_, name in ranges], dtype=bool),
        rank=np.zeros(len(ranges), dtype=np.int64),
    )
    nodes = find_chains(tree, columns, sort_points(np.array(at, dtype=np.int64), np.array(times, dtype=np.int64)))
    return tree, nodes.tolist()


def test_calls_nest_and_a_moment_has_the_chain_of_all_that_are_open() -> None:
    ranges = [(0, 100, "A"), (10, 40, "B"), (20, 30, "C"), (50, 60, "D")]
    times = [-1, 0, 10, 25, 30, 40, 55, 60, 100]
    assert found(ranges, times) == ["", "A", "A/B", "A/B/C", "A/B", "A", "A/D", "A", ""]


def test_equal_chains_are_one_node() -> None:
    tree = CallTree()
    outer, inner = (tree.number(Label("op", name)) for name in "ab")
    assert tree.child(tree.child(ROOT, outer), inner) == tree.child(tree.child(ROOT, outer), inner)
    assert len(tree) == 2


def test_threads_do_not_mix() -> None:
    assert found([(0, 10, "A"), (0, 10, "B")], [5, 5, 5], ([1, 2], [2, 1, 3])) == ["B", "A", ""]


def test_a_named_range_that_ended_under_others_is_no_longer_around() -> None:
    ranges = [(0, 10, "x"), (5, 30, "y"), (8, 20, "A")]
    assert found(ranges, [4, 6, 9, 12, 25]) == ["x", "x/y", "x/y/A", "y/A", "y"]


def test_a_call_that_outlasts_its_caller_by_rounding_is_still_called_by_it() -> None:
    ranges = [(0, 100, "A"), (10, 101, "B"), (20, 90, "C")]
    assert found(ranges, [50, 95, 100]) == ["A/B/C", "A/B", "A/B"]


def test_a_call_that_begins_a_moment_before_the_last_one_ends_follows_it() -> None:
    ranges = [(0, 200, "A"), (10, 51, "B"), (50, 100, "C"), (60, 70, "D")]
    assert found(ranges, [50, 65]) == ["A/C", "A/C/D"]


def test_what_is_nested_deeper_than_any_call_stack_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_DEEPEST", 3)
    ranges = [(i, 100 - i, name) for i, name in enumerate("ABCDE")]
    assert found(ranges, [50]) == ["A/B/C"]


@st.composite
def nested(draw: st.DrawFn) -> list[Range]:
    """Calls that nest, and named ranges that may cross anything."""
    calls: list[Range] = []

    def grow(start: int, end: int, depth: int) -> None:
        cuts = sorted(draw(st.sets(st.integers(start, end), max_size=4)))
        for left, right in pairwise(cuts):
            if draw(st.booleans()):
                calls.append((left, right, f"C{len(calls)}"))
                if depth and right - left > 1:
                    grow(left, right, depth - 1)

    grow(0, 40, 3)
    loose = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=6))
    return calls + [(start, start + length, f"r{i}") for i, (start, length) in enumerate(loose)]


@given(nested(), st.lists(st.integers(-1, 62), max_size=12))
@examples(300)
def test_chains_are_what_looking_at_every_range_finds(ranges: list[Range], times: list[int]) -> None:
    ordered = sorted(range(len(ranges)), key=lambda i: (ranges[i][0], -ranges[i][1], i))
    expected = ["/".join(ranges[i][2] for i in ordered if ranges[i][0] <= time < ranges[i][1]) for time in times]
    assert found(ranges, times) == expected


@given(nested(), st.lists(st.integers(-1, 62), max_size=12))
@examples(300)
def test_columns_grow_the_tree_that_a_sweep_grows(ranges: list[Range], times: list[int]) -> None:
    named = [(start, end, name[0]) for start, end, name in ranges]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "find_nested", lambda *_: None)
        swept, expected = grown(named, times)

    tree, nodes = grown(named, times)
    assert (tree.parent, tree.label, nodes) == (swept.parent, swept.label, expected)


def test_calls_that_nest_are_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(chains._Sweep, "run")
    assert found([(0, 100, "A"), (10, 40, "B"), (20, 30, "c"), (40, 60, "D")], [25, 45]) == ["A/B/c", "A/D"]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30), st.sampled_from("ABxy")), max_size=8),
    st.lists(st.integers(-1, 62), max_size=12),
)
@examples(300)
def test_a_moment_has_the_same_chain_whatever_else_is_asked(drawn: list[Range], times: list[int]) -> None:
    ranges = [(start, start + dur, name) for start, dur, name in drawn]
    assert found(ranges, times) == [found(ranges, [time])[0] for time in times]


@given(nested(), st.lists(st.integers(-1, 62), max_size=5))
@examples(100)
def test_ranges_that_hold_no_moment_make_no_difference(ranges: list[Range], times: list[int]) -> None:
    start, end = np.array([each[:2] for each in ranges], dtype=np.int64).reshape(-1, 2).T
    lanes = [np.zeros(len(each), dtype=np.int64) for each in (ranges, times)]
    kept = np.flatnonzero(holds_any(lanes[0], start, end, lanes[1], np.array(sorted(times), dtype=np.int64)))
    assert found([ranges[i] for i in kept.tolist()], times) == found(ranges, times)
