"""The lower bound of a share: against published values, and between 0 and the share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.analyses.groups.wilson import lower_bound


@pytest.mark.parametrize(
    ("hits", "trials", "bound"),
    [(0, 0, 0.0), (0, 9, 0.0), (5, 5, 0.5655), (73, 73, 0.95), (81, 263, 0.2553)],  # the last: Newcombe 1998, table I
)
def test_the_bound_is_wilsons(hits: int, trials: int, bound: float) -> None:
    assert lower_bound(hits, trials) == pytest.approx(bound, abs=1e-4)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_it_lies_below_the_share(hits: int, misses: int) -> None:
    share = hits / (hits + misses) if hits else 0.0
    assert 0 <= lower_bound(hits, hits + misses) <= share + 1e-12


def test_more_hits_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="found 3 of 2"):
        lower_bound(3, 2)
