"""Ties and groups of `moe_topk_gating_softmax` on logits that can be checked by eye."""

import pytest

from inferometer.operators.catalogue.moe_topk_gating_softmax import inputs, reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


def test_of_equal_weights_the_lower_id_comes_first() -> None:
    weights, ids = reference(torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0]]), top_k=4)
    assert ids.tolist() == [[1, 2, 4, 0]]
    assert weights[0, 0] == weights[0, 1] == weights[0, 2] > weights[0, 3]


def test_weights_of_a_chosen_group_are_those_of_the_softmax_over_all() -> None:
    logits = torch.tensor([[0.0, 1.0, 3.0, 0.0, 2.0, 2.5]])
    weights, ids = reference(logits, top_k=3, num_expert_groups=3, topk_group=1)
    assert ids.tolist() == [[2, 3, 0]]
    torch.testing.assert_close(weights[0, :2], torch.softmax(logits, -1)[0, [2, 3]])
    assert weights[0, 2] == 0


def test_of_equal_groups_the_lower_one_is_chosen() -> None:
    _, ids = reference(torch.tensor([[0.0, 2.0, 2.0, 1.0, 2.0, 0.0]]), top_k=2, num_expert_groups=3, topk_group=2)
    assert ids.tolist() == [[1, 2]]


def test_inputs_have_ties_and_no_other_close_neighbours() -> None:
    logits = inputs(token_count=2000, num_experts=256, seed=1)["gating_output"]
    gaps = -logits.sort(-1, descending=True).values[:, :9].diff(dim=-1)
    assert (gaps == 0).any()
    assert gaps[gaps > 0].min() >= 2.0**-12
