"""Where a sequence lies in a reference, and its score: against a table filled cell by cell."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.launched_by.replays import alignment_windows
from inferometer.analyses.launched_by.replays.alignment_windows import (
    EXACT,
    FOREIGN_GAP,
    LANDMARK,
    OWN_GAP,
    REPLAY_GAP,
    SAME_KERNEL,
    SAME_SHORT,
    Coded,
    find_part,
)


class Kind(NamedTuple):
    """What a kernel is compared by, as numbers; a shape of 0 is unknown."""

    short: int
    kernel: int
    shape: int


KINDS = [Kind(0, 0, 1), Kind(0, 0, 2), Kind(0, 1, 1), Kind(1, 2, 1), Kind(1, 2, 2), Kind(1, 2, 0)]
SEQUENCES = st.lists(st.integers(0, len(KINDS) - 1), max_size=12)
SHORT_ONES = st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=3)
LONG_ONES = st.lists(st.integers(0, len(KINDS) - 1), max_size=40)


def worth(a: int, b: int) -> int:
    one, other = KINDS[a], KINDS[b]
    if one.short != other.short:
        return 0
    if one.kernel != other.kernel:
        return SAME_SHORT
    return EXACT if one.shape == other.shape or not one.shape * other.shape else SAME_KERNEL


def score_slowly(replay: list[int], reference: list[int]) -> int:
    """The best score, cell by cell, a gap's cost taken where the gap is."""
    names = Counter(KINDS[code].kernel for code in replay)
    shorts = {KINDS[code].short for code in replay}
    above = [0] * (len(reference) + 1)
    for a in replay:
        row = [above[0] - REPLAY_GAP]
        for j, b in enumerate(reference):
            gap = OWN_GAP if KINDS[b].short in shorts else FOREIGN_GAP
            weight = worth(a, b)
            if weight >= SAME_KERNEL and names[KINDS[a].kernel] <= 2:
                weight += LANDMARK
            pair = above[j] + weight - REPLAY_GAP - gap if weight else -(10**6)
            row.append(max(pair, above[j + 1] - REPLAY_GAP, row[-1] - gap))
        above = row
    return max(above)


def coded(sequence: list[int]) -> Coded:
    kinds = [KINDS[code] for code in sequence]
    exact = [code if kind.shape else -2 - kind.kernel for code, kind in zip(sequence, kinds, strict=True)]
    columns = exact, [kind.kernel for kind in kinds], [kind.short for kind in kinds]
    return Coded(*(np.array(column, dtype=np.int64) for column in columns))


@given(SEQUENCES, SEQUENCES)
@examples(300)
def test_the_part_has_the_score_of_the_table_filled_cell_by_cell(replay: list[int], reference: list[int]) -> None:
    part = find_part(coded(replay), coded(reference), np.zeros(len(reference), dtype=np.int64))
    score = score_slowly(replay, reference)
    assert (part.score if part else 0) == max(score, 0)
    if part:
        assert score_slowly(replay, reference[part.begin : part.end]) == score
        assert score_slowly(replay, reference[: part.end - 1]) < score  # the first of equally good ones, and no longer
        assert score_slowly(replay, reference[part.begin + 1 : part.end]) < score


@given(SHORT_ONES, LONG_ONES)
@examples(150)
def test_no_part_reaches_over_rows_that_were_not_looked_at(replay: list[int], reference: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment_windows, "CELLS", 8 * len(replay) ** 2)
        part = find_part(coded(replay), coded(reference), np.zeros(len(reference), dtype=np.int64))
    assert part is None or part.score == score_slowly(replay, reference[part.begin : part.end])


@given(SEQUENCES.filter(bool), SEQUENCES, SEQUENCES)
@examples(100)
def test_a_part_lies_in_one_segment(replay: list[int], before: list[int], after: list[int]) -> None:
    reference, segment = [*before, *after], [0] * len(before) + [1] * len(after)
    part = find_part(coded(replay), coded(reference), np.array(segment, dtype=np.int64))
    best = max(score_slowly(replay, before), score_slowly(replay, after))
    assert (part.score if part else 0) == max(best, 0)
    if part:
        assert len(set(segment[part.begin : part.end])) == 1


def test_what_was_not_looked_at_is_no_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay's halves stand far apart, and only what stands around them is looked at: one half is the part."""
    halves = np.arange(20)
    kernels = np.concatenate((halves[:10], np.full(400, 99), halves[10:]))
    replay, reference = Coded(halves, halves, halves), Coded(kernels, kernels, kernels)
    monkeypatch.setattr(alignment_windows, "CELLS", 20 * 130)
    part = find_part(replay, reference, np.zeros(420, dtype=np.int64))
    assert part is not None
    assert (part.begin, part.end) == (0, 10)
    assert part.score == 10 * (EXACT + LANDMARK - OWN_GAP) - 20 * REPLAY_GAP
