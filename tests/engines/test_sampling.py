"""Tokens are drawn as often as they are probable, and again the same by the same seed."""

from typing import Any

import pytest

from inferometer.engines.sampling import Sampling
from inferometer.errors import InputError

SHARES = (0.5, 0.3, 0.15, 0.05)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"temperature": -1.0}, "temperature: expected 0, or 0.01 to 100, found -1"),
        ({"temperature": float("nan")}, "found nan"),
        ({"temperature": 1e-9}, "found 1e-09"),
        ({"temperature": 1.0, "top_k": -1}, "top-k: expected a number of tokens"),
        ({"temperature": 1.0, "top_p": 0.0}, "top-p: expected a share above 0"),
        ({"temperature": 1.0, "top_p": float("nan")}, "top-p: expected a share above 0"),
        ({"top_k": 5}, "with temperature 0 nothing is drawn"),
        ({"top_p": 0.5}, "with temperature 0 nothing is drawn"),
    ],
)
def test_what_makes_no_sense_is_refused(numbers: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Sampling(**numbers)


def draw(sampling: Sampling, draws: int = 20_000) -> list[float]:
    """How often each of the four tokens came."""
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    logits_BV = torch.tensor(SHARES).log().expand(draws, -1)
    tokens_B = sampling.sampler()(logits_BV, 0)
    assert tokens_B.dtype == torch.int64
    return [float(share) for share in torch.bincount(tokens_B, minlength=len(SHARES)) / draws]


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), [1, 0, 0, 0]),
        (Sampling(1.0), list(SHARES)),
        (Sampling(0.5), [share**2 / sum(each**2 for each in SHARES) for share in SHARES]),
        (Sampling(1.0, top_k=2), [0.625, 0.375, 0, 0]),
        (Sampling(1.0, top_k=99), list(SHARES)),
        (Sampling(1.0, top_p=0.79), [0.625, 0.375, 0, 0]),
        (Sampling(1.0, top_p=0.01), [1, 0, 0, 0]),
        (Sampling(1.0, top_k=3, top_p=0.6), [0.625, 0.375, 0, 0]),
    ],
)
def test_shares_are_those_of_the_probabilities(sampling: Sampling, expected: list[float]) -> None:
    assert draw(sampling) == pytest.approx(expected, abs=0.015)  # four standard errors of 20,000 draws


def test_a_seed_draws_again_the_same_and_another_doesnt() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    logits_BV = torch.zeros(50, 1000)

    def tokens(seed: int) -> list[list[int]]:
        sampler = Sampling(1.0, seed=seed).sampler()
        return [sampler(logits_BV, position).tolist() for position in range(2)]

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)
    assert tokens(1)[0] != tokens(1)[1]
