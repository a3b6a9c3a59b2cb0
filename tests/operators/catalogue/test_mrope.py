"""Which axis each frequency of mrope takes its angle from, and which columns turn together."""

from typing import Any

import pytest

from inferometer.operators.catalogue.mrope import reference


def turned(section: list[int], interleaved: bool, neox: bool) -> list[float]:
    """A head of 14 ones, 12 of which are multiplied by 10, 20 or 30: the cosine of their axis; sines are 0."""
    import torch

    x = torch.ones(1, 14, dtype=torch.bfloat16)
    cos = torch.tensor([10.0, 20.0, 30.0])[:, None, None].expand(3, 1, 6)
    options: dict[str, Any] = {"mrope_section": section, "mrope_interleaved": interleaved, "is_neox_style": neox}
    q, k = reference(x, x, cos, torch.zeros(3, 1, 6), head_size=14, rotary_dim=12, **options)
    assert torch.equal(q, k)
    return [float(value) for value in q[0]]


def test_sections_lie_one_after_another_in_both_halves() -> None:
    pytest.importorskip("torch")
    assert turned([1, 2, 3], interleaved=False, neox=True) == [10, 20, 20, 30, 30, 30] * 2 + [1, 1]


def test_interleaved_frequencies_go_round_the_axes_until_a_section_is_used_up() -> None:
    pytest.importorskip("torch")
    assert turned([2, 2, 2], interleaved=True, neox=True) == [10, 20, 30] * 4 + [1, 1]
    assert turned([4, 1, 1], interleaved=True, neox=True) == [10, 20, 30, 10, 10, 10] * 2 + [1, 1]


def test_the_other_style_turns_neighbours() -> None:
    pytest.importorskip("torch")
    assert turned([1, 2, 3], interleaved=False, neox=False) == [10] * 2 + [20] * 4 + [30] * 6 + [1, 1]
