"""Top-k of logits where it isn't plain: ties, rows that are masked already, fewer logits than k, NaN."""

import pytest

from inferometer.operators.catalogue.topk_filter import reference

torch = pytest.importorskip("torch", reason="torch isn't installed")
NONE, NAN = float("-inf"), float("nan")


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ([1.0, 3.0, 2.0, 2.0], [NONE, 3.0, 2.0, 2.0]),  # both that are second stay
        ([1.0, NONE, NONE, NONE], [1.0, NONE, NONE, NONE]),
        ([NONE] * 4, [NONE] * 4),
        ([float("inf"), 0.0, -0.0, -1.0], [float("inf"), 0.0, 0.0, NONE]),  # zeros are equal
        ([1.0, NAN, 0.0, 2.0], [NONE, NAN, NONE, 2.0]),
    ],
)
def test_what_is_below_the_second_largest_goes(row: list[float], wanted: list[float]) -> None:
    found = reference(torch.tensor([row]), top_k=2)
    torch.testing.assert_close(found, torch.tensor([wanted]), rtol=0, atol=0, equal_nan=True)


def test_fewer_logits_than_k_all_stay() -> None:
    row = torch.tensor([[3.0, 1.0]])
    assert torch.equal(reference(row), row)
