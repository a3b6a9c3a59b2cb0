"""Draws and sets: what is right, and every way to be wrong."""

from typing import Any

import pytest

from inferometer.bench.problems.judging import concentrate, judge_samples, judge_unordered, shares_of

torch: Any = pytest.importorskip("torch", reason="torch isn't installed")

PROBS = [0.4, 0.3, 0.1, 0.1, 0.06, 0.04, 0.0]


def shares(top_k: int | None = None, top_p: float | None = None) -> list[float]:
    tensors = {"probs": torch.tensor([PROBS])}
    tensors |= {} if top_k is None else {"top_k": torch.tensor([top_k])}
    tensors |= {} if top_p is None else {"top_p": torch.tensor([top_p])}
    return [round(float(each), 4) for each in shares_of(tensors)[0]]


def test_top_k_leaves_the_likeliest_and_those_that_tie_with_the_last() -> None:
    assert shares(top_k=2) == [0.5714, 0.4286, 0, 0, 0, 0, 0]
    assert shares(top_k=3) == [0.4444, 0.3333, 0.1111, 0.1111, 0, 0, 0]
    assert shares(top_k=0) == shares(top_k=7) == shares() == PROBS


def test_top_p_leaves_the_likeliest_until_their_shares_exceed_it() -> None:
    assert shares(top_p=0.3) == [1, 0, 0, 0, 0, 0, 0]
    assert shares(top_p=0.5) == [0.5714, 0.4286, 0, 0, 0, 0, 0]
    assert shares(top_p=0.0) == [1, 0, 0, 0, 0, 0, 0]
    assert shares(top_p=1.0) == PROBS


def test_top_p_is_of_what_top_k_leaves() -> None:
    assert shares(top_k=2, top_p=0.5) == [1, 0, 0, 0, 0, 0, 0]
    assert shares(top_k=2, top_p=0.6) == [0.5714, 0.4286, 0, 0, 0, 0, 0]


def test_many_draws_are_of_the_row_that_leaves_the_most_to_chance() -> None:
    given = {
        "probs": torch.full((4, 40), 1 / 40),
        "top_k": torch.tensor([1, 30, 5, 9]),
        "top_p": torch.tensor([0.9, 0.0, 0.8, 1.0]),
    }
    for seed in range(50):
        found = concentrate(given, seed)
        assert found["top_k"].tolist() == [9] * 4
        assert found["top_p"].tolist() == [1.0] * 4
        assert shares_of(found).max() < 0.76  # of eight tokens with weights of 0.05 to 1.05
        greedy = found["probs"].argmax(-1).repeat(64)
        assert judge_samples("samples", greedy, shares_of(found).repeat(64, 1), "int64").reason is not None


def rows(count: int) -> Any:
    return shares_of({"probs": torch.tensor([PROBS] * count)})


def reason(tokens: Any, count: int = 256, dtype: str = "int64") -> str | None:
    return judge_samples("samples", tokens, rows(count), dtype).reason


def test_right_draws_are_right_a_hundred_times() -> None:
    generator = torch.Generator().manual_seed(7)
    for _ in range(100):
        drawn = torch.multinomial(torch.tensor(PROBS), 256, replacement=True, generator=generator)
        assert reason(drawn) is None


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (torch.zeros(256, dtype=torch.int64), "a value is drawn too often or too rarely"),  # greedy
        (torch.arange(256) % 6, "too often or too rarely"),  # evenly
        (torch.full((256,), 6), "tokens that may not be drawn, the first in row 0"),
        (torch.full((256,), 7), "a value is no token: 7 in row 0 of a vocabulary of 7"),
        (torch.full((256,), -1), "a value is no token"),
        (torch.zeros(255, dtype=torch.int64), "expected shape (256,), found (255,)"),
        (torch.zeros(256, dtype=torch.int32), "expected dtype int64, found int32"),
        ([0] * 256, "expected a plain torch.Tensor, found list"),
    ],
)
def test_wrong_draws_are_wrong(tokens: Any, words: str) -> None:
    assert words in (reason(tokens) or "")


def test_a_few_draws_say_nothing_of_their_frequency() -> None:
    assert reason(torch.zeros(10, dtype=torch.int64), 10) is None


WANTED = [[1, 2, 3, 4], [5, 6, -1, -1]]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([[4, 3, 2, 1], [6, 5, -1, -1]], None),
        ([[4, 3, 2, 1], [-1, 5, 6, -1]], None),
        ([[4, 3, 2, 9], [6, 5, -1, -1]], "25.00% of the values of row 0 are other indices, expected at most 1%"),
        ([[4, 3, 2, 2], [6, 5, -1, -1]], "a value is there twice in row 0"),
        ([[4, 3, 2, 1], [6, 5, 7, -1]], "a value is missing or too much: 3 indices in row 1, expected 2"),
        ([[4, 3, 2, -1], [6, 5, -1, -1]], "a value is missing or too much: 3 indices in row 0, expected 4"),
    ],
)
def test_indices_are_compared_as_sets_of_a_row(found: list[list[int]], words: str | None) -> None:
    assert judge_unordered("i", torch.tensor(found), torch.tensor(WANTED)).reason == words


def test_one_of_a_hundred_places_may_be_another_that_ties() -> None:
    wanted = torch.arange(200)[None]
    found = wanted.clone()
    found[0, :2] = torch.tensor([900, 901])
    assert judge_unordered("i", found, wanted).is_right
    found[0, 2] = 902
    assert not judge_unordered("i", found, wanted).is_right
